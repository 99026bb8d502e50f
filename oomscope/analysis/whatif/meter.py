"""How far the replays are: each of them counts, against about as many as a row takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oomscope.allocator.replay import Replay, Replayer
from oomscope.analysis.progress import Listener
from oomscope.analysis.whatif.allowance import Allowance

REPLAYS_OF_A_THOROUGH_ROW = 14
"""About as many replays as a row takes whose least memory is searched for: 13 to find it, some to prove it."""


class Meter:
    """Counts replays, and tells which share of all rows is done. It never goes back.

    Args:
        progress: who wants to know.
        rows: for each row, about how many replays it takes.
        allowance: what replays are taken from.
    """

    def __init__(self, progress: Listener, rows: Sequence[int], allowance: Allowance) -> None:
        self._progress = progress
        self._rows = rows
        self._allowance = allowance
        self._row = -1
        self._replays = 0
        self._name = ""

    def begin(self, name: str) -> None:
        """A row begins."""
        self._row, self._replays, self._name = self._row + 1, 0, name
        self._tell()

    def counted(self, replayer: Replayer) -> Replayer:
        """`replayer`, each of whose runs is counted."""
        return _Counted(replayer, self)

    def replayed(self, replay: Replay) -> None:
        """One replay of the row is done."""
        self._replays += 1
        self._allowance.spend(replay)
        self._tell()

    def _tell(self) -> None:
        row = min(self._row, len(self._rows) - 1)
        # A row may take more replays than was thought; it is done when the next one begins.
        within = min(self._replays, self._rows[row] - 1) if self._row == row else self._rows[row]
        share = (sum(self._rows[:row]) + within) / max(sum(self._rows), 1)
        self._progress("replaying", share, self._name)


class _Counted(Replayer):
    def __init__(self, replayer: Replayer, meter: Meter) -> None:
        # The same program, made ready once: nothing of it is copied.
        self.__dict__.update(replayer.__dict__)
        self._meter = meter

    def run(self, *arguments: Any, **options: Any) -> Replay:
        done = super().run(*arguments, **options)
        self._meter.replayed(done)
        return done
