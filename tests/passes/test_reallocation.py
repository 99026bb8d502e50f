"""Growth by reallocation at the edges of its rules."""

from __future__ import annotations

import pytest

from oomscope.analysis.passes import growth as rules_of_growth
from oomscope.analysis.passes import reallocation as rules
from oomscope.analysis.passes.records import Growth
from tests.analysis.asking import diagnose
from tests.passes.scripts import Script


def joined(sizes: list[float], *, blocks: int = 1, keep: int = 0) -> tuple[Growth, ...]:
    """A cache that is joined to, by a block of each size, while the old one is still there; `keep` are never freed."""
    script, old = Script(), []
    for size in sizes:
        new = [script.layer(32, 60, size) for _ in range(blocks)]
        if keep:
            keep -= 1
        else:
            script.free(*old)
        old = new
        script.free(script.at(33, 2))
    script.fails(33, 500)
    return tuple(one for one in diagnose(script.snapshot()).growth() if one.kind == "reallocation")


def rising(count: int, start: float = 8.0) -> list[float]:
    return [start + number for number in range(count)]


def test_a_cache_needs_a_few_joins_to_be_told():
    assert rules.LEAST_BIRTHS == 8
    assert joined(rising(7)) == ()
    assert len(joined(rising(8))) == 1


def test_a_cache_needs_a_few_sizes_to_be_told():
    assert rules.LEAST_SIZES == 5
    assert joined(rising(4), blocks=4) == ()
    assert len(joined(rising(5), blocks=4)) == 1


@pytest.mark.parametrize(("every", "found"), [(2, 1), (3, 0)])
def test_a_batch_that_keeps_its_size_for_a_while_is_no_cache(every, found):
    """At the edge of `LEAST_RISING`: half of the rounds rise, or a third."""
    assert rules.LEAST_RISING == 0.5
    sizes = [8.0 + 2 * (number // every) for number in range(31)]
    script = Script()
    held = 0
    for size in sizes:
        new = script.layer(32, 60, size)
        if held:
            script.free(held)
        held = new
        script.free(script.at(33, 2))
    script.fails(33, 500)
    assert len(diagnose(script.snapshot()).growth()) == found


@pytest.mark.parametrize(("falls", "found"), [(2, 1), (3, 0)])
def test_a_cache_seldom_becomes_smaller(falls, found):
    """At the edge of `MOST_FALLS`: two of forty."""
    assert rules.MOST_FALLS * 40 == 2
    sizes = rising(40, 40.0)
    for number in range(falls):
        sizes[8 + 10 * number] = sizes[7 + 10 * number] - 0.5
    assert len(joined(sizes)) == found


@pytest.mark.parametrize(("apart", "found"), [(2, 1), (4, 0)])
def test_a_block_that_is_gone_before_its_successor_is_no_cache(apart, found):
    """At the edge of `LEAST_OVERLAP`: a tenth of the blocks may be."""
    assert rules.LEAST_OVERLAP == 0.9
    script, held = Script(), 0
    for number in range(31):
        early = (number % 10 == 5 and number // 10 < apart) or (apart > 3 and number in (7, 17))
        if held and early:
            script.free(held)
        new = script.layer(32, 60, 8.0 + number)
        if held and not early:
            script.free(held)
        held = new
        script.free(script.at(33, 2))
    script.fails(33, 500)
    assert len(diagnose(script.snapshot()).growth()) == found


@pytest.mark.parametrize(("kept", "found"), [(5, 1), (7, 0)])
def test_blocks_that_are_kept_are_not_replaced(kept, found):
    """At the edge of `LEAST_RELEASED`: a fifth of the thirty that have two successors may stay for longer."""
    assert rules.LEAST_RELEASED == 0.8
    script = Script()
    held: list[int] = []
    for number in range(32):
        held.append(script.layer(32, 60, 8.0 + number))
        if len(held) > 1 and number > kept:
            script.free(held.pop(-2))
        script.free(script.at(33, 2))
    script.fails(33, 500)
    rows = [one for one in diagnose(script.snapshot()).growth() if one.kind == "reallocation"]
    assert len(rows) == found


@pytest.mark.parametrize(("blocks", "found"), [(10, 1), (12, 0)])
def test_each_block_of_a_round_is_replaced_a_few_times(blocks, found):
    """At the edge of `LEAST_REPLACEMENTS`: three rounds of thirty blocks."""
    assert rules.LEAST_REPLACEMENTS == 3
    script, old = Script(), []
    made = 0
    while made < 30:
        new = []
        for layer in range(blocks):
            if made == 30:
                break
            new.append(script.layer(32, 60, 8.0 + 2 * (made // blocks) + 0.01 * layer))
            if layer < len(old):
                script.free(old[layer])
            made += 1
        old = new + old[len(new) :]
    script.fails(33, 500)
    rows = [one for one in diagnose(script.snapshot()).growth() if one.kind == "reallocation"]
    assert len(rows) == found


def test_a_cache_that_has_not_grown_for_a_few_rounds_is_none():
    assert rules.MOST_ROUNDS_AGO == 3
    for rounds, found in ((2, 1), (4, 0)):
        script, held = Script(), 0
        for number in range(20):
            new = script.layer(32, 60, 8.0 + number)
            if held:
                script.free(held)
            held = new
            script.free(script.at(33, 2))
        for _ in range(rounds):
            script.free(script.at(40, 2), script.at(41, 2))
        script.fails(42, 500)
        rows = [one for one in diagnose(script.snapshot()).growth() if one.kind == "reallocation"]
        assert len(rows) == found


@pytest.mark.parametrize(("gain", "found"), [(12, 1), (8, 0)])
def test_a_cache_that_has_hardly_gained_is_none(gain, found):
    """At the edge of `LEAST_RELATIVE_GAIN`: a tenth of a hundred."""
    assert rules_of_growth.LEAST_RELATIVE_GAIN == 0.1
    assert len(joined([100.0 + gain * number / 20 for number in range(21)])) == found
