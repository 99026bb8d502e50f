"""Prints what many snapshots cost: 64 ranks by one process and by two, and thousands of digests put together.

Run it as ``python -m tests.benchmarks.bench_many``, on a machine with nothing else to do: the gain of a second process
is measured by the clock. Ends with 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from oomscope.analysis.compare.digest import Digest, as_document
from oomscope.analysis.compare.figures import MOST_SITES, SiteFigure
from oomscope.analysis.records import Location
from oomscope.commands.common.many import digest_file
from oomscope.units import format_bytes
from tests.benchmarks.measuring import Cost, measure, oomscope
from tests.shared import SHARED, unpacked

CAPTURE = "whatif.oom_varlen_training.default"
"""12 MB, 130,000 entries."""
RANKS = 64
LEAST_GAIN = 1.6
REDUCED, MOST_SECONDS = 1_000, 5.0
KEPT, MOST_BYTES = 5_000, 1 << 30


def ranks_folder(folder: Path) -> Path:
    """64 names of one file, each another rank's."""
    job = folder / "job"
    job.mkdir()
    for rank in range(RANKS):
        os.link(unpacked(CAPTURE), job / f"oom_rank{rank}.pickle") if _same_disk(folder) else (
            job / f"oom_rank{rank}.pickle"
        ).symlink_to(unpacked(CAPTURE))
    return job


def _same_disk(folder: Path) -> bool:
    return folder.stat().st_dev == unpacked(CAPTURE).stat().st_dev


def large_digest() -> Digest:
    """A real digest, filled up with as many sites as one can have."""
    (one,), _ = digest_file(str(unpacked(CAPTURE)))
    sites = tuple(
        SiteFigure(where, Location("train.py", 40, "train_step"), None, (MOST_SITES - number) << 20, "activation")
        for number in range(MOST_SITES)
        for where in [Location(f"model/blocks/layer_{number % 40}.py", 100 + number, f"forward_{number}")]
    )
    return replace(one, sites=sites)


def digests(one: Digest, count: int) -> Iterable[Digest]:
    """Those of as many ranks, each of its own size."""
    for rank in range(count):
        peak = (one.peak_allocated or 0) + (rank % 17 << 20)
        yield replace(one, rank=rank, rank_source="recorded", file=f"/job/oom_rank{rank}.pickle", peak_allocated=peak)


def show(what: str, cost: Cost, goal: str, note: str = "") -> None:
    """Print one line."""
    cpu = f"{cost.cpu_seconds:.2f} s" if cost.cpu_seconds is not None else ""
    peak = format_bytes(cost.peak_bytes) if cost.peak_bytes else ""
    print(f"{what:<44}{cost.seconds:>9.2f} s{cpu:>11}{peak:>11}  {goal:<14}{note}", flush=True)


def measure_ranks(folder: Path) -> bool:
    """64 snapshots; whether two processes gain enough, and none takes more than one file does."""
    job = ranks_folder(folder)
    command = oomscope("ranks", str(job), "-f", "json")
    single = measure(oomscope("ranks", str(job / "oom_rank0.pickle"), "-f", "json"), runs=1)
    show("1 snapshot of 12 MB", single, "")
    alone = measure([*command, "--processes", "1"], runs=1)
    show(f"{RANKS} snapshots, one process", alone, "", f"{RANKS / alone.seconds:.1f} files/s")
    both = measure([*command, "--processes", "2"], runs=1)
    gain = alone.seconds / both.seconds
    show(f"{RANKS} snapshots, two processes", both, f"{LEAST_GAIN} x faster", f"{gain:.2f} x")
    bounded = (both.peak_bytes or 0) < 1.5 * (single.peak_bytes or 1)
    return gain >= LEAST_GAIN and bounded


def measure_digests(folder: Path) -> bool:
    """Digests put together, from a file each and from one; whether that is quick and small enough."""
    one, good = large_digest(), True
    for name, count, apart in (("reduced", REDUCED, True), ("reduced", REDUCED, False), ("kept", KEPT, False)):
        place = folder / f"{name}_{apart}"
        place.mkdir()
        made = list(digests(one, count))
        parts = [[each] for each in made] if apart else [made]
        for number, part in enumerate(parts):
            (place / f"{number}.digest.json").write_text(json.dumps(as_document(part)))
        size = sum(file.stat().st_size for file in place.iterdir())
        cost = measure(oomscope("ranks", str(place), "-f", "json"), runs=1)
        goal = f"< {MOST_SECONDS:g} s" if name == "reduced" else f"< {format_bytes(MOST_BYTES)}"
        show(f"{count} digests in {len(parts)} files", cost, goal, format_bytes(size))
        good &= cost.seconds < MOST_SECONDS if name == "reduced" else (cost.peak_bytes or 0) < MOST_BYTES
    return good


def main() -> int:
    """Measure and print."""
    argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_many", description=__doc__).parse_args()
    if not SHARED.is_dir():
        print(f"skipped: the capture is not here ({SHARED})")
        return 0
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    print(f"{os.cpu_count()} cores, load {load} before the start")
    print(f"{'what':<44}{'wall':>11}{'cpu':>11}{'largest':>11}")
    with tempfile.TemporaryDirectory(prefix="oomscope-bench-") as name:
        quick = measure_ranks(Path(name))
        small = measure_digests(Path(name))
    return int(not (quick and small))


if __name__ == "__main__":
    sys.exit(main())
