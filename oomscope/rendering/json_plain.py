"""Records as plain containers that JSON can hold, and as text that is short and can be read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

_WIDTH = 200
"""Records such as a step or a line of code stand in one line each."""


def plain(value: Any, *omit: str) -> Any:
    """Records as dicts, tuples as lists, numpy's numbers as Python's; a number that is none (NaN) is unknown."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value) if field.name not in omit}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list, set, frozenset)):
        return [plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def dumped(value: Any, indent: int = 0) -> str:
    """`value` as JSON: what fits in a line stands in one, all else has a line for each member.

    Escapes of everything beyond ASCII keep lone surrogates and bidirectional marks of foreign names harmless.
    """
    flat = json.dumps(value, allow_nan=False)
    if len(flat) + indent <= _WIDTH or not isinstance(value, (dict, list)) or not value:
        return flat
    inner, outer = "\n" + " " * (indent + 1), "\n" + " " * indent
    if isinstance(value, dict):
        members = [f"{json.dumps(str(key))}: {dumped(item, indent + 1)}" for key, item in value.items()]
        return f"{{{inner}{f',{inner}'.join(members)}{outer}}}"
    if all(isinstance(item, (int, float)) for item in value):
        return flat
    return f"[{inner}{f',{inner}'.join(dumped(item, indent + 1) for item in value)}{outer}]"
