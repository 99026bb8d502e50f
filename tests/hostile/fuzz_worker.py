"""One process of the fuzzer: it tries batches of cases and tells the process that started it how each ended."""

from __future__ import annotations

import hashlib
import os
import resource
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.hostile.outcomes import WrongEndError, outcome
from tests.hostile.strategies import BASES, KINDS, WHOLE, Asked, Case, asked

SHARES = {
    "bytes of containers changed": 6,
    "soups of instructions": 6,
    "documents changed": 4,
    "histories that cannot be": 3,
    "real captures changed": 1,
}
"""How many of twenty batches are of each kind."""

_PLAN = [kind for turn in range(max(SHARES.values())) for kind, share in SHARES.items() if turn < share]
BATCH = 100
"""Cases a batch. Hypothesis remembers all cases of one, so that it should not be endless."""

MEMORY = 8 << 30
TIMES, AT_LEAST, SECONDS = 5.0, 0.25, 5.0
"""A case is slow that takes so many times the CPU time of its whole file, and this many seconds; or so many seconds.

What any file may cost at most is no hang: a chart that its whole file has no reason for takes 0.07 s.
"""
LARGE = 256
"""MiB by which a case may raise the peak of its process: all files that are tried are small."""

STARTS = frozenset({"os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen", "socket.connect"})
"""What no reading of a file does: events of ``sys.addaudithook``."""


@dataclass(slots=True)
class Tally:
    """How the cases of one kind ended, in which CPU time (seconds)."""

    ends: Counter[str] = field(default_factory=Counter)
    cpu: float = 0.0
    slowest: float = 0.0
    most_times: float = 0.0

    def add(self, other: Tally) -> None:
        """Count the cases of `other` too."""
        self.ends.update(other.ends)
        self.cpu += other.cpu
        self.slowest, self.most_times = max(self.slowest, other.slowest), max(self.most_times, other.most_times)


def kind_of(batch: int) -> str:
    """The kind of all cases of a batch."""
    return _PLAN[batch % len(_PLAN)]


def underway(folder: Path, pid: int) -> Path:
    """Where the process `pid` keeps the case that it is at."""
    return folder / f"underway.{pid}"


_started: list[str] = []
"""What was started in spite of that."""


def work(connection: Connection, first: int, step: int, base_seed: int, folder: Path) -> None:
    """Try every `step`-th batch from `first` on, and send ``(batch, kind, Tally, peak memory in KiB)`` after each.

    The case that is underway stands in `folder`, where it is left if this process ends by it.
    """
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    trial = Trial(folder)
    trial.warm()
    sys.addaudithook(_no_code)
    batch = first
    while True:
        kind = kind_of(batch)
        tally = _batch(trial, kind, base_seed * 1_000_003 + batch)
        connection.send((batch, kind, tally, _peak_kib()))
        batch += step


def _no_code(event: str, arguments: tuple[Any, ...]) -> None:
    if event in STARTS:
        _started.append(f"{event}{arguments!r}"[:200])
        raise PermissionError(f"{event}, while a file was read")


def _batch(trial: Trial, kind: str, number: int) -> Tally:
    tally = Tally()

    def body(case: Case, how: Asked) -> None:
        trial.run(case, how, kind, tally)

    # Nothing fails in there, so that hypothesis neither shrinks nor stops: what is found is kept as a file.
    run = settings(
        max_examples=BATCH,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )(given(KINDS[kind], asked)(body))
    seed(number)(run)()
    return tally


class Trial:
    """What tries cases, with the CPU seconds that whole files take."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._underway = underway(folder, os.getpid())
        self._whole: dict[tuple[bytes, Asked], float] = {}
        self._quickest = 0.0

    def warm(self) -> None:
        """Load whatever is loaded at its first use, and see what the smallest whole file takes."""
        for form in ("html", "md", "json", "text"):
            outcome(WHOLE[False], formats=(form,), whatif=True, redact=True)
        self._quickest = min(_tried(BASES[0], Asked("json", False, False))[0] for _ in range(5))

    def run(self, case: Case, how: Asked, kind: str, tally: Tally) -> None:
        """Try one case and count how it ends; what ends wrongly or is slow is kept as a file."""
        self._underway.write_bytes(case.data)
        before = _peak_kib()
        taken, end, said = _tried(case.data, how)
        grown = (_peak_kib() - before) >> 10
        times = 0.0
        if end in ("report", "sentence") and taken > TIMES * self._quickest:
            times = taken / self._whole_seconds(case.whole, how)
            if _is_slow(taken, times):  # the machine may have been busy: the best of three counts
                taken = min(taken, *(_tried(case.data, how)[0] for _ in range(2)))
                times = taken / self._whole_seconds(case.whole, how, again=True)
            if _is_slow(taken, times):
                end, said = f"slow {end}", f"{taken:.2f} s, {times:.1f} times the whole file"
        if grown > LARGE:
            end, said = f"large {end}", f"{grown:,} MiB. {said}"
        if end not in ("report", "sentence"):
            self._keep(case, how, kind, f"{end}: {said}")
        tally.ends[end] += 1
        tally.cpu += taken
        tally.slowest, tally.most_times = max(tally.slowest, taken), max(tally.most_times, times)

    def _whole_seconds(self, whole: bytes, how: Asked, *, again: bool = False) -> float:
        key = (whole, how)
        if key not in self._whole or again:
            self._whole[key] = max(_tried(whole, how)[0], self._whole.get(key, 0.0))
        return max(self._whole[key], self._quickest)  # a whole file may be refused at once

    def _keep(self, case: Case, how: Asked, kind: str, said: str) -> None:
        name = f"{kind.split()[0]}-{hashlib.sha256(case.data).hexdigest()[:12]}"
        (self._folder / f"{name}.bin").write_bytes(case.data)
        (self._folder / f"{name}.txt").write_text(f"{kind}\n{how}\n{said}\n", errors="backslashreplace")


def _peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _is_slow(taken: float, times: float) -> bool:
    return taken > SECONDS or (taken > AT_LEAST and times > TIMES)


def _tried(data: bytes, how: Asked) -> tuple[float, str, str]:
    """CPU seconds, the end, and what was wrong with it."""
    start = time.process_time()
    try:
        end, said = outcome(data, formats=(how.form,), whatif=how.whatif, redact=how.redact), ""
    except WrongEndError as error:
        end, said = "wrong", str(error)
    if _started:
        end, said = "code", _started.pop()
    return time.process_time() - start, end, said
