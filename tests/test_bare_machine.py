"""The tests themselves on a bare machine: without torch and without a browser they are collected, and skip by name."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
CONFTESTS = sorted(TESTS.rglob("conftest.py"))
ABSENT = "import sys; sys.modules.update(dict.fromkeys(('torch', 'selenium', 'pynvml')))\n"
"""A module that is None cannot be imported: `ModuleNotFoundError`, as where it is not installed."""

ASKS_TORCH = re.compile(r"""importorskip\(\s*["']torch\b|^from tests\.recording\.fake import""", re.MULTILINE)
"""What skips a test, or a whole module, where torch is missing; the fake backend is made of torch's tensors."""


def pytest_without_extras(*arguments: str, path: str = os.defpath) -> subprocess.CompletedProcess[str]:
    """Run pytest in an interpreter without torch and selenium, the programs found on `path` alone."""
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-o", "addopts=-rs", *arguments]
    command = [sys.executable, "-c", f"{ABSENT}import pytest\nsys.exit(pytest.main({options!r}))"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    environment |= {"PATH": path, "PYTHONPATH": str(TESTS.parent)}
    return subprocess.run(command, cwd=TESTS.parent, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.thorough
@pytest.mark.parametrize("folder", sorted({".", *(str(path.parent.relative_to(TESTS)) for path in CONFTESTS)}))
def test_all_tests_are_collected(folder: str, tmp_path: Path):
    """Once all of them, and once each folder with a conftest alone, which pytest then loads before it collects."""
    done = pytest_without_extras("--collect-only", str(TESTS / folder), path=str(tmp_path))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "INTERNALERROR" not in done.stdout + done.stderr
    found = re.search(r"(\d+) tests collected", done.stdout)
    assert found, done.stdout[-3000:]
    assert int(found[1]) >= (2000 if folder == "." else 10)


def test_what_needs_a_gpu_or_a_browser_is_skipped_with_its_reason(tmp_path: Path):
    done = pytest_without_extras(str(TESTS / "gpu"), str(TESTS / "browser"), path=str(tmp_path))
    assert done.returncode == 0, done.stdout[-3000:]
    assert re.search(r"^\d{2,} skipped in ", done.stdout, re.MULTILINE), done.stdout[-3000:]
    assert "torch is not installed" in done.stdout
    assert "no Chromium" in done.stdout


@pytest.mark.parametrize("conftest", CONFTESTS, ids=lambda path: path.parent.name)
def test_no_conftest_skips_while_tests_are_collected(conftest: Path):
    """A skip raised by a hook or by the module itself ends the session; one raised by a fixture skips a test."""
    for part in ast.parse(conftest.read_text(encoding="utf-8")).body:
        if isinstance(part, ast.FunctionDef) and not part.name.startswith("pytest_"):
            continue
        called = {ast.unparse(node.func) for node in ast.walk(part) if isinstance(node, ast.Call)}
        assert not called & {"pytest.skip", "pytest.importorskip", "skip", "importorskip"}, ast.unparse(part)


def test_what_needs_torch_says_so_with_its_marker():
    """CI runs the whole suite without torch and then ``-m torch``; what asks for torch unmarked would never run."""
    asking = [path for path in TESTS.rglob("test_*.py") if ASKS_TORCH.search(path.read_text(encoding="utf-8"))]
    assert len(asking) >= 5
    for path in asking:
        text = path.read_text(encoding="utf-8")
        marked = len(re.findall(r"^@pytest\.mark\.torch$", text, re.MULTILINE))
        whole = re.search(r"^pytestmark = pytest\.mark\.(torch|gpu)$", text, re.MULTILINE)
        assert whole or marked >= len(ASKS_TORCH.findall(text)), path
