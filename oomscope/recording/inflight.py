"""Blocks of the very call that failed: results and copies that only C++ holds yet.

Their stack is the failing one, frame for frame, so they need no guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from oomscope.recording.census.roots import is_library, is_own

_Frames = list[tuple[str, int, str]]


def rows(snapshot: Mapping[str, Any], key: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row, as among the dump's ``tensors``, for each live block that was made by the call that failed."""
    request, stacks = key.get("request"), key.get("stacks")
    failing = [_place(frame) for frame in (stacks or {}).get("failing", [])]
    if request is None or not failing:
        return []
    known = {(row["device"], row["address"]) for row in key.get("tensors", [])}
    words = f"the call in progress at {_words(failing)}"
    return [
        {
            "device": request["device"],
            "address": block["address"],
            "bytes": block["requested_size"],
            "dtype": None,
            "shape": None,
            "category": "temporary",
            "name": None,
            "saved_for": None,
            "visible": None,
            "holders": [words],
        }
        for block in _live_blocks(snapshot, request["device"])
        if (request["device"], block["address"]) not in known and _is_same(block.get("frames"), failing)
    ]


def holder(found: list[dict[str, Any]], key: Mapping[str, Any]) -> dict[str, Any]:
    """The row, as among the dump's ``holders``, of the call that made these."""
    total = sum(row["bytes"] for row in found)
    filename, line, name = _site([_place(frame) for frame in key["stacks"]["failing"]])
    return {
        "holder": found[0]["holders"][0],
        "kind": "in_flight",
        "device": found[0]["device"],
        "bytes": total,
        "retained": total,
        "tensors": len(found),
        "nodes": 0,
        "count": 1,
        "path": [],
        "length": None,
        "maxlen": None,
        "place": "local",
        "finished": False,
        "at": {"filename": filename, "line": line, "name": name},
    }


def _live_blocks(snapshot: Mapping[str, Any], device: int) -> Iterable[dict[str, Any]]:
    for segment in snapshot.get("segments", []):
        if segment["device"] == device:
            yield from (block for block in segment["blocks"] if block["state"] == "active_allocated")


def _is_same(frames: list[dict[str, Any]] | None, failing: _Frames) -> bool:
    # The innermost frame first: it settles nearly every comparison.
    if not frames or _place(frames[0]) != failing[0]:
        return False
    return [_place(frame) for frame in frames if not is_own(frame["filename"])] == failing


def _place(frame: Mapping[str, Any]) -> tuple[str, int, str]:
    return frame["filename"], frame["line"], frame["name"]


def _site(failing: _Frames) -> tuple[str, int, str]:
    return next((place for place in failing if not is_library(place[0])), failing[0])


def _words(failing: _Frames) -> str:
    filename, line, name = _site(failing)
    return f"{name} ({PurePath(filename).name}:{line})"
