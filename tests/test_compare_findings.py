"""The script that compares the findings of two checkouts, on two made-up ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.compare_findings import compare, main

OLD = {
    "tool": {"version": "1"},
    "schema_version": 1,
    "devices": [
        {
            "device": 0,
            "oom": {"verdict": {"cause": "growth", "headline": "Every step keeps 4 MiB.", "spare": 0}},
            "advice": [{"slug": "item", "source": "FAQ"}],
            "steps": {"source": "inferred"},
            "sites": [{"label": "a", "bytes": 30}, {"label": "b", "bytes": 20}, {"label": "c", "bytes": 10}],
            "cannot_know": ["the card"],
        }
    ],
}


def changed(*path: Any, to: Any) -> dict[str, Any]:
    """`OLD` with another value at `path`."""
    copy = json.loads(json.dumps(OLD))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return copy


def tree(folder: Path, report: dict[str, Any] | None, error: str = "Error: no snapshot") -> Path:
    """A checkout whose oomscope always gives `report`, or fails."""
    (folder / "oomscope").mkdir(parents=True)
    program = (
        f"print({json.dumps(report)!r})" if report else f"import sys; print({error!r}, file=sys.stderr); sys.exit(1)"
    )
    (folder / "oomscope" / "__main__.py").write_text(program)
    (folder / "oomscope" / "__init__.py").touch()
    return folder


VERDICT = ("devices", 0, "oom", "verdict")
SITES = OLD["devices"][0]["sites"]
CASES = {
    "nothing": (OLD, []),
    "the program's version": (changed("tool", "version", to="2"), []),
    "the format's version": (changed("schema_version", to=2), []),
    "a slug": (changed(*VERDICT, "cause", to="capacity"), [("figure", "devices[0].oom.verdict.cause")]),
    "zero for unknown": (changed(*VERDICT, "spare", to=None), [("figure", "devices[0].oom.verdict.spare")]),
    "false for zero": (changed(*VERDICT, "spare", to=False), [("figure", "devices[0].oom.verdict.spare")]),
    "a sentence": (changed(*VERDICT, "headline", to="Memory grows."), [("word", "devices[0].oom.verdict.headline")]),
    "sentences in a list": (changed("devices", 0, "cannot_know", to=[]), [("word", "devices[0].cannot_know")]),
    "where advice is from": (
        changed("devices", 0, "advice", 0, "source", to="PyTorch's FAQ"), [("word", "devices[0].advice[0].source")]
    ),
    "where steps are from": (
        changed("devices", 0, "steps", "source", to="none"), [("figure", "devices[0].steps.source")]
    ),
    "a new key": (changed(*VERDICT, "code", to="growth"), [("added", "devices[0].oom.verdict.code")]),
    "a key that is gone": (
        changed("devices", 0, "steps", to={}), [("figure", "devices[0].steps.source")]
    ),
    "a first record that is gone": (changed("devices", 0, "sites", to=SITES[1:]), [("figure", "devices[0].sites[0]")]),
    "a record between": (
        changed("devices", 0, "sites", to=[SITES[0], {"label": "x", "bytes": 25}, *SITES[1:]]),
        [("figure", "devices[0].sites[1]")],
    ),
    "another order": (
        changed("devices", 0, "sites", to=SITES[::-1]),
        [("word", "devices[0].sites[0].label"), ("figure", "devices[0].sites[0].bytes"),
         ("word", "devices[0].sites[2].label"), ("figure", "devices[0].sites[2].bytes")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("new", "expected"), CASES.values(), ids=CASES)
def test_differences_have_their_kind_and_their_path(new: dict[str, Any], expected: list[tuple[str, str]]):
    assert [(one.kind, one.path) for one in compare(OLD, new)] == expected


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Compare a checkout that reports `OLD` with one that reports something else; the exit code and both outputs."""

    def compared(new: Path, *options: str) -> tuple[int, str, str]:
        (tmp_path / "one.pickle").touch()
        code = main([str(tree(tmp_path / "old", OLD)), str(new), str(tmp_path / "one.pickle"), *options])
        return (code, *capsys.readouterr())

    return compared


def test_equal_findings_are_said_in_one_line(ask, tmp_path: Path):
    assert ask(tree(tmp_path / "new", OLD)) == (0, "1 snapshots, none with another figure\n", "")


def test_a_figure_is_an_error_and_shown_with_both_values(ask, tmp_path: Path):
    code, out, _ = ask(tree(tmp_path / "new", changed(*VERDICT, "cause", to="capacity")))
    assert code == 1
    assert '  devices[0].oom.verdict.cause: "growth" → "capacity"' in out.splitlines()


def test_words_are_counted_and_listed_on_request_with_those_that_changed_a_number(ask, tmp_path: Path):
    new = tree(tmp_path / "new", changed(*VERDICT, "headline", to="Memory grows by 5 MiB every step."))
    code, out, _ = ask(new, "--words")
    assert code == 0
    assert "  words, another number: devices[0].oom.verdict.headline: " in out
    assert '"Every step keeps 4 MiB." → "Memory grows by 5 MiB every step."' in out


def test_words_that_are_not_asked_for_are_counted(ask, tmp_path: Path):
    code, out, _ = ask(tree(tmp_path / "new", changed(*VERDICT, "headline", to="Memory grows by 4 MiB.")))
    assert code == 0
    assert "  1 words differ, 0 of them in a number" in out.splitlines()


def test_a_snapshot_that_only_one_can_read_differs(ask, tmp_path: Path):
    code, out, _ = ask(tree(tmp_path / "new", None))
    assert code == 1
    assert "devices" in out


def test_a_checkout_that_does_not_start_is_no_comparison(ask, tmp_path: Path):
    code, _, err = ask(tree(tmp_path / "new", None, error="Traceback (most recent call last):\nImportError: x"))
    assert code == 2
    assert "ImportError" in err
