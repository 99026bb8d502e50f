"""Progress of a long job, on stderr and only where that is a terminal."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING

import click

from oomscope.units import format_bytes, format_count
from oomscope.wording.clean import clean
from oomscope.wording.progress import STAGES

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

QUIET_SECONDS = 1.0
"""What takes less is not worth a line."""
_LONGEST = 44
_LONGEST_WARNING = 1000
_NEARLY = 99.9
"""Percent: at 100 rich takes all to be done, and stops its clock."""


class Progress:
    """One line with what is done, a bar and percent; it appears after a second and is gone at the end.

    A context manager. Where it is not known how much is left, the bar moves without percent.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bar: Bar | None = None
        self._text, self._share = "", 0.0
        self._timer: threading.Timer | None = None
        self._warnings: list[str] = []

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            # A timer, for work that tells nothing for a while gets its line as well.
            self._timer = threading.Timer(QUIET_SECONDS, self._appear)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
            with self._lock:
                self._timer = None
                if self._bar is not None:
                    self._bar.stop()
        for warning in self._warnings:
            click.echo(f"Warning: {warning}", err=True)

    def warn(self, text: str) -> None:
        """Have one line said on stderr at the end, whether that is a terminal or not."""
        self._warnings.append(clean(text, _LONGEST_WARNING))

    def read(self, done: int, total: int, entries: int) -> None:
        """The callback of `oomscope.load`."""
        counted = f", {format_count(entries)} entries" if entries else ""
        size = f" {format_bytes(total)}" if total else ""
        self._show(f"{STAGES['reading']}{size}{counted}", done / total if total else None)

    def tell(self, stage: str, share: float, detail: str = "", /) -> None:
        """The callback of `oomscope.analyze` and of replays."""
        text = clean(f"{STAGES[stage]} {detail}".rstrip(), _LONGEST)
        self._show(text, share if stage == "replaying" or share else None)

    def stage(self, stage: str) -> None:
        """Say what comes next; how long it takes is not known."""
        self._show(STAGES[stage], None)

    def _show(self, text: str, share: float | None) -> None:
        with self._lock:
            self._text, self._share = text, -1.0 if share is None else share
            self._update()

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        with self._lock:
            if self._timer is None:
                return
            columns = (TextColumn("{task.description}", markup=False), BarColumn(24), TaskProgressColumn())
            self._bar = Bar(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
            self._bar.add_task(self._text, total=None)
            self._update()
            self._bar.start()

    def _update(self) -> None:
        if self._bar is None:
            return
        task = self._bar.tasks[0]
        known = self._share >= 0
        done = min(max(self._share, 0.0) * 100, _NEARLY)
        self._bar.update(task.id, description=self._text, completed=done, total=100 if known else None)
