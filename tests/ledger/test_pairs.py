"""Two remedies at once: both edits of one trace."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from oomscope.allocator.limits import Limit
from oomscope.allocator.program import Op, Program
from oomscope.analysis.ledger import ledger_of
from oomscope.analysis.ledger.draft import SPACING, Draft
from oomscope.analysis.ledger.edits import accumulate, bf16, checkpoint
from oomscope.analysis.ledger.pairs import both, merged
from oomscope.analysis.ledger.records import Ledger
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.study import DeviceStudy, study_device
from oomscope.reading import load
from oomscope.rendering.ledger import pairs_as_dicts, to_markdown
from oomscope.wording.ledger import pairs_text

MIB = 1 << 20
FIXTURES = Path(__file__).parent / "fixtures"


@cache
def decoder() -> DeviceStudy:
    return study_device(load(FIXTURES / "decoder.pickle.xz"), 0)


@cache
def under(mebibytes: int) -> Ledger:
    return ledger_of(decoder(), limit=Limit(capacity=mebibytes * MIB))


def draft(*sizes: int) -> Draft:
    """Requests that are made one after another, and given back in the same order."""
    count = len(sizes)
    zero = np.zeros(count, np.int64)
    op = np.array([Op.MALLOC] * count + [Op.FREE] * count, np.uint8)
    argument = np.concatenate([np.arange(count), np.arange(count)])
    return Draft.of(Program(np.array(sizes, np.int64), zero, zero, op, argument, np.arange(2 * count)))


def test_factors_multiply_and_the_earlier_end_holds():
    recorded = draft(800, 800, 800)
    first = np.array([True, False, False])
    one = recorded.scaled(0.5, first)
    other = recorded.scaled(0.25, first).lasting(np.array([1]), end=np.array([2 * SPACING]))
    for found in (merged(recorded, one, other), merged(recorded, other, one)):
        assert found.size.tolist() == [100, 800, 800]
        assert found.end.tolist() == [3 * SPACING, 2 * SPACING, 5 * SPACING]


def test_what_is_made_again_is_as_small_as_the_other_remedy_makes_it():
    recorded = draft(800, 800)
    rows = np.array([1])
    again = recorded.lasting(rows, end=np.array([2 * SPACING]))
    again = again.added(np.array([800]), np.array([20]), np.array([30]), rows)
    half = recorded.scaled(0.5, np.array([False, True]))
    for found in (merged(recorded, again, half), merged(recorded, half, again)):
        assert found.size.tolist() == [800, 400, 400]
        assert (found.begin[2], found.end[2]) == (20, 30)


def test_what_is_for_no_recorded_request_stays_as_large():
    recorded = draft(800)
    bucket = recorded.added(np.array([64]), np.array([1]), np.array([4]))
    assert merged(recorded, recorded.scaled(0.5, np.array([True])), bucket).size.tolist() == [400, 64]


def test_two_that_halve_everything_but_the_model_leave_less_than_either():
    run = Run(decoder())
    edits = [one.edit(run, value) for one, value in ((bf16, None), (checkpoint, None), (accumulate, 2))]
    alone = [peak(one.likely) for one in edits if one is not None]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        first, second = edits[one], edits[other]
        assert first is not None
        assert second is not None
        assert peak(both(run.draft, first, second).likely) < min(alone[one], alone[other])


def peak(one: Draft) -> int:
    """The most bytes at once, without an allocator."""
    made = (one.size > 0) & (one.end > one.begin)
    moment = np.concatenate([one.begin[made], one.end[made]])
    change = np.concatenate([one.size[made], -one.size[made]])
    return int(np.cumsum(change[np.lexsort((change, moment))]).max())


def test_pairs_are_named_where_no_remedy_is_enough_alone():
    ledger = under(2250)
    assert not any(row.enough for row in ledger.rows)
    assert ledger.pairs
    for pair in ledger.pairs:
        assert pair.peak_allocated.high < 2250 * MIB
        assert pair.saves_bytes > max(pair.first.saves_bytes, pair.second.saves_bytes)
    assert {pair.first.slug for pair in ledger.pairs} | {pair.second.slug for pair in ledger.pairs} >= {"checkpoint"}


def test_no_pair_is_named_where_one_is_enough():
    ledger = under(3600)
    assert any(row.enough for row in ledger.rows)
    assert not ledger.pairs
    assert pairs_text(ledger) == []


def test_no_pair_is_named_where_none_is_enough():
    assert not under(500).pairs


def test_pairs_stand_in_every_format():
    ledger = under(2250)
    assert [set(one["slugs"]) for one in pairs_as_dicts(ledger)] == [
        {pair.first.slug, pair.second.slug} for pair in ledger.pairs
    ]
    assert "No remedy is enough alone. Two together are:" in to_markdown(ledger)


def test_what_there_is_no_time_for_is_named():
    ledger = ledger_of(decoder(), budget=0)
    (left_out,) = (one for one in ledger.notes if one.code == "ledger.left_out")
    assert {"accumulate", "checkpoint", "bf16"} <= set(left_out.values["slugs"])
    assert not ledger.rows
