"""`make matrix` finds each Python once and says which are missing."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from tests import matrix

HERE = sys.version_info[:2]


def interpreter(path: Path, program: str) -> Path:
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_each_release_is_found_once_the_oldest_first_and_what_is_too_old_or_does_not_start_is_left_out(tmp_path: Path):
    new = interpreter(tmp_path / "a", "echo 3 15")
    again = interpreter(tmp_path / "b", "echo 3 15")
    edge = interpreter(tmp_path / "c", "echo 3 10")
    old = interpreter(tmp_path / "d", "echo 3 9")
    shim = interpreter(tmp_path / "e", "echo 'python3.11: command not found' >&2; exit 127")
    found = matrix.interpreters([shim, new, again, old, edge, tmp_path / "missing"])
    assert list(found.items()) == [((3, 10), edge), ((3, 15), new)]


def test_this_interpreter_is_among_those_that_are_found():
    assert HERE in matrix.interpreters([*matrix.candidates()])


@pytest.mark.parametrize("passes", [True, False])
def test_every_release_is_named_at_the_end_and_one_failure_is_a_failure(passes: bool, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(matrix, "candidates", lambda: [Path(sys.executable)])
    monkeypatch.setattr(matrix, "run", lambda version, python, arguments: asked.append((version, arguments)) or passes)
    assert matrix.main(["-k", "units"]) == (not passes)
    assert asked == [(HERE, ["-k", "units"])]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines][:5] == [f"Python 3.{minor}" for minor in range(10, 15)]
    assert sum("not found" in line for line in lines) == len(lines) - 1
    assert sum(("passed" if passes else "FAILED") in line for line in lines) == 1


def test_no_python_at_all_is_a_failure(monkeypatch, capsys):
    monkeypatch.setattr(matrix, "candidates", list)
    assert matrix.main([]) == 1
    assert "Python 3.10: not found" in capsys.readouterr().out
