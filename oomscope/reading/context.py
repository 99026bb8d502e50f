"""The dump's own key: what a recording by oomscope adds to the snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oomscope.model import note
from oomscope.reading.columns import kind_of
from oomscope.reading.notes import Notes

_DEEPEST = 32
_REPEATED, _MOST_TIMES = 1_000_000, 4
"""Containers that stand in many places may be met so often in all, beside so many times what there is."""
_PLAIN = (str, int, float, bool, type(None))


def context_of(top: Mapping[Any, Any], notes: Notes) -> dict[str, Any] | None:
    """The value of the top-level key ``oomscope`` if it is a dict of plain containers; None, with a note, if not."""
    context = top.get("oomscope")
    if context is None:
        return None
    if not isinstance(context, dict):
        notes.add(note("reading.context_no_dict", kind=kind_of(context)))
        return None
    if not _is_plain(context):
        notes.add(note("reading.context_not_plain"))
        return None
    exception = context.get("exception")
    if isinstance(exception, dict) and isinstance(exception.get("message"), str):
        # The dump is written before the message is known; blanks keep its place until it is filled in.
        exception["message"] = exception["message"].rstrip()
    return context


class _NotPlainError(Exception):
    """A value is of another type, or too deep."""


def _is_plain(context: dict[str, Any]) -> bool:
    known: dict[int, int] = {}
    try:
        met = _measure(context, _DEEPEST, known)
    except _NotPlainError:
        return False
    return met <= _REPEATED + _MOST_TIMES * len(known)


def _measure(value: Any, depth: int, known: dict[int, int]) -> int:
    """How many containers whoever walks over `value` meets: one that stands in many places is met in each of them.

    Each is measured once, and kept in `known` by its identity. One that is deep enough in one place is so in all.
    """
    if depth == 0 or not isinstance(value, (dict, list, tuple)):
        raise _NotPlainError
    if id(value) not in known:
        if isinstance(value, dict) and not all(isinstance(key, str) for key in value):
            raise _NotPlainError
        items = value.values() if isinstance(value, dict) else value
        inner = (item for item in items if not isinstance(item, _PLAIN))
        known[id(value)] = 1 + sum(_measure(item, depth - 1, known) for item in inner)
    return known[id(value)]
