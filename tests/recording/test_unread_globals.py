"""Modules' variables that no code which may still run asks for; tensors on the CPU stand for those on a device."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the census asks torch's tensors")
pytestmark = pytest.mark.torch
if sys.version_info >= (3, 14):
    pytest.skip("Python 3.14 keeps references that it does not count", allow_module_level=True)

TABLES = """
import functools
import torch

_stored = {}
shown = {}


@functools.lru_cache(maxsize=8)
def table(kib):
    return torch.zeros(kib * 256)


def first(kib):
    return table(kib).sum()


def store(kib):
    _stored[kib] = torch.zeros(kib * 256)


def show(kib):
    shown[kib] = torch.zeros(kib * 256)


def read(kib):
    return shown[kib].sum()
"""
CENSUS = """
import sys
import torch
from oomscope.recording.census.walk import take_census


def census():
    taken = take_census(torch, device_type="cpu")
    assert taken.walk["complete"], taken.walk
    rows = [row for row in taken.unread if row["bytes"] >= 1 << 17]
    assert all(row["cache"] is row["holder"].endswith(": table") for row in rows), rows
    print(*sorted((row["holder"], row["bytes"] >> 10) for row in rows))

"""
WORK = """
def later():
    census()
    return {0}read(128)


def work():
    {0}first(512), {0}store(256), {0}show(128)
    return later()

"""
IMPORTED = CENSUS + "import tables" + WORK.format("tables.")


def told(folder: Path, script: str) -> str:
    """What the census says of the larger variables, the first time that `script` takes it."""
    (folder / "job.py").write_text(script)
    (folder / "tables.py").write_text(TABLES)
    done = subprocess.run(
        [sys.executable, str(folder / "job.py")],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )  # fmt: skip
    return done.stdout.splitlines()[0]


def test_what_an_imported_module_keeps_for_functions_that_are_not_called_again(tmp_path: Path) -> None:
    assert told(tmp_path, f"{IMPORTED}\nwork()") == "('tables: _stored', 256) ('tables: table', 512)"


def test_what_the_loop_that_goes_on_will_ask_for(tmp_path: Path) -> None:
    loop = "\nfor _ in range(2):\n    tables.first(512), tables.store(256), tables.show(128)\n    census()"
    assert told(tmp_path, CENSUS + "import tables" + loop) == ""


def test_a_name_that_is_made_at_run_time_may_be_any(tmp_path: Path) -> None:
    assert told(tmp_path, f"{IMPORTED}\nwork()\ngetattr(tables, '_'.join(sys.argv), None)") == ""


def test_what_is_looked_up_among_all_globals_may_be_any(tmp_path: Path) -> None:
    script = CENSUS + TABLES + WORK.format("")
    assert told(tmp_path, f"{script}\nwork()\nglobals().get(sys.argv[0])") == ""


def test_what_another_module_asks_for_by_name(tmp_path: Path) -> None:
    assert told(tmp_path, f"{IMPORTED}\nwork()\nprint(len(tables._stored))") == "('tables: table', 512)"


def test_what_a_script_keeps_for_functions_that_are_not_called_again(tmp_path: Path) -> None:
    script = CENSUS + TABLES + WORK.format("")
    assert told(tmp_path, f"{script}\nwork()") == "('job.py: _stored', 256) ('job.py: table', 512)"
    assert told(tmp_path, f"{script}\nwork()\nfirst(512)") == "('job.py: _stored', 256)"
