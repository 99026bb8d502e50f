"""What `oomscope export` writes, and the snapshots that it is tried on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from oomscope.analysis.study import SnapshotStudy
from oomscope.commands.common.errors import run
from oomscope.model import Snapshot
from oomscope.reading import load
from tests.builders import block, entry, frame, loaded, segment
from tests.samples import BUNDLED, SAMPLES, bundled_path, sample_path

ALL = [*((name, sample_path(name)) for name in SAMPLES), *((name, bundled_path(name)) for name in BUNDLED)]
"""Name and file of every snapshot in the repository, from the bare allocator and from the recorder."""
IDS = [path.parent.name + "-" + name for name, path in ALL]
HOSTILE = "=cmd|' /C calc'!A0\u202e\ud800</script>\x1b[31m,\"\n"
"""A name that a spreadsheet would run, that turns text around, that no encoding has, and that a terminal obeys."""


def exported(path: Path | str, folder: Path, form: str, *options: str) -> Path:
    """The file that ``oomscope export`` makes of `path`."""
    output = folder / f"{form}.out"
    assert run(["export", str(path), "--to", form, "-o", str(output), *options]) == 0
    return output


def exported_json(path: Path | str, folder: Path, form: str, *options: str) -> Any:
    """The same, as the JSON that it is."""
    return json.loads(exported(path, folder, form, *options).read_text(encoding="utf-8"))


def study_of(path: Path) -> SnapshotStudy:
    """The study of the snapshot in `path`."""
    return SnapshotStudy(load(path))


def hostile_snapshot() -> Snapshot:
    """Two live blocks and one that is gone, on a device whose frames bear the worst of names."""
    frames = [frame(HOSTILE, 3, HOSTILE), frame("main", 1, "/home/me/train.py")]
    base, size = 0x7F0000000000, 2 << 20
    trace = [
        entry("segment_alloc", base, 20 * size, frames=frames),
        entry("alloc", base, size, frames=frames),
        entry("alloc", base + size, size, frames=frames),
        entry("alloc", base + 2 * size, size),
        entry("free_requested", base + size, size),
        entry("free_completed", base + size, size),
        entry("oom", 1 << 20, 900 << 20, frames=frames),
    ]
    for number, item in enumerate(trace):
        item["time_us"] = 1_700_000_000_000_000 + 10 * number
    blocks = [block(size, frames=frames), block(size, "inactive"), block(size), block(17 * size, "inactive")]
    return loaded([segment(base, blocks, frames=frames)], [trace])
