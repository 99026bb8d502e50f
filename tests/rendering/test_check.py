"""What a check and the ranks print of names that a stranger wrote."""

from __future__ import annotations

from xml.etree import ElementTree

from oomscope.analysis import analyze
from oomscope.analysis.compare.budget import Budget, check
from oomscope.analysis.compare.digest import digest
from oomscope.analysis.compare.figures import measure
from oomscope.analysis.compare.ranks import compare_ranks
from oomscope.analysis.compare.triage import triage
from oomscope.analysis.whatif.changes import parse_site
from oomscope.model import Snapshot
from oomscope.rendering.check import check_shown, check_to_github, check_to_json, check_to_junit
from oomscope.rendering.many import ranks_to_json, ranks_to_text, triage_to_json, triage_to_text
from oomscope.rendering.text.terminal import plain
from tests.analysis.programs import MIB, Program
from tests.builders import frame

NAME = "a\n::error::b,c:d%0A\x1b[31m\u202e<x>&\ud800\uffff"


def recording(size: int = 8) -> Snapshot:
    program = Program()
    program.free(program.alloc(MIB, ()))
    program.alloc(size * MIB, (frame(NAME, 3, f"/w/{NAME}/{NAME}.py"), frame("main", 1, f"/w/{NAME}.py")))
    program.oom(1 << 40, (frame(NAME, 4, f"/w/{NAME}/{NAME}.py"),))
    return program.snapshot()


def test_no_name_breaks_out_of_the_line_that_it_is_in():
    budget = Budget(peak=1, growth=1, sites=((parse_site("x.py"), 0),), categories={"activation": 0})
    result = check(measure(recording()), budget)
    assert result.broken
    lines = check_to_github(result, NAME).splitlines()
    assert len(lines) == len(result.broken) + len(result.unknown)
    for line in lines:
        assert line.startswith(("::error ", "::warning "))
        assert line.isprintable()
        assert line.split("::")[1].count(",") <= 2
    root = ElementTree.fromstring(check_to_junit(result, NAME).encode("utf-8"))
    assert len(root.findall("testsuite/testcase")) == len(result.checked)
    for text in (plain(check_shown(result, NAME)), check_to_json(result, NAME)):
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_ranks_and_groups_show_no_control_characters():
    digests = [
        digest(analyze(recording(size), at="peak", whatif=False), f"{NAME}.rank{number}.pickle", NAME)
        for number, size in enumerate((8, 64))
    ]
    ranks, groups, bad = compare_ranks(digests), triage(digests), [{"file": NAME, "error": NAME}]
    shown = [ranks_to_text(ranks), triage_to_text(groups), ranks_to_json(ranks, bad), triage_to_json(groups, bad)]
    for text in shown:
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert text.encode("utf-8")
