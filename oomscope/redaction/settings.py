"""What stays of the allocator's settings when they are redacted: torch's own names, numbers, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from oomscope.allocator.conf_string import OPTIONS
from oomscope.redaction.aliases import Aliases

_NAMES = frozenset(OPTIONS) | {
    "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "max_split_size",
    "max_non_split_rounding", "max_non_split_rounding_size", "large_segment_size", "pinned_num_register_threads",
}  # fmt: skip
_DEEPEST = 4
"""Levels; torch's settings have two, a dict of divisions within theirs."""
_PLAIN_KEY = re.compile(r"\d+|>")
_VALUE = re.compile(r"(?i:true|false)|native|cudaMallocAsync|[\d.e+-]*|\[[\d:,>\s]*\]")
# Commas within brackets belong to a list of divisions.
_PAIR = re.compile(r"((?:[^,\[\]]|\[[^\]]*\]?|\])+)")


def redact_settings(settings: Mapping[str, Any], aliases: Aliases) -> dict[str, Any]:
    """A copy of `settings`, the snapshot's ``allocator_settings``; a file may nest them without end."""
    return _settings(settings, aliases, _DEEPEST)


def _settings(settings: Mapping[str, Any], aliases: Aliases, depth: int) -> dict[str, Any]:
    return {_name(str(key), aliases): _setting(value, aliases, depth) for key, value in settings.items()}


def redact_conf(text: str, aliases: Aliases) -> str:
    """`text` in the syntax of PYTORCH_ALLOC_CONF, with aliases for names and values that no release of torch knows."""
    return _PAIR.sub(lambda match: _pair(match[1], aliases), text)


def _setting(value: Any, aliases: Aliases, depth: int) -> Any:
    if isinstance(value, Mapping) and depth:
        return _settings(value, aliases, depth - 1)
    if isinstance(value, (list, tuple)) and depth:
        return [_setting(item, aliases, depth - 1) for item in value]
    if isinstance(value, str):
        return redact_conf(value, aliases)
    return value if value is None or isinstance(value, (bool, int, float)) else "removed"


def _pair(text: str, aliases: Aliases) -> str:
    name, colon, value = text.partition(":")
    if not colon:
        return text if _VALUE.fullmatch(text.strip()) else aliases.alias("text", text)
    return f"{_name(name.strip(), aliases)}:{_value(value.strip(), aliases)}"


def _name(name: str, aliases: Aliases) -> str:
    return name if name in _NAMES or _PLAIN_KEY.fullmatch(name) else aliases.alias("setting", name)


def _value(value: str, aliases: Aliases) -> str:
    return value if _VALUE.fullmatch(value) else aliases.alias("text", value)
