"""The dump's own key: what a recording by oomscope adds to the snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oomscope.model import note
from oomscope.reading.columns import kind_of
from oomscope.reading.notes import Notes

_DEEPEST = 32
_PLAIN = (str, int, float, bool, type(None))


def context_of(top: Mapping[Any, Any], notes: Notes) -> dict[str, Any] | None:
    """The value of the top-level key ``oomscope`` if it is a dict of plain containers; None, with a note, if not."""
    context = top.get("oomscope")
    if context is None:
        return None
    if not isinstance(context, dict):
        notes.add(note("reading.context_no_dict", kind=kind_of(context)))
        return None
    if not _is_plain(context, _DEEPEST):
        notes.add(note("reading.context_not_plain"))
        return None
    exception = context.get("exception")
    if isinstance(exception, dict) and isinstance(exception.get("message"), str):
        # The dump is written before the message is known; blanks keep its place until it is filled in.
        exception["message"] = exception["message"].rstrip()
    return context


def _is_plain(value: Any, depth: int) -> bool:
    if isinstance(value, _PLAIN):
        return True
    if depth == 0:
        return False
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item, depth - 1) for key, item in value.items())
    return isinstance(value, (list, tuple)) and all(_is_plain(item, depth - 1) for item in value)
