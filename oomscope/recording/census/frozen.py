"""Gradients that parameters still have from before they were frozen: no backward adds to them any more."""

from __future__ import annotations

from typing import Any

from oomscope.recording.census.holding import SUPER_ROOT
from oomscope.recording.census.names import Names
from oomscope.recording.census.storages import Storage
from oomscope.recording.census.unread import Variable


def find_frozen(names: Names, storages: list[Storage]) -> list[dict[str, Any]]:
    """Rows of such gradients, by module and device, as those of variables that are not read again.

    Args:
        names: of parameters and gradients.
        storages: with their names; those of such gradients are told what they belong to.
    """
    found: dict[str, Variable] = {}
    for one in storages:
        if (one.device, one.address) not in names.frozen or one.unread is not None or one.name is None:
            continue
        one.unread = f"gradients of {one.name.partition('.')[0]}"
        known = found.setdefault(one.unread, Variable(one.unread, "frozen", None, SUPER_ROOT, None))
        known.add(one.device, one.bytes)
    rows = (row for variable in found.values() for row in variable.rows())
    return sorted(rows, key=lambda row: -row["bytes"])
