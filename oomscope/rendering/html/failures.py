"""Which failed requests a chart over time marks."""

from __future__ import annotations

from collections.abc import Sequence

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.verdict.failed_tries import given_up_failures

_LINE = 0.002
"""Of the width: two lines that are closer are one."""


def failed_up_to(device: DeviceFindings, last: int) -> list[int]:
    """The entries of all failures up to `last`, but for those of a library that tried another plan at once."""
    chosen = given_up_failures(device.history)
    shown = () if device.oom is None else (device.oom.entry,)
    return sorted({*(int(entry) for entry in chosen[chosen <= last]), *(entry for entry in shown if entry <= last)})


def apart(entries: Sequence[int], width: int) -> list[int]:
    """Those of `entries` that are so far apart that their lines are two; the last one always."""
    chosen: list[int] = []
    for entry in reversed(entries):
        if not chosen or chosen[-1] - entry >= _LINE * width:
            chosen.append(entry)
    return chosen
