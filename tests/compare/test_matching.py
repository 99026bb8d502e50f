"""Which line of one recording is which of another: edits that mislead."""

from __future__ import annotations

import pytest

from oomscope.analysis.compare.code_places import CodePlaces, find_places
from oomscope.analysis.compare.matching import how_matched, match_places
from oomscope.analysis.records import Location
from tests.compare.harder import DELETED, EDITS, Where, recording


def matched(before: CodePlaces, after: CodePlaces) -> dict[Where, Where]:
    found = match_places(before, after).after_of
    return {(a.file, a.function, a.line): (b.file, b.function, b.line) for a, b in found.items()}


@pytest.mark.parametrize("name", EDITS)
def test_lines_are_recognised_after_an_edit_both_ways(name: str):
    edit = EDITS[name]
    before, after = find_places(recording(edit.before)), find_places(recording(edit.after))
    assert matched(before, after) == edit.same
    assert matched(after, before) == {other: one for one, other in edit.same.items()}


def test_of_two_alike_lines_the_source_tells_which_was_deleted():
    """Without it, one of the two is taken, and it is the same one both ways."""
    before, after = find_places(recording(DELETED.before)), find_places(recording(DELETED.after))
    guessed = matched(before, after)
    assert matched(after, before) == {other: one for one, other in guessed.items()}
    assert len(guessed) == len(DELETED.same)
    texts = {10: "x = self.up(x)", 11: "x = self.gate(x)", 14: "return self.norm(x)", 90: "main()"}
    moved = {10: 10, 14: 13, 90: 90}

    def with_text(places: CodePlaces, lines: dict[int, str]) -> CodePlaces:
        return CodePlaces(places.around, {one: lines[one.line] for one in places.around})

    known = with_text(before, texts), with_text(after, {moved[line]: texts[line] for line in moved})
    assert matched(*known) == DELETED.same
    assert matched(known[1], known[0]) == {other: one for one, other in DELETED.same.items()}


@pytest.mark.parametrize(
    ("before", "after", "how"),
    [
        (("/a/x.py", 1, "f"), ("/b/c/x.py", 1, "f"), "same"),
        (("C:\\a\\x.py", 1, "f"), ("/b/x.py", 1, "f"), "same"),
        (("/a/x.py", 1, "f"), ("/a/x.py", 2, "f"), "moved"),
        (("/a/x.py", 1, "f"), ("/a/y.py", 1, "f"), "renamed"),
        (("/a/x.py", 1, "f"), ("/a/x.py", 9, "g"), "renamed"),
    ],
)
def test_how_a_line_was_matched(before: tuple[str, int, str], after: tuple[str, int, str], how: str):
    assert how_matched(Location(*before), Location(*after)) == how


def test_a_recording_matches_itself_line_by_line():
    places = find_places(recording(EDITS["two files of one name in two folders"].before))
    assert all(one == other for one, other in match_places(places, places).after_of.items())
    assert len(match_places(places, places).after_of) == len(places.locations)


def test_nothing_is_matched_with_nothing():
    assert match_places(CodePlaces({}), CodePlaces({})).after_of == {}
