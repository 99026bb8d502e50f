"""Steps and marks: a few numbers a step, kept however long the job runs, so that slow growth shows."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from time import time_ns
from types import TracebackType
from typing import Any

from oomscope.recording.backend import Backend

_MOST_STEPS = 50_000
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
    """The steps and marks of one session. The oldest make room when there are too many."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._steps: deque[dict[str, Any]] = deque(maxlen=_MOST_STEPS)
        self._marks: deque[tuple[str, int]] = deque(maxlen=_MOST_MARKS)
        self._lock = threading.RLock()  # a signal's snapshot may come between
        self._open: Step | None = None
        self._last: tuple[int, list[int]] | None = None
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
        begin, peaks = self._last or (now_us(), [])
        self.add(None, begin, peaks)

    def mark(self, name: str) -> None:
        """Note this moment."""
        self._marks.append((str(name), now_us()))

    def peaks(self) -> list[int]:
        """For each device the most bytes that were ever allocated."""
        return [peak for _, _, peak in self._levels()]

    def add(
        self, name: str | None, begin_us: int, peaks_before: list[int], shape: Mapping[str, int] | None = None
    ) -> None:
        """Note a step that ends now."""
        levels = self._levels()
        peaks = [peak for _, _, peak in levels]
        with self._lock:
            end_us = now_us()
            row = {
                "name": str(self._count) if name is None else str(name),
                "begin_us": begin_us,
                "end_us": end_us,
                # torch keeps one peak, which is the program's own to reset: this step's is known if it raised it.
                "peak_allocated": [
                    peak if index >= len(peaks_before) or peak > peaks_before[index] else None
                    for index, peak in enumerate(peaks)
                ],
                "allocated": [allocated for allocated, _, _ in levels],
                "reserved": [reserved for _, reserved, _ in levels],
            }
            if shape:
                row["shape"] = dict(shape)
            self._count += 1
            self._steps.append(row)
            self._last = (end_us, peaks)

    def _levels(self) -> list[tuple[int, int, int]]:
        try:
            if not self._backend.is_up():
                return []
            if not self._devices or self._count % _LOOK_AGAIN == 0:
                self._devices = sorted({self._backend.current_device(), *self._backend.devices_in_use()})
            known = {device: self._backend.levels(device) for device in self._devices}
            return [known.get(device, (0, 0, 0)) for device in range(max(known) + 1)]
        except Exception:
            return []

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """The dump's ``steps`` and ``marks``; a step that is underway is among them."""
        with self._lock:
            steps = list(self._steps)
            marks = [{"name": name, "time_us": time_us} for name, time_us in self._marks]
        if self._open is not None:
            steps.append(self._open.so_far(len(steps)))
        return {"steps": steps, "marks": marks}


class Step:
    """One step underway."""

    def __init__(self, step_log: StepLog, name: str | None, shape: Mapping[str, int]) -> None:
        self._step_log: StepLog | None = step_log
        self._name, self._shape = name, shape
        self._begin_us = now_us()
        self._peaks = step_log.peaks()

    def end(self) -> None:
        """End the step, if it has not ended yet."""
        step_log, self._step_log = self._step_log, None
        if step_log is not None:
            step_log.add(self._name, self._begin_us, self._peaks, self._shape)
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
