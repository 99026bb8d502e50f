"""Gradients that parameters still have from before they were frozen: no backward adds to them any more."""

from __future__ import annotations

from typing import Any

from oomscope.recording.census.names import Names
from oomscope.recording.census.storages import Storage


def find_frozen(names: Names, storages: list[Storage]) -> list[dict[str, Any]]:
    """Rows of such gradients, by module and device, as those of variables that are not read again.

    Args:
        names: of parameters and gradients.
        storages: with their names; those of such gradients are told what they belong to.
    """
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for one in storages:
        key = (one.device, one.address)
        if key not in names.frozen or one.unread is not None or one.name is None:
            continue
        one.unread = f"gradients of {one.name.partition('.')[0]}"
        row = rows.setdefault(
            (one.unread, one.device),
            {
                "holder": one.unread,
                "place": "frozen",
                "device": one.device,
                "bytes": 0,
                "tensors": 0,
                "reads": [],
                "since": None,
                "loop": None,
                "others": [],
                "at": None,
            },
        )
        row["bytes"] += one.bytes
        row["tensors"] += 1
    return sorted(rows.values(), key=lambda row: -row["bytes"])
