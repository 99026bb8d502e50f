"""Where rows of steps go while the job runs: a file of JSON lines, or the program's own experiment tracker."""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TextIO

from oomscope.recording import process, writing
from oomscope.recording.saying import say_once
from oomscope.recording.step_rows import Row, merged

_PATTERN = "steps_{host}_rank{rank}_pid{pid}"
_FIGURES = ("allocated", "reserved", "peak_allocated", "peak_reserved")


class Tracker(Protocol):
    """Takes the rows; whatever it raises ends it, and nothing else."""

    def add(self, row: Row, number: int) -> None:
        """Take the row that ends with the step of this number."""

    def close(self) -> None:
        """There are no more."""


class Trackers:
    """All that were asked for, each given one row an interval at most: what comes between is merged into it."""

    def __init__(self, names: tuple[str, ...], folder: Path, interval: float) -> None:
        self._trackers: list[Tracker] = [KINDS[name](folder) for name in names]
        self._interval = interval
        self._next_at = 0.0
        self._waiting: tuple[Row, int] | None = None

    def add(self, row: Row, number: int) -> None:
        """Take the row of a step."""
        whole = row if self._waiting is None else merged(self._waiting[0], row)
        self._waiting = whole, number
        if time.monotonic() >= self._next_at:
            self._flush()

    def close(self) -> None:
        """Pass on what waits, and end."""
        self._flush()
        for tracker in self._trackers:
            self._try(tracker, tracker.close)
        self._trackers = []

    def _flush(self) -> None:
        if self._waiting is None:
            return
        (row, number), self._waiting = self._waiting, None
        for tracker in list(self._trackers):
            self._try(tracker, lambda tracker=tracker: tracker.add(row, number))
        self._next_at = time.monotonic() + self._interval

    def _try(self, tracker: Tracker, do: Any) -> None:
        try:
            do()
        except Exception as problem:
            if tracker in self._trackers:
                self._trackers.remove(tracker)
            name = type(tracker).__name__
            say_once(name, f"steps are no longer written to {name} ({type(problem).__name__}: {problem})")


class JsonLines:
    """A file with a line a row, beside the dumps. It is whole up to its last line, however the job ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: TextIO | None = None

    def add(self, row: Row, number: int) -> None:
        """Write it and hand it to the system."""
        if self._file is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            name = writing.file_name(_PATTERN, "steps", 0) + ".jsonl"
            self._file = (self._folder / name).open("a", encoding="utf-8")
        self._file.write(json.dumps({"step": number, **row}) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class TensorBoard:
    """torch's own writer, into ``tensorboard`` beside the dumps, a folder for each rank."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "tensorboard" / f"rank{process.rank() or 0}"
        self._writer: Any = None

    def add(self, row: Row, number: int) -> None:
        """Add the row's scalars."""
        if self._writer is None:
            self._writer = importlib.import_module("torch.utils.tensorboard").SummaryWriter(str(self._folder))
        for name, value in scalars(row).items():
            self._writer.add_scalar(name, value, number, walltime=row["end_us"] / 1e6)

    def close(self) -> None:
        """Write what waits."""
        if self._writer is not None:
            self._writer.close()


class WeightsAndBiases:
    """The program's own run, where it has one: the figures go along with what it logs next."""

    def __init__(self, folder: Path) -> None:
        pass

    def add(self, row: Row, number: int) -> None:  # noqa: ARG002 - the run counts its own steps
        """Add the row's figures to the step that the run is at."""
        run = getattr(sys.modules.get("wandb"), "run", None)
        if run is not None:
            run.log(scalars(row), commit=False)

    def close(self) -> None:
        """The run is the program's to end."""


class MLflow:
    """The program's own run, where it has one."""

    def __init__(self, folder: Path) -> None:
        pass

    def add(self, row: Row, number: int) -> None:
        """Log the row's figures, without waiting for the server."""
        mlflow: Any = sys.modules.get("mlflow")
        run = mlflow.active_run() if mlflow is not None else None
        if run is not None:
            mlflow.log_metrics(scalars(row), step=number, synchronous=False)

    def close(self) -> None:
        """The run is the program's to end."""


KINDS: Mapping[str, Any] = {
    "jsonl": JsonLines,
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
    "mlflow": MLflow,
}


def scalars(row: Row) -> dict[str, float]:
    """The figures of a row that are known, by names such as ``oomscope/cuda0/allocated_bytes``."""
    found = {
        f"oomscope/cuda{device}/{figure}_bytes": float(count)
        for figure in _FIGURES
        for device, count in enumerate(row[figure])
        if count is not None
    }
    if row["retries"] is not None:
        found["oomscope/retries"] = float(row["retries"])
    return found
