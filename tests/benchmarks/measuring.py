"""Wall time and peak memory of whole processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

FLOOR = "import gc, pickle, sys; gc.disable(); pickle.load(open(sys.argv[1], 'rb'))"
"""A bare `pickle.load` with the cyclic collector off: what reading the file costs at the very least."""

# The child is waited for by a process of its own, so that the peak is of this child and of no earlier one.
_WRAPPER = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(peak * (1 if sys.platform == "darwin" else 1024))
sys.exit(code)
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process took: the least wall time of some runs, and the most memory of any."""

    seconds: float
    peak_bytes: int | None


def oomscope(*arguments: str) -> list[str]:
    """The command line of this very checkout."""
    return [sys.executable, "-m", "oomscope", *arguments]


def floor(path: Path) -> list[str]:
    """The command that sets the floor for `path`."""
    return [sys.executable, "-c", FLOOR, str(path)]


def measure(command: list[str], *, runs: int = 3, cwd: Path | None = None) -> Cost:
    """The cost of `command`, after one run to warm the caches where there are several."""
    costs = [_once(command, cwd) for _ in range(runs + (runs > 1))][runs > 1 :]
    peaks = [cost.peak_bytes for cost in costs if cost.peak_bytes is not None]
    return Cost(min(cost.seconds for cost in costs), max(peaks, default=None))


def _once(command: list[str], cwd: Path | None) -> Cost:
    if os.name == "nt":
        started = time.perf_counter()
        subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.DEVNULL)
        return Cost(time.perf_counter() - started, None)
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-S", "-c", _WRAPPER, *command], cwd=cwd, check=True, capture_output=True, text=True
    )
    return Cost(time.perf_counter() - started - _wrapper_seconds(), int(done.stdout))


def _wrapper_seconds(_cache: list[float] = []) -> float:  # noqa: B006 - measured once a process
    """What the wrapper itself takes."""
    if not _cache:
        times = []
        for _ in range(5):
            started = time.perf_counter()
            subprocess.run(
                [sys.executable, "-S", "-c", _WRAPPER, sys.executable, "-S", "-c", ""], check=True, stdout=-3
            )
            times.append(time.perf_counter() - started)
        bare = []
        for _ in range(5):
            started = time.perf_counter()
            subprocess.run([sys.executable, "-S", "-c", ""], check=True)
            bare.append(time.perf_counter() - started)
        _cache.append(min(times) - min(bare))
    return _cache[0]
