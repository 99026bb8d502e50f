"""One larger batch of an evaluation: which line chose it, how much of it would have fitted, and what its logits are."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from oomscope.analysis import analyze
from oomscope.analysis.findings import DeviceFindings
from oomscope.model import Snapshot
from oomscope.reading import load
from oomscope.rendering.html.small_timeline import _FAILING, _axis
from oomscope.wording.verdict_text import advice_text
from tests.verdict.known import programs

WITHOUT = {"sources": []}
"""What the context of a dump without the text of lines has in place of it."""


@cache
def snapshot() -> Snapshot:
    return load(programs()["ragged_evaluation"].path)


@cache
def device(*, text: bool = True) -> DeviceFindings:
    of = snapshot()
    assert of.context is not None
    return analyze(of if text else replace(of, context={**of.context, **WITHOUT})).main


@pytest.mark.parametrize(("text", "line"), [(True, 21), (False, 22)])
def test_the_loops_own_line_is_told_where_the_next_one_only_moves_what_it_yields(text: bool, line: int) -> None:
    found = device(text=text).oom
    assert found is not None
    assert found.verdict.failing_pass is not None
    assert found.verdict.failing_pass.began_at is not None
    assert found.verdict.failing_pass.began_at.line == line


def test_the_advice_says_how_much_of_it_would_have_fitted() -> None:
    found = device().oom
    assert found is not None
    (advice,) = (one for one in found.verdict.advice if one.slug == "bound_batch")
    # On the card 12,288 elements fitted throughout, and 12,544 did not.
    assert 11_000 < advice.values["share"] * advice.values["elements"] < 12_544
    assert advice_text(advice).action.endswith("to less than 12,000 elements (15,264 in this pass).")


def test_logits_are_those_beside_a_loss_for_the_next_token_as_well() -> None:
    found = device().oom
    assert found is not None
    assert found.verdict.drivers[0].slug == "logits"
    assert found.verdict.drivers[0].bytes == pytest.approx(2 * 1_465_344_000 + 3 * 1_460_736_000, rel=0.001)


def test_the_pass_that_failed_has_a_part_of_the_first_picture() -> None:
    entries = device().history.entries
    axis = _axis(device(), entries - 1)
    begin = device().rounds.boundaries[-1]
    assert begin > (1 - _FAILING) * entries
    assert axis.place(begin) == pytest.approx((1 - _FAILING) * (entries - 1))
    assert (axis.place(0), axis.place(entries - 1)) == (0, entries - 1)
