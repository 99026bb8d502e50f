"""Entries of a window by their numbers in the whole recording, in documents for programs."""

from __future__ import annotations

from typing import Any

_ENTRY = frozenset({
    "entry", "at_entry", "allocated_entry", "reserved_entry", "oldest_entry", "since_entry", "peak_entry",
    "boundaries",
})  # fmt: skip
_OF_A_STEP = frozenset({"begin", "end"})


def as_recorded(document: Any, first: int) -> Any:
    """`document` with its entries counted as in the whole recording; -1, before the first entry, stays.

    Args:
        document: plain containers about one device; what is about another trace must not be in it.
        first: the entry of the recording that is entry 0 of the window.
    """
    if not first:
        return document
    if isinstance(document, list):
        return [as_recorded(item, first) for item in document]
    if not isinstance(document, dict):
        return document
    numbers = _ENTRY | _OF_A_STEP if "peak_entry" in document else _ENTRY
    found = {key: _moved(item, first) if key in numbers else as_recorded(item, first) for key, item in document.items()}
    if isinstance(served := found.get("served"), dict):
        found["served"] = {str(int(entry) + first): item for entry, item in served.items()}
    return found


def _moved(value: Any, first: int) -> Any:
    if isinstance(value, list):
        return [_moved(item, first) for item in value]
    return value + first if isinstance(value, int) and value >= 0 else as_recorded(value, first)
