"""Prints how long oomscope takes, for a small snapshot and for a large one, and how that grows.

The large one is a capture of 1.6 million entries beside the repository; without it, its rows are skipped.
"""

from __future__ import annotations

import argparse
import gc
import pickle
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from oomscope.units import format_bytes, format_count
from tests.benchmarks.measuring import Cost, floor, in_turn, measure, oomscope
from tests.samples import sample, sample_path
from tests.shared import SHARED, unpacked

GROWTH = (100_000, 400_000, 800_000, 1_621_703)


class Row(NamedTuple):
    """One line of the table."""

    what: str
    cost: Cost
    goal: str
    note: str = ""


def small(folder: Path) -> Iterator[Row]:
    """What a small snapshot costs, whole processes."""
    from oomscope.export.memory_viz import to_pickle

    path = folder / "small.pickle"
    path.write_bytes(to_pickle(sample("oom_fragmentation")))
    entries = f"{format_count(sample('oom_fragmentation').entries)} entries"
    yield Row("python -c pass", measure([sys.executable, "-c", "pass"], runs=5), "")
    yield Row("import oomscope", measure([sys.executable, "-c", "import oomscope"], runs=5), "< 0.10 s")
    yield Row("oomscope --help", measure(oomscope("--help"), runs=5), "< 0.15 s")
    report = oomscope("report", str(path), "-o", "small.html", "--force")
    numpy, *costs = in_turn(
        [[sys.executable, "-c", "import numpy"], oomscope("summary", str(path)), report, [*report, "--no-whatif"]],
        runs=5, cwd=folder,
    )  # fmt: skip
    yield Row("import numpy", numpy, "")
    names = ("summary, small", "report, small", "report, small, --no-whatif")
    for name, cost, goal in zip(names, costs, ("< 2.1 x numpy", "< 5 x numpy", "< 5 x numpy"), strict=True):
        times = f"{cost.cpu_seconds / numpy.cpu_seconds:.1f} x cpu of numpy" if numpy.cpu_seconds else ""
        yield Row(name, cost, goal, f"{entries}, {times}")
    yield Row(
        "report, leak",
        measure(oomscope("report", str(sample_path("oom_leak_total_loss")), "-o", "l.html", "--force"), cwd=folder),
        "",
        _size(folder / "l.html"),
    )


def large(folder: Path, runs: int) -> Iterator[Row]:
    """What 1.6 million entries cost, against a bare `pickle.load`."""
    path = unpacked("big_history")
    command = oomscope("report", str(path), "-o", "large.html", "--force", "--no-whatif")
    base, cost = in_turn([floor(path), command], runs=runs, cwd=folder)
    yield Row("floor: pickle.load, large", base, "", format_bytes(path.stat().st_size))
    yield Row(
        "report, large, --no-whatif", cost, "< 1.5 x cpu, 0.4 x memory", _against(cost, base, folder / "large.html")
    )
    cost = measure(oomscope("report", str(path), "-o", "large.html", "--force"), runs=1, cwd=folder)
    yield Row(
        "report, large, with what-if", cost, "< 2.5 x cpu, 2 x with numba", _against(cost, base, folder / "large.html")
    )
    cost = measure(oomscope("summary", str(path)), runs=1)
    yield Row("summary, large", cost, "", _against(cost, base))


def growth(folder: Path) -> Iterator[Row]:
    """How time and memory grow with the trace: the last entries of the large capture."""
    gc.disable()
    with unpacked("big_history").open("rb") as file:
        whole = pickle.load(file)
    trace = whole["device_traces"][0]
    for entries in GROWTH:
        path = folder / f"{entries}.pickle"
        whole["device_traces"][0] = trace[-entries:]
        with path.open("wb") as file:
            pickle.dump(whole, file, protocol=4)
        base = measure(floor(path), runs=1)
        cost = measure(oomscope("report", str(path), "-o", "g.html", "--force", "--no-whatif"), runs=1, cwd=folder)
        yield Row(f"report, last {entries / 1e6:.1f} M entries", cost, "", _against(cost, base, folder / "g.html"))
        path.unlink()


def _against(cost: Cost, base: Cost, html: Path | None = None) -> str:
    memory = f", {cost.peak_bytes / base.peak_bytes:.2f} x memory" if cost.peak_bytes and base.peak_bytes else ""
    cpu = f" ({cost.cpu_seconds / base.cpu_seconds:.1f} x cpu)" if cost.cpu_seconds and base.cpu_seconds else ""
    return f"{cost.seconds / base.seconds:.1f} x time{cpu}{memory}" + (f", {_size(html)}" if html else "")


def _size(html: Path) -> str:
    return f"HTML {format_bytes(html.stat().st_size)}"


def show(row: Row) -> None:
    """Print one line."""
    peak = format_bytes(row.cost.peak_bytes) if row.cost.peak_bytes else ""
    cpu = f"{row.cost.cpu_seconds:.3f} s" if row.cost.cpu_seconds is not None else ""
    print(f"{row.what:<34}{row.cost.seconds:>9.3f} s{cpu:>11}{peak:>11}  {row.goal:<26}{row.note}", flush=True)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--runs", type=int, default=2, help="runs of the large snapshot, of which the best counts")
    parser.add_argument("--no-growth", action="store_true", help="leave out how time grows with the trace")
    options = parser.parse_args()
    print(f"{'what':<34}{'wall':>11}{'cpu':>11}{'peak':>11}  {'goal':<26}")
    with tempfile.TemporaryDirectory(prefix="oomscope-bench-") as name:
        folder = Path(name)
        for row in small(folder):
            show(row)
        if not SHARED.is_dir():
            print(f"the large snapshot is skipped: {SHARED} is not here")
            return 0
        for row in large(folder, options.runs):
            show(row)
        if not options.no_growth:
            for row in growth(folder):
                show(row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
