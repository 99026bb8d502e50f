"""Attributes that no code which may still run asks for; tensors on the CPU stand for those on a device."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the census asks torch's tensors")
pytestmark = pytest.mark.torch
PROGRAM = Path(__file__).parent / "fixtures" / "idle_attributes.py"
CASES = {
    # `restore` was for the constructor alone and `distil` is over; `report` and a property are to come.
    "trainer": {"checkpoint": 16, "teacher": 16, "shown": 4},
    "hook": {"checkpoint": 16, "shown": 4},
    # Calls that have ended name it, and come not again.
    "failure": {"checkpoint": 16, "teacher": 16, "curve": 64, "average": 128, "noise": 8, "shown": 4},
    "text": {},
    # What `forward` asks for it has stored before. It may be called again, as a library knows it by its name.
    "probe": {"drawn": 32},
    "first": {},
    "quiet": {"drawn": 32},
    "dataclass": {"first": 16},
    "slots": {"kept": 16},
    "function": {"scores": 16},
    # A decorated method is not called again either, unless somebody keeps it.
    "wrapped": {"reference": 16},
    "known": {},
}
"""What is idle in each program: KiB by attribute."""


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python 3.14 keeps references that it does not count")
@pytest.mark.parametrize("which", CASES)
def test_what_no_code_to_come_names(which):
    done = subprocess.run([sys.executable, PROGRAM, which, "anchor"], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    assert json.loads(done.stdout) == CASES[which]
