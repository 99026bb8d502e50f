"""A document within a number of bytes: whole rows are left out, never half of one, and that is said.

What stands first in a document matters most: rows go from its last list first, then whole entries from its end.
"""

from __future__ import annotations

import json
from typing import Any

DEFAULT = 4_000
LEAST, MOST = 1_000, 200_000
_KEPT = ("truncated", "next")
_TEXT_STEPS = (600, 200, 60)
"""To how many characters texts are cut where leaving rows out is not enough."""


def bounded(document: dict[str, Any], most: int = DEFAULT) -> str:
    """`document` as JSON in one line of at most `most` bytes (ASCII; held between `LEAST` and `MOST`).

    What was left out stands under ``truncated``: for each list its rows shown and in all, for other entries null.
    """
    most = min(max(most, LEAST), MOST)
    if len(text := _dumped(document)) <= most:
        return text
    document = dict(document)
    left: dict[str, Any] = {}
    document["truncated"] = left
    for name in reversed(_lists(document)):
        _shorten(document, name, left, most)
        if len(text := _dumped(document)) <= most:
            return text
    return _forced(document, left, most)


def _lists(document: dict[str, Any]) -> list[str]:
    return [name for name, value in document.items() if isinstance(value, list) and value and name not in _KEPT]


def _shorten(document: dict[str, Any], name: str, left: dict[str, Any], most: int) -> None:
    """Keep as many of the first rows of the list `name` as fit, but one at least."""
    rows = document[name]
    over = len(_dumped({**document, "truncated": {**left, name: _count(len(rows), len(rows))}})) - most
    kept = len(rows)
    while over > 0 and kept > 1:
        kept -= 1
        over -= len(_dumped(rows[kept])) + 1
    if kept < len(rows):
        document[name], left[name] = rows[:kept], _count(kept, len(rows))


def _count(shown: int, of: int) -> dict[str, int]:
    return {"shown": shown, "of": of}


def _forced(document: dict[str, Any], left: dict[str, Any], most: int) -> str:
    """Texts cut short, then entries left out from the end, until it fits."""
    for longest in _TEXT_STEPS:
        shorter = {name: value if name == "truncated" else _clipped(value, longest) for name, value in document.items()}
        if len(text := _dumped(shorter)) <= most:
            return text
    for name in reversed([name for name in shorter if name not in _KEPT]):
        del shorter[name]
        left[name] = None
        if len(text := _dumped(shorter)) <= most:
            return text
    return _dumped({"truncated": {"everything": None}})


def _clipped(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[: longest - 1]}…"
    if isinstance(value, dict):
        return {key: _clipped(item, longest) for key, item in value.items()}
    return [_clipped(item, longest) for item in value] if isinstance(value, list) else value


def _dumped(value: Any) -> str:
    """Compact, and in ASCII: foreign names hold lone surrogates and bidirectional marks."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))
