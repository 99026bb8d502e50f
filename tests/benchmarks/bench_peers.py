"""Prints how oomscope compares with a bare `pickle.load` and with the other readers of snapshots, on one file.

``python -m tests.benchmarks.bench_peers [SNAPSHOT]``. The others are installed into an environment of their own,
``.venv-peers``, the first time; those that cannot be had are named. torch-snapkit is not among them: it sends
snapshots, and reads none. Nothing here is a dependency of oomscope.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from oomscope.units import format_bytes
from tests.benchmarks.measuring import Cost, floor, measure, oomscope
from tests.shared import SHARED, unpacked

PACKAGES = ("torch", "ptmem", "pt-snap-cli", "stormlog")
DEFAULT = "whatif.oom_varlen_training.default"
ENVIRONMENT = Path(__file__).resolve().parents[2] / ".venv-peers"
_STORMLOG = (
    "import pickle, sys, pathlib; from stormlog.attributed_viz import render_attributed_html as render\n"
    "pathlib.Path(sys.argv[2]).write_text(render(pickle.load(open(sys.argv[1], 'rb')), {}))"
)


class Reader(NamedTuple):
    """One way to read a snapshot.

    Attributes:
        name: as it calls itself.
        command: what is measured; makes `output`, where that is not None.
        output: the file or folder it writes.
        peak: the most allocated bytes by its own account, as text, with a note on how exact that is; None: it has none.
        shows: what one gets.
    """

    name: str
    command: list[str]
    output: Path | None
    peak: Callable[[], str] | None
    shows: str


def readers(path: Path, folder: Path, peers: Path) -> list[Reader]:
    """All that are compared, on `path`."""
    python, page = str(peers / "bin" / "python"), folder / "report.html"
    tree, viz, storm = folder / "database", folder / "viz.html", folder / "storm.html"
    quick = folder / "quick.html"
    return [
        Reader("pickle.load, collector off", floor(path), None, None, "nothing: what reading costs at the least"),
        Reader(
            "oomscope summary", oomscope("summary", str(path)), None, lambda: _own_peak(path), "verdict, fix, timeline"
        ),
        Reader(
            "oomscope report, no what-if",
            oomscope("report", str(path), "-o", str(quick), "--force", "--no-whatif"),
            quick, lambda: _own_peak(path), "the page, without other settings",
        ),
        Reader(
            "oomscope report",
            oomscope("report", str(path), "-o", str(page), "--force"),
            page, lambda: _own_peak(path), "verdict, fixes, timeline, attribution, replays",
        ),
        Reader(
            "torch _memory_viz trace_plot",
            [python, "-m", "torch.cuda._memory_viz", "trace_plot", str(path), "-o", str(viz)],
            viz, None, "a timeline that the browser computes, by stack",
        ),
        Reader(
            "ptmem --summary", [str(peers / "bin" / "ptmem"), "-s", str(path)], None,
            lambda: _found(r"Peak:\s+(\S+)", [str(peers / "bin" / "ptmem"), "-s", str(path)]), "totals in a terminal",
        ),
        Reader(
            "pt-snap import + report peak-memory",
            ["sh", "-c", f"{peers}/bin/pt-snap import {path} -o {tree} --no-focus --json && {_pt_snap(peers, tree)}"],
            tree, lambda: _found(r'"peak_allocated": (\d+)', ["sh", "-c", _pt_snap(peers, tree)]),
            "a database, peak by stack",
        ),
        Reader(
            "stormlog", [python, "-c", _STORMLOG, str(path), str(storm)], storm, None, "a timeline with tensor names"
        ),
    ]  # fmt: skip


def _pt_snap(peers: Path, tree: Path) -> str:
    return f"{peers}/bin/pt-snap report peak-memory {tree}/*.db --metric allocated --json"


def _own_peak(path: Path) -> str:
    command = oomscope("report", str(path), "-f", "json", "--no-whatif")
    document = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return str(max(device["peak"]["allocated"] for device in document["devices"] if device["peak"]))


def _found(pattern: str, command: Sequence[str]) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    match = re.search(pattern, done.stdout)
    return match[1] if match else "–"


def torchs_peak(path: Path) -> str:
    """What torch itself counted; – where that was not kept beside the capture."""
    truth = SHARED / f"{path.name.removesuffix('.pickle')}.truth.json"
    if not truth.is_file():
        return "–"
    return str(json.loads(truth.read_text(encoding="utf-8"))["stats"]["allocated_bytes.all.peak"])


def install(peers: Path) -> list[str]:
    """Install the others; those that could not be."""
    if not (peers / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(peers)], check=True)
    missing = []
    for package in PACKAGES:
        show = [str(peers / "bin" / "python"), "-m", "pip", "show", "-q", package]
        if subprocess.run(show, check=False, capture_output=True).returncode:
            done = subprocess.run([*show[:3], "install", "-q", package], check=False, capture_output=True)
            missing += [package] if done.returncode else []
    return missing


def _size(output: Path | None) -> str:
    if output is None or not output.exists():
        return "–"
    files = [output] if output.is_file() else [file for file in output.rglob("*") if file.is_file()]
    return format_bytes(sum(file.stat().st_size for file in files))


def _row(reader: Reader, runs: int) -> str:
    try:
        cost: Cost = measure(reader.command, runs=runs)
        peak = reader.peak() if reader.peak is not None else "–"
    except subprocess.CalledProcessError as failed:
        return f"| {reader.name} | failed ({failed.returncode}) | | | | |"
    memory = format_bytes(cost.peak_bytes) if cost.peak_bytes else "–"
    cpu = f"{cost.cpu_seconds:.2f} s" if cost.cpu_seconds is not None else "–"
    columns = (reader.name, f"{cost.seconds:.2f} s", cpu, memory, _size(reader.output), peak, reader.shows)
    return f"| {' | '.join(columns)} |"


def main() -> int:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_peers", description=__doc__)
    parser.add_argument("snapshot", nargs="?", help="an uncompressed pickle; by default a capture of 11.8 MB")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--peers", type=Path, default=ENVIRONMENT, help="the environment of the others")
    options = parser.parse_args()
    if options.snapshot is None and not SHARED.is_dir():
        print(f"the capture is not here ({SHARED}): name a snapshot")
        return 1
    path = Path(options.snapshot) if options.snapshot else unpacked(DEFAULT)
    missing = install(options.peers)
    print(f"{path.name}, {format_bytes(path.stat().st_size)}; peak by torch's own count: {torchs_peak(path)}")
    if missing:
        print(f"not installed: {', '.join(missing)}")
    print("| | wall | cpu | peak memory | output | peak allocated | shows |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="oomscope-peers-") as name:
        named = Path(name, "snapshot.pickle")  # some read no file without this suffix
        named.symlink_to(path.resolve())
        for number, reader in enumerate(readers(named, Path(name), options.peers)):
            if number == 0 or shutil.which(reader.command[0]):
                print(_row(reader, options.runs), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
