"""The table of how often verdicts are right counts what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.verdict.confidence_table import BEGIN, END, Judged, judged, tables, write
from tests.verdict.known import TESTS, Known, Said, programs


def judgement(name: str, cause: str | None, said: str | None, confidence: str | None, **more: bool) -> Judged:
    known = Known(name, Path(name), cause, ("fragmentation",) if name == "either" else ())
    return Judged(known, more.pop("with_key", True), Said(said, confidence, "", more.pop("recovered", False)))


VERDICTS = [
    judgement("a", "growth", "growth", "high"),
    judgement("b", "growth", "growth", "medium"),
    judgement("either", "capacity", "fragmentation", "high"),
    judgement("c", "retained", "capacity", "high"),
    judgement("d", None, None, None),
    judgement("e", None, "capacity", "high", recovered=True),
    judgement("f", "outside_allocator", "capacity", "medium", with_key=False),
]


def test_the_table_counts_by_cause_and_confidence() -> None:
    text = tables(VERDICTS)
    assert "6 captures, 4 right, 2 wrong, 2 of them with high confidence; arguable among the wrong ones: 1." in text
    assert "| growth | 1 of 1 | 1 of 1 |  |" in text
    assert "| fragmentation | 1 of 1 |  |  |" in text
    assert "| capacity | 0 of 2 |  |  |" in text
    assert "| **all** | 2 of 4 | 1 of 1 |  |" in text
    assert "No failure was found in 1 capture; in 1 of them nothing had failed." in text


@pytest.mark.parametrize(
    ("name", "key", "true", "arguable"),
    [
        ("c", "with | capacity | high", "retained", ""),
        ("e", "with | capacity | high", "nothing failed", "a request failed, was caught, and the program succeeded"),
        ("f", "without | capacity | medium", "outside_allocator", "a bare snapshot does not hold the size of the card"),
    ],
)
def test_what_is_wrong_is_listed(name: str, key: str, true: str, arguable: str) -> None:
    (found,) = [line for line in tables(VERDICTS).splitlines() if line.startswith(f"| {name} |")]
    assert found == f"| {name} | {key} | {true} | {arguable} |"


def test_a_capture_is_judged_with_its_key_and_without() -> None:
    both = list(judged([programs()["ratings"]]))
    assert [(one.with_key, one.right) for one in both] == [(True, True), (False, True)]


def test_tables_are_written_between_the_marks(tmp_path: Path) -> None:
    path = tmp_path / "quality.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write(path, "new\n")
    assert path.read_text() == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    path.write_text("no marks")
    with pytest.raises(ValueError, match="no place for the tables"):
        write(path, "new")


def test_the_document_has_the_marks() -> None:
    document = (TESTS.parent / "oomscope" / "docs" / "verdict-quality.md").read_text()
    assert document.index(BEGIN) < document.index("### Wrong today") < document.index(END)
