"""Steps and marks: a few numbers a step, kept however long the job runs, so that slow growth shows."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from time import time_ns
from types import TracebackType
from typing import Any

from oomscope.recording.backend import Backend, Levels
from oomscope.recording.step_rows import Row, StepRows
from oomscope.recording.trackers import Trackers

_MOST_MARKS = 10_000
_LOOK_AGAIN = 100  # steps between looking for devices that have come into use


def now_us() -> int:
    """Microseconds since the epoch, the clock of the snapshot's own entries."""
    return time_ns() // 1000


def counts(shape: Mapping[str, Any]) -> dict[str, int]:
    """The sides of a shape that are whole numbers: the length of a batch may come as a tensor's or numpy's own."""
    found = {}
    for name, value in shape.items():
        try:
            found[str(name)] = int(value)
        except (TypeError, ValueError):
            continue
    return found


class StepLog:
    """The steps and marks of one session."""

    def __init__(self, backend: Backend, trackers: Trackers | None = None) -> None:
        self._backend = backend
        self._trackers = trackers
        self._rows = StepRows()
        self._marks: deque[tuple[str, int]] = deque(maxlen=_MOST_MARKS)
        self._lock = threading.RLock()  # a signal's snapshot may come between
        self._open: Step | None = None
        self._last: tuple[int, list[Levels | None]] | None = None
        self._count = 0
        self._devices: list[int] = []
        self.is_explicit = False

    def step(self, name: str | None, shape: Mapping[str, int] | None = None) -> Step:
        """Begin a step of a shape (``{"batch": 8}``). It ends with the ``with`` block, or when the next one begins."""
        self.is_explicit = True
        if self._open is not None:
            self._open.end()
        self._open = Step(self, name, counts(shape or {}))
        return self._open

    def optimizer_stepped(self) -> None:
        """Count a step that nobody announced: it began where the last one ended."""
        if self.is_explicit:
            return
        begin, levels = self._last or (now_us(), [])
        self.add(None, begin, levels)

    def mark(self, name: str) -> None:
        """Note this moment."""
        self._marks.append((str(name), now_us()))

    def add(
        self,
        name: str | None,
        begin_us: int,
        before: Sequence[Levels | None],
        shape: Mapping[str, int] | None = None,
    ) -> None:
        """Note a step that ends now; `before` are the levels of the devices at its begin, as far as they are known."""
        levels = self.levels()
        with self._lock:
            row = {
                "name": str(self._count) if name is None else str(name),
                "begin_us": begin_us,
                "end_us": now_us(),
                **_figures(before, levels),
            }
            if shape:
                row["shape"] = dict(shape)
            self._count += 1
            self._rows.append(row)
            self._last = (row["end_us"], levels)
        if self._trackers is not None:
            self._trackers.add(row, self._count - 1)

    def levels(self) -> list[Levels | None]:
        """What each device has now; None for one that is not in use."""
        try:
            if not self._backend.is_up():
                return []
            if not self._devices or self._count % _LOOK_AGAIN == 0:
                self._devices = sorted({self._backend.current_device(), *self._backend.devices_in_use()})
            known = {device: self._backend.levels(device) for device in self._devices}
            return [known.get(device) for device in range(max(known) + 1)]
        except Exception:
            return []

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """The dump's ``steps_before``, ``steps`` and ``marks``; a step that is underway is among the steps."""
        with self._lock:
            before, steps = self._rows.earlier, list(self._rows.recent)
            marks = [{"name": name, "time_us": time_us} for name, time_us in self._marks]
        if self._open is not None:
            steps.append(self._open.so_far(self._count))
        return {**({"steps_before": before} if before else {}), "steps": steps, "marks": marks}

    def close(self) -> None:
        """Have what is outside told the last rows."""
        if self._trackers is not None:
            self._trackers.close()


def _figures(before: Sequence[Levels | None], after: Sequence[Levels | None]) -> Row:
    """A row's figures, of each device.

    torch keeps one peak, which is the program's own to reset: this step's is known if it raised it.
    """
    begun = [before[device] if device < len(before) else None for device in range(len(after))]
    pairs = list(zip(begun, after, strict=True))
    return {
        "peak_allocated": [_raised(one and one.peak_allocated, other and other.peak_allocated) for one, other in pairs],
        "peak_reserved": [_raised(one and one.peak_reserved, other and other.peak_reserved) for one, other in pairs],
        "allocated": [other and other.allocated for other in after],
        "reserved": [other and other.reserved for other in after],
        "retries": _retries([(one, other) for one, other in pairs if other is not None]),
    }


def _raised(before: int | None, after: int | None) -> int | None:
    return after if before is not None and after is not None and after > before else None


def _retries(pairs: Sequence[tuple[Levels | None, Levels]]) -> int | None:
    """Those of all devices; None where a count is not known, or was reset meanwhile."""
    more = [
        after.retries - before.retries
        for before, after in pairs
        if before is not None and before.retries is not None and after.retries is not None
    ]
    return sum(more) if pairs and len(more) == len(pairs) and min(more) >= 0 else None


class Step:
    """One step underway."""

    def __init__(self, step_log: StepLog, name: str | None, shape: Mapping[str, int]) -> None:
        self._step_log: StepLog | None = step_log
        self._name, self._shape = name, shape
        self._begin_us = now_us()
        self._levels = step_log.levels()

    def end(self) -> None:
        """End the step, if it has not ended yet."""
        step_log, self._step_log = self._step_log, None
        if step_log is not None:
            step_log.add(self._name, self._begin_us, self._levels, self._shape)
            if step_log._open is self:
                step_log._open = None

    def so_far(self, number: int) -> dict[str, Any]:
        """The row of a step that has not ended: no end, no bytes."""
        name = str(number) if self._name is None else str(self._name)
        row: dict[str, Any] = {"name": name, "begin_us": self._begin_us, "end_us": None}
        return {**row, "shape": dict(self._shape)} if self._shape else row

    def __enter__(self) -> Step:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
