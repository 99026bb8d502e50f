"""Budgets of tests on a real card: `pytest.mark.gpu_memory` in a session of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from textwrap import dedent

import pytest

pytestmark = pytest.mark.gpu
PLUGIN = "oomscope.testing.pytest_plugin"
INSTALLED = any(one.value == PLUGIN for one in metadata.entry_points(group="pytest11"))

SOURCE = """
    import pytest
    import torch

    MIB = 1 << 20

    @pytest.mark.gpu_memory(max_peak="64 MiB")
    def test_within():
        torch.empty(32 * MIB, dtype=torch.uint8, device="cuda")

    @pytest.mark.gpu_memory(max_peak="64 MiB")
    def test_beyond():
        kept = torch.empty(96 * MIB, dtype=torch.uint8, device="cuda")
        assert kept.numel()

    def test_that_asks_for_nothing():
        torch.empty(256 * MIB, dtype=torch.uint8, device="cuda")

    def test_figures(gpu_memory):
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        one = torch.empty(16 * MIB, dtype=torch.uint8, device="cuda")
        del one
        assert gpu_memory.peak == torch.cuda.max_memory_allocated() - before == 16 * MIB
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    folder = tmp_path_factory.mktemp("budgets")
    (folder / "test_it.py").write_text(dedent(SOURCE))
    plugin = [] if INSTALLED else ["-p", PLUGIN]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *plugin, "-rA", "-q", "test_it.py"]
    checkout = str(Path(__file__).resolve().parents[2])
    paths = os.pathsep.join(filter(None, [checkout, os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_a_test_beyond_its_budget_fails_with_its_line_and_no_other_does(session):
    said = session.stdout
    assert session.returncode == 1, said + session.stderr
    for name in ("test_within", "test_that_asks_for_nothing", "test_figures"):
        assert f"PASSED test_it.py::{name}" in said, said
    assert "FAILED test_it.py::test_beyond" in said
    assert "96.0 MiB" in said
    assert "torch.empty(96 * MIB" in said
