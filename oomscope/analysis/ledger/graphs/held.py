"""How long Python holds what a forward makes, when no graph does: from where it was made to the end of its next use."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.ledger.casts import autocast_copies
from oomscope.analysis.ledger.draft import NEVER, SPACING
from oomscope.analysis.ledger.passes import forwards
from oomscope.analysis.ledger.paths import Part, Path, paths
from oomscope.analysis.ledger.run import Run
from oomscope.model import IntArray

LONGEST_TURN = 64
"""Requests of a statement that a loop repeats."""


def held_until(run: Run) -> IntArray:
    """int64[requests]: the moment from which nothing in Python refers to what a forward made.

    ``x = self.conv(x)`` lets the old ``x`` go when the call is done. So a tensor lives until the next statement of the
    same function is done; what the last statement made is the function's result, and lives until its caller's next one.
    Found once.
    """
    return run.study.once("held by Python", lambda: _held_until(run))


def _held_until(run: Run) -> IntArray:
    known = paths(run)
    until = run.end.copy()
    for rows in forwards(run):
        row_paths = [known[stack] for stack in run.stack[rows].tolist()]
        last = [_last_use(row_paths, number) for number in range(len(rows))]
        until[rows] = run.begin[rows[last]] + SPACING // 2
    copies = autocast_copies(run)
    ends = run.last_of_own_step(FORWARD, otherwise=NEVER)
    until[copies] = np.minimum(ends[copies], run.end[copies])
    found: IntArray = until
    return found


def _last_use(row_paths: list[Path], number: int) -> int:
    """The last request of the next statement that can use what request `number` made."""
    path = row_paths[number]
    for level in range(len(path) - 1, -1, -1):
        prefix, here = path[:level], path[level]
        following = number + 1
        while following < len(row_paths) and _at(row_paths[following], prefix, level) == here:
            following += 1
        turn = _next_turn(row_paths, number, following)
        if turn is not None:
            return turn
        if following >= len(row_paths):
            return len(row_paths) - 1
        if row_paths[following] == prefix:
            # The caller's own line goes on with what the call returned, as an activation around a layer does.
            return following
        found = _at(row_paths[following], prefix, level)
        call_ends = found is None or _order(here, found) < 0
        if call_ends and any(row_paths[one] != path for one in range(number + 1, following)):
            # No statement follows in this call, whose result is what it made last: this one went into that.
            return following - 1
        if found is not None:
            return _end_of(row_paths, number, following, prefix, whole_call=call_ends)
    return len(row_paths) - 1


def _next_turn(row_paths: list[Path], number: int, end: int) -> int | None:
    """Where a loop of one line makes the same again, from something else that it made between."""
    path = row_paths[number]
    for place in range(number + 1, end):
        if row_paths[place] == path:
            return place if place > number + 1 else None
    return None


def _at(path: Path, prefix: Path, level: int) -> Part | None:
    """A path's call at `level`, if it lies within `prefix`."""
    return path[level] if len(path) > level and path[:level] == prefix else None


def _order(one: Part, other: Part) -> int:
    """1 where `other` is a later statement of the same call, 0 for the same one, -1 where another call has begun."""
    for here, there in zip(one, other, strict=False):
        if here != there:
            if (here[0], here[2]) != (there[0], there[2]):
                return -1 if here is one[0] else 1
            return 1 if there[1] > here[1] else -1
    return 0


def _end_of(row_paths: list[Path], number: int, begin: int, prefix: Path, *, whole_call: bool) -> int:
    """The last request of the statement that begins there, or of the whole call.

    A statement in a loop ends where what it calls begins anew, or where its turn does that request `number` goes into.
    """
    level = len(prefix)
    last, before = begin, row_paths[begin]
    for following in range(begin + 1, len(row_paths)):
        path = row_paths[following]
        found = _at(path, prefix, level)
        if found is None:
            break
        order = _order(before[level], found)
        again = len(before) > level + 1 < len(path) and _order(before[level + 1], path[level + 1]) < 0
        if again and not whole_call:
            return last
        if order < 0 if whole_call else order != 0:
            break
        last, before = following, path
    return last if whole_call else _turn_of(row_paths, number, last, prefix)


def _turn_of(row_paths: list[Path], number: int, last: int, prefix: Path) -> int:
    """The last request of the turn of a loop of one statement that request `number` goes into, up to `last`.

    What a turn makes last is its result, and goes into the next one. Without a loop, `last`.
    """
    level, first = len(prefix), number
    while first and (found := _at(row_paths[first - 1], prefix, level)) and not _order(found, row_paths[first][level]):
        first -= 1
    rows = row_paths[first : last + 1]
    for length in range(2, min(len(rows) // 2, LONGEST_TURN) + 1):
        if len(rows) % length == 0 and rows[length:] == rows[:-length]:
            turn = (number + 1 - first) // length
            return min(first + (turn + 1) * length - 1, last)
    return last
