"""Progress of a long job, on stderr and only where that is a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from oomscope.units import format_bytes, format_count

_QUIET_SECONDS = 0.5
_INTERVAL = 0.1
_CLEAR = "\r\x1b[K"


class Progress:
    """One line that is rewritten in place and cleared at the end. A context manager.

    What takes less than half a second is not worth a line.
    """

    def __init__(self) -> None:
        self._shown = False
        self._is_terminal = sys.stderr.isatty()
        self._next = time.monotonic() + _QUIET_SECONDS

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()

    def read(self, done: int, total: int, entries: int) -> None:
        """The callback of `oomscope.load`."""
        if self._is_terminal and time.monotonic() >= self._next:
            counted = f", {format_count(entries)} entries" if entries else ""
            share = f" {done / total:.0%} of {format_bytes(total)}" if total else ""
            self._show(f"Reading{share}{counted}")

    def stage(self, text: str) -> None:
        """Say what comes next."""
        if self._is_terminal and (self._shown or time.monotonic() >= self._next):
            self._show(text)

    def _show(self, text: str) -> None:
        sys.stderr.write(f"{_CLEAR}{text} …")
        sys.stderr.flush()
        self._shown = True
        self._next = time.monotonic() + _INTERVAL
