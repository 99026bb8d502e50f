"""The rows of steps, bounded for jobs that run for weeks: the last ones each for itself, older ones for several."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

Row = dict[str, Any]

MOST_RECENT = 10_000
"""Steps with a row each; some 1 MB of a dump."""
MOST_EARLIER = 10_000
"""Rows of older steps. Each stands for as many steps as the others, for twice as many whenever they are too many."""


class StepRows:
    """Rows in the order of time: `earlier`, then `recent`."""

    def __init__(self, most_recent: int = MOST_RECENT, most_earlier: int = MOST_EARLIER) -> None:
        self.recent: deque[Row] = deque()
        self._earlier: list[Row] = []
        self._filling: Row | None = None  # the next of them
        self._count = 2  # of steps in each
        self._most_recent, self._most_earlier = most_recent, most_earlier

    @property
    def earlier(self) -> list[Row]:
        """Rows of several steps, a copy."""
        return self._earlier + ([] if self._filling is None else [self._filling])

    def append(self, row: Row) -> None:
        """Add the row of a step, and thin out the old ones if there are too many."""
        self.recent.append(row)
        if len(self.recent) > self._most_recent:
            self._retire(self.recent.popleft())

    def _retire(self, row: Row) -> None:
        self._filling = row if self._filling is None else merged(self._filling, row)
        if self._filling.get("count", 1) < self._count:
            return
        self._earlier.append(self._filling)
        self._filling = None
        if len(self._earlier) >= self._most_earlier:
            pairs = zip(self._earlier[::2], self._earlier[1::2], strict=False)
            self._filling = self._earlier[-1] if len(self._earlier) % 2 else None
            self._earlier = [merged(one, other) for one, other in pairs]
            self._count *= 2


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
