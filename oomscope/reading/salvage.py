"""What can be taken of a snapshot whose file was cut off: everything that is whole before the cut.

The unpickler's stack holds, from the bottom up, the snapshot's dict, keys and values that were not put into it yet, and
in place of the last value the containers that were open, each with what was to be put into it. Nothing in it says which
value belongs where; but a snapshot is always the same few lists of dicts, which does.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any, NamedTuple

from oomscope.model import Cut

TOP_KEYS = frozenset(
    {"segments", "device_traces", "allocator_settings", "external_annotations", "host_segments", "host_traces"}
    | {"oomscope", "trace_alloc_max_entries", "trace_alloc_overflowed"}
)
_LISTS = frozenset({"segments", "external_annotations", "host_segments", "host_traces"})
TRACES = "device_traces"


class Salvaged(NamedTuple):
    """A document without what was not whole."""

    document: dict[str, Any]
    part: str | None
    """The key in whose value the file ends."""
    trace: int | None
    """The trace in which it ends, where that is `TRACES`."""


def cut_of(found: Salvaged | None, size: int) -> Cut | None:
    """What is missing of a file of which `size` bytes of contents were read; None where nothing of it can be shown."""
    if found is None:
        return None
    document, part = found.document, found.part
    traces = document.get(TRACES)
    has_entries = isinstance(traces, list) and any(not isinstance(trace, list) or trace for trace in traces)
    if not (
        document.get("segments") or has_entries or (document.get("oomscope") and isinstance(document["oomscope"], dict))
    ):
        return None
    return Cut(
        size=size,
        part=part,
        device=found.trace,
        segments_whole="segments" in document and part != "segments",
        traces_whole=TRACES in document and part != TRACES,
    )


class _Item(NamedTuple):
    level: int
    value: Any


def salvage(levels: list[tuple[Any, ...]], marker: object, *, is_gradual: bool) -> Salvaged | None:
    """The part of a snapshot that was read before a pickle was cut off; None where there is none.

    Args:
        levels: what is between the marks of the unpickler's stack, the innermost first.
        marker: stands in each for the one before.
        is_gradual: whether dicts were filled key by key (protocol 0), so that one with contents need not be whole.
    """
    items = [
        _Item(level, value) for level, values in enumerate(reversed(levels)) for value in values if value is not marker
    ]
    if not items:
        return None
    top, rest = items[0].value, items[1:]
    if isinstance(top, list):
        _extend(top, rest, is_gradual)
        return Salvaged({"segments": top}, "segments", None)
    if not isinstance(top, dict):
        return None
    while rest:
        key = rest[0].value
        if not isinstance(key, str) or len(rest) == 1:
            break
        value = rest[1].value
        if len(rest) > 2 and rest[2].level == rest[0].level and _is_key(rest[2].value):
            top[key] = value
            rest = rest[2:]
            continue
        return Salvaged(top, key, _put_unfinished(top, key, value, rest[2:], is_gradual))
    part = rest[0].value if rest and isinstance(rest[0].value, str) else None
    return Salvaged(top, part, 0 if part == TRACES else None)


def _is_key(value: object) -> bool:
    return isinstance(value, str) and value in TOP_KEYS


def _put_unfinished(top: dict[str, Any], key: str, value: Any, rest: list[_Item], is_gradual: bool) -> int | None:
    """Put what is whole of an unfinished `value` into `top`; returns in which trace it ends."""
    trace = None
    if key in _LISTS and isinstance(value, list):
        _extend(value, rest, is_gradual)
    elif key == TRACES and isinstance(value, list):
        traces = [item.value for item in takewhile(lambda item: not isinstance(item.value, (dict, str)), rest)]
        value.extend(traces)
        trace = max(len(value) - (1 if traces else 0), 0)
        if traces and hasattr(traces[-1], "extend"):
            _extend(traces[-1], rest[len(traces) :], is_gradual)
    elif isinstance(value, dict):
        if not is_gradual:
            value.update(_pairs(rest))
    else:
        return trace  # a text or a number: whether it was whole is not known
    top[key] = value
    return trace


def _extend(target: Any, rest: list[_Item], is_gradual: bool) -> None:
    """Append the dicts at the beginning of `rest` that are whole to `target`, a list or what stands for one."""
    rows = [item.value for item in takewhile(lambda item: type(item.value) is dict, rest)]
    # The last is unfinished where something follows that was to be put into it, or nothing was yet.
    if rows and (len(rows) < len(rest) or not rows[-1] or is_gradual):
        rows.pop()
    target.extend(rows)


def _pairs(rest: list[_Item]) -> dict[str, Any]:
    """The keys and values at the beginning of `rest` that are whole."""
    own = [item.value for item in takewhile(lambda item: item.level == rest[0].level, rest)]
    pairs = list(zip(own[::2], own[1::2], strict=False))
    # What follows an empty dict may be its only pair, and a container at the end may not be whole.
    if len(pairs) > 1 and pairs[-2][1] == {}:
        pairs.pop()
    if pairs and isinstance(pairs[-1][1], (dict, list)):
        pairs.pop()
    return {key: value for key, value in pairs if isinstance(key, str)}
