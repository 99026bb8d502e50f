"""Wall time and peak memory of whole processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FLOOR = "import gc, pickle, sys; gc.disable(); pickle.load(open(sys.argv[1], 'rb'))"
"""A bare `pickle.load` with the cyclic collector off: what reading the file costs at the very least."""

# The child is waited for by a process of its own, so that the peak is of this child and of no earlier one.
_WRAPPER = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_maxrss * (1 if sys.platform == "darwin" else 1024), used.ru_utime + used.ru_stime)
sys.exit(code)
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process took: the least time of some runs, and the most memory of any.

    On a machine with other work, the processor's time says more than the clock's.
    """

    seconds: float
    cpu_seconds: float | None
    peak_bytes: int | None


def oomscope(*arguments: str) -> list[str]:
    """The command line of this very checkout."""
    return [sys.executable, "-m", "oomscope", *arguments]


def floor(path: Path) -> list[str]:
    """The command that sets the floor for `path`."""
    return [sys.executable, "-c", FLOOR, str(path)]


def measure(command: list[str], *, runs: int = 3, cwd: Path | None = None) -> Cost:
    """The cost of `command`, after one run to warm the caches where there are several."""
    return in_turn([command], runs=runs, cwd=cwd)[0]


def in_turn(commands: Sequence[list[str]], *, runs: int = 3, cwd: Path | None = None) -> list[Cost]:
    """The cost of each of `commands`, run one after the other again and again: what else is busy is fair to all."""
    rounds = [[_once(command, cwd) for command in commands] for _ in range(runs + (runs > 1))][runs > 1 :]
    return [_best(costs) for costs in zip(*rounds, strict=True)]


def _best(costs: Sequence[Cost]) -> Cost:
    peaks = [cost.peak_bytes for cost in costs if cost.peak_bytes is not None]
    cpu = [cost.cpu_seconds for cost in costs if cost.cpu_seconds is not None]
    return Cost(min(cost.seconds for cost in costs), min(cpu, default=None), max(peaks, default=None))


def _once(command: list[str], cwd: Path | None) -> Cost:
    # Where Python may keep no bytecode, every run would compile hundreds of modules: nobody's usual start.
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    if os.name == "nt":
        started = time.perf_counter()
        subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.DEVNULL, env=kept)
        return Cost(time.perf_counter() - started, None, None)
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-S", "-c", _WRAPPER, *command],
        cwd=cwd, check=True, capture_output=True, text=True, env=kept,
    )  # fmt: skip
    seconds = time.perf_counter() - started - _wrapper_seconds()
    peak, cpu = done.stdout.split()
    return Cost(seconds, float(cpu), int(peak))


@cache
def _wrapper_seconds() -> float:
    """What the wrapper itself takes."""
    bare = [sys.executable, "-S", "-c", ""]
    return _fastest([sys.executable, "-S", "-c", _WRAPPER, *bare]) - _fastest(bare)


def _fastest(command: list[str]) -> float:
    times = []
    for _ in range(5):
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - started)
    return min(times)
