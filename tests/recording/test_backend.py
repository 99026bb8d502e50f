"""What is asked of torch itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the backend asks torch")
pytestmark = pytest.mark.torch

ROOT = Path(__file__).resolve().parents[2]
SYMBOLIZE = """
import sys, torch
from torch.utils._traceback import CapturedTraceback
from oomscope.recording.backend import _without_loading_inductor
captured = CapturedTraceback.extract()
with _without_loading_inductor(torch):
    assert captured.summary()[-1].lineno == 5
assert "torch._inductor" not in sys.modules
assert torch._inductor is sys.modules["torch._inductor"]  # as before, on first use
with _without_loading_inductor(torch):
    assert torch._inductor is sys.modules["torch._inductor"]
"""


def test_writing_out_frames_does_not_import_the_compiler():
    """The C++ that writes out a snapshot's Python frames is the one that writes out any captured traceback."""
    done = subprocess.run([sys.executable, "-c", SYMBOLIZE], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
