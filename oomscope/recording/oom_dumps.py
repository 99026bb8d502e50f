"""Which OOMs of a session are dumped, and which of those dumps stay: a job that retries must not fill its disk."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

from oomscope.recording.dump import Dump
from oomscope.recording.options import Options

_DUMP_SHARE = 3  # between two dumps pass this many times what the last one took, lest a job does nothing else


class OomDumps:
    """The dumps of a session's OOMs, under its options ``min_interval`` and ``max_dumps``."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._next_at = 0.0
        self._places: set[int] = set()  # where OOMs were dumped before unwinding
        self._kept: list[Path] = []

    def is_due(self, place: int) -> bool:
        """Whether the OOM that comes now, at `place` of the program, is to be dumped."""
        return monotonic() >= self._next_at or self._is_new(place)

    def _is_new(self, place: int) -> bool:
        """Whether no OOM of this place is dumped yet: the one that ends a job may follow those that cuDNN gets over.

        After unwinding, whoever handled it may have let go of what it was about, as Lightning does of the model.
        """
        return 0 < len(self._places) < self._options.max_dumps and place not in self._places

    def saw(self, place: int) -> None:
        """An OOM was dumped at `place`, before unwinding."""
        self._places.add(place)

    def add(self, made: Dump) -> Path | None:
        """Count a dump; returns the file that makes room for it, which is no more.

        The first stays, and so does the last: it is the one that ends the job.
        """
        if self._options.min_interval:
            self._next_at = monotonic() + max(self._options.min_interval, _DUMP_SHARE * made.seconds)
        if made.path is None:
            return None
        self._kept.append(made.path)
        if len(self._kept) <= self._options.max_dumps:
            return None
        dropped = self._kept.pop(-2)
        dropped.unlink(missing_ok=True)
        return dropped
