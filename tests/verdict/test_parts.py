"""What of the items of a collection keeps nearly all of it is told, where it is one thing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from oomscope.analysis.verdict import suspects

WHOLE = 1000
ENOUGH = int(suspects.NEARLY_ALL * WHOLE)


@pytest.mark.parametrize(
    ("ways", "part"),
    [
        ([("evaluate: results[0].memory", ENOUGH), ("evaluate: results[0].text", WHOLE - ENOUGH)], ".memory"),
        ([("evaluate: results[0].memory", ENOUGH - 1), ("evaluate: results[0].text", WHOLE - ENOUGH + 1)], None),
        ([("evaluate: results[7].memory", 500), ("evaluate: results[12].memory", 500)], ".memory"),
        ([("evaluate: results['a']['kv'][0]", 500), ("evaluate: results['a']['kv'][1]", 500)], "['kv'][*]"),
        ([("evaluate: results[0]", 500), ("evaluate: results[1]", 500)], None),
        ([("evaluate: results[0].<Task>", 500)], None),
        ([("evaluate: results.memory", 500)], None),
        ([("evaluate: others[0].memory", 500)], None),
        ([], None),
    ],
)
def test_the_part_of_its_items(monkeypatch: pytest.MonkeyPatch, ways: list[tuple[str, int]], part: str | None) -> None:
    told = tuple((SimpleNamespace(bytes=size), way) for way, size in ways)
    monkeypatch.setattr(suspects, "first_ways", lambda _: told)
    assert suspects._part(SimpleNamespace(), "evaluate: results") == part
