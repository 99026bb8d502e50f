"""The work that a failed request is part of, as one line of the program: what is left over can go before it.

The stack that made what is left over and the one that asked lie in the same calls as far as one function, in which the
first is at one line and the second at another: that one is underway, and the other one has ended.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oomscope.analysis.attribution.sites import is_readers_frame
from oomscope.analysis.passes.loop_that_matters import in_thread
from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.model import Frame, IntArray

MOST_STACKS = 50
"""Of those that made what is left over, by their bytes."""
MOST_INDENT = 8
"""Columns before the first statement of a method."""
MODULE = "<module>"
_TAB = 4
MOSTLY = 0.5
"""Of the bytes that the reader's own code made: how many must part from the work underway at one line."""


class WorkUnderway(NamedTuple):
    """What is in progress `at` a line.

    `kind`: ``call``, of that line; ``block``, of which the line is a part, such as a loop in its first pass; ``loop``,
    of which it is the first line, or the first that allocates.
    """

    at: Location
    kind: str = "call"


_MODULE_CALL = frozenset({"_call_impl", "_wrapped_call_impl"})


def work_since(study: DeviceStudy, entry: int, rows: IntArray, *, least: float = MOSTLY) -> WorkUnderway | None:
    """The work that has followed what made `rows`, lifetimes; None where both come from the same lines.

    `least`: the share of what the reader's own code made that it must have followed.
    """
    asking = _asking(study, entry)
    stacks, where = np.unique(study.history.lifetimes.stack[rows], return_inverse=True)
    size = np.bincount(where, weights=study.history.size[rows], minlength=len(stacks))
    found: dict[Location, float] = {}
    total = 0.0
    for one in np.argsort(-size, kind="stable")[:MOST_STACKS].tolist():
        making = _own(study, int(stacks[one]))
        if making:
            total += size[one]
            if (at := _parting(making, asking)) is not None:
                found[at] = found.get(at, 0) + size[one]
    first = max(found, key=lambda at: found[at], default=None)
    return None if first is None or found[first] < least * total else work_at(study, entry, first, rows)


def work_at(study: DeviceStudy, entry: int, at: Location, rows: IntArray) -> WorkUnderway:
    """The work in progress at a line: the loop around it, if `rows`, lifetimes, are older than that."""
    loops, born = study.loops, study.history.lifetimes.born[rows]
    for number in loops.running(entry, thread=in_thread(study, entry)):
        run = loops.runs[number]
        where = loops.location(run)
        is_around = (where.file, where.function) == (at.file, at.function) and not run.one_line
        if is_around and len(run.starts) > 1 and bool(np.all(born < run.begin)):
            return WorkUnderway(where, "loop")
    return WorkUnderway(at, "block" if _is_indented(study, at) else "call")


def goes_on_making(study: DeviceStudy, entry: int, work: WorkUnderway, rows: IntArray) -> bool:
    """Whether most of `rows`, lifetimes, were made by passes of a loop of the same function that is still running."""
    loops, born = study.loops, study.history.lifetimes.born[rows]
    for number in loops.running(entry, thread=in_thread(study, entry)):
        where = loops.location(loops.runs[number])
        if (where.file, where.function) == (work.at.file, work.at.function):
            return bool(2 * np.count_nonzero(born >= loops.runs[number].begin) >= len(born))
    return False


def _is_indented(study: DeviceStudy, at: Location) -> bool:
    """Whether a line stands further in than another one of its function, or than any could that is in no block."""
    indents = _indents(study)
    here = indents.get((at.file, at.line))
    lines = {
        frame.line for frame in study.snapshot.stacks.frames if (frame.filename, frame.name) == (at.file, at.function)
    }
    known = [one for line in lines if (one := indents.get((at.file, line))) is not None]
    return here is not None and here > min(*known, 0 if at.function == MODULE else MOST_INDENT, here)


def _indents(study: DeviceStudy) -> dict[tuple[str, int], int]:
    """By file and line, how far in a line of source stands, of those that the dump brought."""
    return study.once(
        "indents",
        lambda: {
            (one.filename, one.first + at): len(text.expandtabs(_TAB)) - len(text.expandtabs(_TAB).lstrip())
            for one in study.snapshot.recorded.sources
            for at, text in enumerate(one.text)
            if text.strip()
        },
    )


def _parting(making: list[Frame], asking: list[Frame]) -> Location | None:
    """The line of `asking` in the outermost call where both are in one function at different lines."""
    for made, asked in zip(making, asking, strict=False):
        if (made.filename, made.name) != (asked.filename, asked.name):
            return None
        if made.line != asked.line:
            return Location(asked.filename, asked.line, asked.name)
    return None


def _asking(study: DeviceStudy, entry: int) -> list[Frame]:
    """The reader's own calls in progress; autograd's threads have none, so that those of the last request tell."""
    stacks = study.history.trace.stack[: entry + 1]
    known = study.sites.callers(stacks) >= 0
    if int(stacks[entry]) < 0 or not known[entry]:
        known &= ~np.isin(stacks, [one for one in np.unique(stacks).tolist() if study.loops.is_thread(one)])
    mine = np.flatnonzero(known)
    return _own(study, int(stacks[mine[-1]])) if len(mine) else []


def _own(study: DeviceStudy, stack: int) -> list[Frame]:
    """The reader's own frames, outermost first."""
    return [frame for frame in study.snapshot.stacks[stack] if is_readers_frame(frame)][::-1] if stack >= 0 else []


def functions_in_modules(study: DeviceStudy, entry: int) -> frozenset[str]:
    """The functions that were running within a Module's call at `entry`, by name: its forward, and what that calls."""
    stack = int(study.history.trace.stack[entry])
    frames = study.snapshot.stacks[stack] if stack >= 0 else []
    names = [frame.name.rpartition(".")[2] for frame in frames]
    outermost = max((number for number, name in enumerate(names) if name in _MODULE_CALL), default=0)
    return frozenset(names[:outermost]) - _MODULE_CALL
