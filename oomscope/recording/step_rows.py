"""The rows of steps, bounded for jobs that run for weeks: the last ones each for itself, older ones for several."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

Row = dict[str, Any]

MOST_RECENT = 10_000
"""Steps with a row each; some 3 MB of a dump."""
MOST_EARLIER = 10_000
"""Rows of older steps, each of which stands for `count` steps: twice as many whenever they are too many."""


class StepRows:
    """Rows in the order of time: `earlier`, then `recent`."""

    def __init__(self, most_recent: int = MOST_RECENT, most_earlier: int = MOST_EARLIER) -> None:
        self.recent: deque[Row] = deque()
        self.earlier: list[Row] = []
        self._most_recent, self._most_earlier = most_recent, most_earlier

    def append(self, row: Row) -> None:
        """Add the row of a step; of the oldest ones two become one if there are too many."""
        self.recent.append(row)
        if len(self.recent) > self._most_recent + 1:
            self.earlier.append(merged(self.recent.popleft(), self.recent.popleft()))
        if len(self.earlier) > self._most_earlier:
            pairs = zip(self.earlier[::2], self.earlier[1::2], strict=False)
            odd = self.earlier[-1:] if len(self.earlier) % 2 else []
            self.earlier = [merged(one, other) for one, other in pairs] + odd


def merged(first: Row, second: Row) -> Row:
    """One row for two that follow each other: what it says of its end is the second's, a peak is the higher one."""
    row = {
        **second,
        "name": first["name"],
        "begin_us": first["begin_us"],
        "count": first.get("count", 1) + second.get("count", 1),
        "peak_allocated": _by_device(first, second, "peak_allocated", max),
        "peak_reserved": _by_device(first, second, "peak_reserved", max),
        "retries": _of_both(first["retries"], second["retries"], lambda one, other: one + other),
    }
    if first.get("shape") != second.get("shape"):
        row.pop("shape", None)
    return row


def _by_device(first: Row, second: Row, name: str, of: Callable[[int, int], int]) -> list[int | None]:
    one, other = first[name], second[name]
    known = min(len(one), len(other))
    # A device that came into use in the second.
    return [_of_both(one[at], other[at], of) if at < known else None for at in range(len(other))]


def _of_both(one: int | None, other: int | None, of: Callable[[int, int], int]) -> int | None:
    return None if one is None or other is None else of(one, other)
