"""The language of ``PYTORCH_ALLOC_CONF``, read as torch reads it.

Source: ConfigTokenizer of c10/core/AllocatorConfig.h and the parsers of AllocatorConfig.cpp.

Numbers follow C++'s ``stoull``: the digits at the start count, and what follows them is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oomscope.allocator.torch_releases import Release
from oomscope.frozen import frozen
from oomscope.units import MIB

_SEPARATORS = re.compile(r"([,:\[\]])")
_SPACES = re.compile(r"\s+")
_INTEGER = re.compile(r"([+-]?)(\d+)")
_UNSIGNED = 1 << 64
_INTERVALS = 16


@frozen
class Option:
    """One key of the conf string.

    Attributes:
        key: as written.
        read: turns the tokens of its value into the value.
        field: the attribute of `AllocatorConfig` it sets; empty for keys that do not decide where blocks go.
        at_least_large_segment: whether torch refuses values below the large segment size.
    """

    key: str
    read: Callable[[str, Sequence[str], Release], Any]
    field: str = ""
    at_least_large_segment: bool = False


def tokenize(text: str) -> list[str]:
    """The keys, values and separators of `text`, without whitespace."""
    return [token for token in _SEPARATORS.split(_SPACES.sub("", text)) if token]


def read_options(tokens: Sequence[str], release: Release) -> Mapping[Option, Any]:
    """Each option that `tokens` name with its value, as `release` reads it; the last counts where a key comes twice.

    Raises:
        ValueError: one sentence about the first thing that torch would refuse.
    """
    options: dict[Option, Any] = {}
    position = 0
    while position < len(tokens):
        if tokens[position] == ",":
            position += 1
            continue
        key = tokens[position]
        value, position = _value_tokens(key, tokens, position + 1)
        option = OPTIONS.get(key)
        if option is None:
            raise ValueError(f"{key!r} is no setting of the CUDA caching allocator; known are {', '.join(_ACTING)}")
        options.pop(option, None)
        options[option] = option.read(key, value, release)
        if position < len(tokens) and tokens[position] != ",":
            raise ValueError(f"a comma is missing after {key}, before {tokens[position]!r}")
    return options


def read_understood(tokens: Sequence[str], release: Release) -> tuple[Mapping[Option, Any], tuple[str, ...]]:
    """Each option of a conf that a process really ran with, and the keys that `read_options` would refuse.

    A key that a later release brought, or a value that this model does not know, hides none of its neighbours.
    """
    options: dict[Option, Any] = {}
    unknown: list[str] = []
    for part in _parts(tokens):
        try:
            options |= read_options(part, release)
        except ValueError:
            unknown.append(part[0])
    return options, tuple(unknown)


def _parts(tokens: Sequence[str]) -> list[list[str]]:
    """The tokens of each key with its value: the commas inside brackets belong to the value."""
    parts: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token == "[") - (token == "]")  # noqa: S105
        if token == "," and depth <= 0:  # noqa: S105
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def _value_tokens(key: str, tokens: Sequence[str], position: int) -> tuple[Sequence[str], int]:
    """The tokens of the value that starts after the colon at `position`, and the position behind them."""
    if position >= len(tokens) or tokens[position] != ":":
        name, _, value = key.partition("=")
        raise ValueError(f"{key} needs a value, written {name}:{value or 'VALUE'}")
    begin = position + 1
    if begin >= len(tokens) or tokens[begin] in (",", ":", "]"):
        raise ValueError(f"{key} needs a value, written {key}:VALUE")
    if tokens[begin] != "[":
        return tokens[begin : begin + 1], begin + 1
    try:
        end = tokens.index("]", begin) + 1
    except ValueError:
        raise ValueError(f"the list of {key} has no closing bracket") from None
    return tokens[begin:end], end


def _single(key: str, value: Sequence[str]) -> str:
    if len(value) != 1:
        raise ValueError(f"{key} takes one value, not a list")
    return value[0]


def _integer(key: str, text: str) -> int:
    match = _INTEGER.match(text)
    if match is None:
        raise ValueError(f"{key} takes a whole number, not {text!r}")
    number = int(match[2])
    if number >= _UNSIGNED:
        raise ValueError(f"{key} is too large: {text}")
    return _UNSIGNED - number if match[1] == "-" and number else number


def _megabytes(key: str, value: Sequence[str], _: Release) -> int:
    return min(_integer(key, _single(key, value)), (_UNSIGNED - 1) // MIB) * MIB


def _large_segment(key: str, value: Sequence[str], release: Release) -> int:
    size = _megabytes(key, value, release)
    if size <= 10 * MIB:
        raise ValueError(f"{key} must be above 10")
    return size


def _flag(key: str, value: Sequence[str], _: Release) -> bool:
    text = _single(key, value)
    if text not in ("True", "False"):
        raise ValueError(f"{key} is True or False, not {text!r}")
    return text == "True"


def _real(key: str, value: Sequence[str]) -> float:
    text = _single(key, value)
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{key} takes a number, not {text!r}") from None


def _threshold(key: str, value: Sequence[str], _: Release) -> float:
    number = _real(key, value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{key} must lie between 0 and 1, both excluded")
    return number


def _fraction(key: str, value: Sequence[str], _: Release) -> float:
    number = _real(key, value)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{key} must lie between 0 and 1")
    return number


def _backend(key: str, value: Sequence[str], _: Release) -> None:
    if _single(key, value) != "native":
        raise ValueError(f"{key}:{value[0]} is another allocator; the replay models the native one only")


def _anything(key: str, value: Sequence[str], _: Release) -> None:
    del key, value


def _divisions(key: str, value: Sequence[str], release: Release) -> tuple[int, ...]:
    if len(value) > 1:
        return _divisions_by_interval(key, value[1:-1], release)
    count = _integer(key, value[0])
    if not _is_power_of_2(count):
        raise ValueError(f"{key} must be a power of 2, not {value[0]}")
    return (count,) * _INTERVALS


def _divisions_by_interval(key: str, tokens: Sequence[str], release: Release) -> tuple[int, ...]:
    """``[256:1,512:2,>:4]``: the first interval counts also for what is smaller, ``>`` for what is larger."""
    divisions = [0] * _INTERVALS
    last = -1
    for entry in "".join(tokens).split(","):
        if not entry:
            continue
        interval, colon, text = entry.partition(":")
        if not colon:
            raise ValueError(f"each interval of {key} is written SIZE:DIVISIONS, not {entry!r}")
        count = _integer(key, text)
        if count and not _is_power_of_2(count):
            raise ValueError(f"each number of divisions in {key} must be 0 or a power of 2, not {text}")
        if interval == ">":
            begin = max(last, 0) if release.rest_overrides_last else max(last, 0) + 1
            divisions[begin:] = [count] * (_INTERVALS - begin)
            continue
        size = _integer(key, interval)
        if not _is_power_of_2(size):
            raise ValueError(f"each interval of {key} must be a power of 2 in MiB, not {interval}")
        index = min(size.bit_length() - 1, _INTERVALS - 1)
        if last < 0:
            divisions[:index] = [count] * index
        divisions[index] = count
        last = index
    return tuple(divisions)


def _is_power_of_2(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


# Keys that act on host memory, on locks or on capture are known, so that a conf taken from a real process is accepted.
_INERT = (
    "release_lock_on_cudamalloc", "release_lock_on_hipmalloc", "pinned_use_cuda_host_register",
    "pinned_use_hip_host_register", "pinned_num_register_threads", "pinned_use_background_threads",
    "pinned_reserve_segment_size_mb", "pinned_max_round_threshold_mb", "pinned_max_cached_size_mb",
    "pinned_free_catch_all", "graph_capture_record_stream_reuse", "throw_on_cudamalloc_oom",
    # torch 2.15: how many addresses an expandable segment reserves; the model reserves torch's default for all.
    "expandable_segments_reserve", "expandable_segments_reserve_by_class",
)  # fmt: skip

_OPTIONS = (
    Option("expandable_segments", _flag, "expandable_segments"),
    Option("max_split_size_mb", _megabytes, "max_split_size", at_least_large_segment=True),
    Option("roundup_power2_divisions", _divisions, "roundup_power2_divisions"),
    Option("garbage_collection_threshold", _threshold, "garbage_collection_threshold"),
    Option("max_non_split_rounding_mb", _megabytes, "max_non_split_rounding", at_least_large_segment=True),
    Option("large_segment_size_mb", _large_segment, "large_segment_size"),
    Option("per_process_memory_fraction", _fraction, "per_process_memory_fraction"),
    Option("backend", _backend),
)
_ACTING = tuple(option.key for option in _OPTIONS)

OPTIONS: Mapping[str, Option] = {
    option.key: option for option in (*_OPTIONS, *(Option(key, _anything) for key in _INERT))
}
"""Every key that is understood."""
