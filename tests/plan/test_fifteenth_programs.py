"""What two programs of a fifteenth round showed: logits of all tokens but the last, a reduction that fills a card."""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.plan.growth.polynomials import Evidence, Hint
from oomscope.analysis.plan.growth.reductions import up_to_full
from oomscope.analysis.plan.recordings import StackKeys, made_ready
from oomscope.analysis.plan.requests.hints import hints
from tests.plan.peaks import Round, study

ROUND = Round("fifteenth")
LENGTH, VOCABULARY, SEQUENCES = 384, 32_000, 8
MIB = 1 << 20


def test_logits_without_the_last_token_grow_with_the_length():
    recording = made_ready("base", study("chosen"), {"batch": 4, "length": LENGTH}, StackKeys())
    logits = recording.program.size == SEQUENCES * (LENGTH - 1) * VOCABULARY * 4
    assert logits.any()
    degree = hints(recording, ("batch", "length")).degree
    assert (degree[logits] == 1).mean() > 0.99


@pytest.mark.parametrize("others", [(), ("b6",)])
def test_a_length_that_no_other_recording_varies_is_told_by_one(others: tuple[str, ...]):
    ROUND.check("chosen", others, 0.003, 0.003)


def test_a_reduction_that_fills_the_card_at_one_of_two_shapes():
    found = ROUND.predicted("genome", ("b12",))
    for name in ("b4", "b28"):
        true = ROUND.truth("genome", name)
        assert found[name].peak_allocated.bytes == pytest.approx(true["allocated"], rel=1e-4)
        assert found[name].peak_reserved.bytes == pytest.approx(true["reserved"], rel=1e-4)


def evidence(*sizes: int) -> Evidence:
    points = tuple((float(batch),) for batch in (8, 12, 16)[: len(sizes)])
    hint = Hint((1,), (1,), (1,))
    return Evidence(points, sizes, hint, at_once=False, of_rows=False, usual=(1,), block=MIB, full=132 * MIB)


@pytest.mark.parametrize(
    ("sizes", "fills"),
    [
        ((96 * MIB, 132 * MIB), True),
        ((96 * MIB, 132 * MIB, 132 * MIB), True),
        ((96 * MIB, 128 * MIB), False),  # neither in proportion nor full
        ((90 * MIB, 100 * MIB, 132 * MIB), False),
        ((132 * MIB, 132 * MIB), False),
    ],
)
def test_what_fills_a_card_is_in_proportion_below(sizes: tuple[int, ...], fills: bool):
    model = up_to_full(evidence(*sizes))
    assert (model is not None) is fills
    if model is not None:
        bytes_at = [model.likely.at((float(batch),)) for batch in (4, 64)]
        assert np.allclose(bytes_at, [48 * MIB, 132 * MIB])


def test_what_grows_at_every_shape_that_was_seen_stops_where_the_card_is_full():
    model = up_to_full(evidence(40 * MIB, 60 * MIB, 80 * MIB))
    assert model is not None
    assert [model.likely.at((float(batch),)) / MIB for batch in (4, 16, 26, 27, 64)] == [20, 80, 130, 132, 132]


def test_a_reduction_makes_whole_blocks():
    model = up_to_full(evidence(40 * MIB + MIB // 2, 60 * MIB))
    assert model is not None
    assert model.likely.at((16.0,)) == 81 * MIB


def test_above_sixteen_times_that_a_reduction_grows_again():
    model = up_to_full(evidence(40 * MIB, 60 * MIB))
    assert model is not None
    assert model.likely.at((8.0 * 16 * 4,)) == 160 * MIB
