"""Notes and sentences: every code has one, every sentence is used, and each can be said with the values it is given."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import oomscope
from oomscope.analysis import Findings, analyze
from oomscope.analysis.attribution import by_site
from oomscope.analysis.whatif import WhatIf, whatif
from oomscope.model import Note, Snapshot
from oomscope.reading import load
from oomscope.wording import say
from oomscope.wording.labels import SITE_LABELS
from oomscope.wording.sentences import SENTENCES
from tests.samples import SAMPLES, sample, sample_findings

PACKAGE = Path(oomscope.__file__).parent
CAPTURES = sorted((Path(__file__).parents[1] / "captures").glob("*.pickle.xz"))
_CODE = re.compile(r"([a-z_]+)(?:\.[a-z0-9_]+)+")
_PREFIXES = {code.partition(".")[0] for code in SENTENCES}


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if "wording" not in path.parts:
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def codes_in(tree: ast.Module) -> Iterator[str]:
    """Every literal in a module that reads like a code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            match = _CODE.fullmatch(node.value)
            if match and match[1] in _PREFIXES:
                yield node.value


def test_every_note_is_made_with_a_literal_code_that_has_a_sentence() -> None:
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "note":
                code = node.args[0]
                # A code that depends on something is chosen among literals, never put together.
                assert not isinstance(code, (ast.JoinedStr, ast.BinOp)), f"{path}:{node.lineno}"
                if isinstance(code, ast.Constant):
                    assert code.value in SENTENCES, f"{path}:{node.lineno}"


_OPTIONAL = re.compile(r"(?<!\[)\[[^\[\]]*\]")
_FIELD = re.compile(r"\{(\w+)")


def test_every_value_that_a_sentence_needs_is_given_where_the_note_is_made() -> None:
    for path, tree in trees():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "note"):
                continue
            code, given = node.args[0], {keyword.arg for keyword in node.keywords}
            sentence = SENTENCES[code.value] if isinstance(code, ast.Constant) else ""
            if isinstance(sentence, str) and None not in given:  # None stands for **values
                needed = set(_FIELD.findall(_OPTIONAL.sub("", sentence)))
                assert needed <= given, f"{path}:{node.lineno}"


def test_every_code_has_a_sentence_and_every_sentence_a_user() -> None:
    assert {code for _, tree in trees() for code in codes_in(tree)} == set(SENTENCES)


def test_a_code_names_the_file_of_its_sentence() -> None:
    for code in SENTENCES:
        file = PACKAGE / "wording" / f"{code.partition('.')[0]}.py"
        assert f'"{code}"' in file.read_text(encoding="utf-8")


def notes_of(findings: Findings) -> Iterator[Note]:
    yield from findings.snapshot.notes
    yield from findings.recording.notes
    for device in findings.devices:
        yield from device.reconciliation.notes
    for answer in findings.whatif:
        yield from notes_on(answer)


def notes_on(answer: WhatIf) -> Iterator[Note]:
    yield from answer.notes
    if answer.self_check.reason is not None:
        yield answer.self_check.reason
    for row in answer.rows:
        yield from row.notes


def check(notes: Iterator[Note]) -> None:
    for note in notes:
        text = say(note)
        assert text.strip()
        assert "{" not in text
        assert "None" not in text


@pytest.mark.parametrize("name", SAMPLES)
def test_every_note_on_a_sample_can_be_said(name: str) -> None:
    check(notes_of(sample_findings(name)))
    check(notes_on(replayed(sample(name))))


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name.partition(".")[0])
def test_every_note_on_a_capture_can_be_said(path: Path) -> None:
    snapshot = load(path)
    check(notes_of(analyze(snapshot, whatif=False)))
    check(notes_on(replayed(snapshot)))


def replayed(snapshot: Snapshot) -> WhatIf:
    return whatif(snapshot, snapshot.devices[0].index, settings=["garbage_collection_threshold:0.8"], gpu="H200")


def test_every_reason_for_having_no_site_has_words() -> None:
    reasons = {label for label in by_site._LABELS if label} | {by_site.ALL_OTHERS, "unaccounted"}
    assert reasons == set(SITE_LABELS)
