"""Try as many hostile files as there is time for: ``python -m tests.hostile.fuzz --cases 300000 --seconds 480``.

Several processes make and try cases (`tests.hostile.strategies`); how each case ended is counted. A case that ends in
anything but a report or one clear sentence, that is slow, or that ends its process is kept as a file, with a second
one that says what was wrong. The same seed makes the same batches of cases, whatever the number of processes.

Exit code: 0 where every case ended well, 1 where one did not.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.hostile.fuzz_worker import SHARES, Tally, kind_of, underway, work

HANG = 60.0
"""A process that has been at one case for so many seconds of wall time is ended."""


@dataclass(slots=True)
class Worker:
    """A process, what it sends through, and the batch that it is at."""

    process: BaseProcess
    connection: Connection
    batch: int


class Fuzzer:
    """Processes that try cases until there are enough of them or the time is over."""

    def __init__(self, jobs: int, seed: int, folder: Path) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._jobs, self._seed, self._folder = jobs, seed, folder
        self.tallies = {kind: Tally() for kind in SHARES}
        self.peak_kib = 0
        self._workers = [self._start(number) for number in range(jobs)]

    @property
    def cases(self) -> int:
        """How many cases have ended."""
        return sum(tally.ends.total() for tally in self.tallies.values())

    def run(self, cases: int, seconds: float) -> None:
        """Count until there are `cases`, or `seconds` of wall time are over."""
        start = said = time.monotonic()
        try:
            while self.cases < cases and time.monotonic() - start < seconds:
                self._step()
                if time.monotonic() - said > 20:
                    said = time.monotonic()
                    print(f"{said - start:5.0f} s  {self.cases:,} cases  {self.ends()}", flush=True)
        finally:
            for worker in self._workers:
                worker.process.kill()
                worker.process.join()
                self._case(worker).unlink(missing_ok=True)

    def _start(self, batch: int) -> Worker:
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=work, args=(theirs, batch, self._jobs, self._seed, self._folder), daemon=True
        )
        process.start()
        theirs.close()
        return Worker(process, ours, batch)

    def _step(self) -> None:
        ready = wait([worker.connection for worker in self._workers], timeout=1)
        for place, worker in enumerate(self._workers):
            if worker.connection in ready:
                try:
                    batch, kind, tally, peak = worker.connection.recv()
                except (EOFError, OSError):
                    self._workers[place] = self._lost(worker, "killed")
                    continue
                self.tallies[kind].add(tally)
                self.peak_kib = max(self.peak_kib, peak)
                worker.batch = batch + self._jobs
            elif self._hangs(worker):
                worker.process.kill()
                self._workers[place] = self._lost(worker, "hang")

    def _hangs(self, worker: Worker) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return time.time() - self._case(worker).stat().st_mtime > HANG
        return False

    def _case(self, worker: Worker) -> Path:
        return underway(self._folder, worker.process.pid or 0)

    def _lost(self, worker: Worker, end: str) -> Worker:
        """Keep the case at which `worker` ended, and start another at the batch after it."""
        worker.process.join()
        kind = kind_of(worker.batch)
        self.tallies[kind].ends[end] += 1
        name = self._folder / f"{end}-{self._seed}-{worker.batch}"
        with contextlib.suppress(FileNotFoundError):
            self._case(worker).replace(name.with_suffix(".bin"))
        name.with_suffix(".txt").write_text(f"{kind}\n{end}, exit code {worker.process.exitcode}\n")
        return self._start(worker.batch + self._jobs)

    def ends(self) -> dict[str, int]:
        """How many cases ended in which way."""
        ends = sum((tally.ends for tally in self.tallies.values()), start=Tally().ends)
        return dict(ends.most_common())


def table(tallies: dict[str, Tally]) -> str:
    """How the cases of each kind ended."""
    rows = [("kind", "cases", "reports", "sentences", "other", "ms a case", "slowest", "times the whole")]
    whole = Tally()
    for tally in tallies.values():
        whole.add(tally)
    for kind, tally in {**tallies, "all": whole}.items():
        cases, reports, sentences = tally.ends.total(), tally.ends["report"], tally.ends["sentence"]
        figures = f"{1000 * tally.cpu / max(cases, 1):.1f}", f"{tally.slowest:.2f} s", f"{tally.most_times:.1f}"
        other = cases - reports - sentences
        rows.append((kind, f"{cases:,}", f"{reports:,}", f"{sentences:,}", f"{other:,}", *figures))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    )


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=2000, help="how many at least (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so much wall time")
    parser.add_argument("--seed", type=int, default=0, help="other cases for another number (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (default: one a core)")
    parser.add_argument("--out", type=Path, help="folder for what ends wrongly (default: a new one in the temporary)")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Try cases, and say how they ended."""
    asked = arguments(words)
    folder = asked.out or Path(tempfile.mkdtemp(prefix="oomscope-fuzz-"))
    folder.mkdir(parents=True, exist_ok=True)
    fuzzer = Fuzzer(asked.jobs, asked.seed, folder)
    start = time.monotonic()
    fuzzer.run(asked.cases, asked.seconds)
    print(table(fuzzer.tallies))
    ends = fuzzer.ends()
    print(f"{time.monotonic() - start:.0f} s, seed {asked.seed}, largest process {fuzzer.peak_kib >> 10} MiB: {ends}")
    if set(ends) <= {"report", "sentence"}:
        return 0
    print(f"What ended wrongly is in {folder}.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
