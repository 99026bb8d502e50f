"""The types of the public names: a program's mistakes are found, and what is right is not complained about."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import oomscope

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
EXAMPLE = HERE / "api.py"

needs_mypy = pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")


@needs_mypy
def test_mypy_agrees_with_every_line_of_the_example(tmp_path: Path):
    """Each ``type: ignore`` is a mistake that has to be found: one that is not needed is an error itself."""
    options = ["--strict", "--config-file", "", "--cache-dir", str(tmp_path), "--python-version", "3.11"]
    missing = [f"--{option}" for option in ("ignore-missing-imports", "follow-imports=silent")]
    command = [sys.executable, "-m", "mypy", *options, *missing, str(EXAMPLE)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_public_name_is_in_the_example():
    text = EXAMPLE.read_text(encoding="utf-8")
    assert [name for name in oomscope.__all__ if not re.search(rf"\boomscope\.{name}\b", text)] == []


def test_mistakes_are_among_them():
    assert len(re.findall(r"# type: ignore\[\w", EXAMPLE.read_text(encoding="utf-8"))) >= 10


def test_the_package_says_that_it_is_typed():
    assert (REPOSITORY / "oomscope" / "py.typed").is_file()
