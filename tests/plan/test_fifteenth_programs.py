"""What two programs of a fifteenth round showed: logits of all tokens but the last, a reduction that fills a card."""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.plan.hints import hints
from oomscope.analysis.plan.polynomials import Evidence, Hint
from oomscope.analysis.plan.recordings import StackKeys, made_ready
from oomscope.analysis.plan.reductions import up_to_full
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
    return Evidence(points, sizes, Hint((1,), (1,), (1,)), at_once=False, of_rows=False, usual=(1,))


@pytest.mark.parametrize(
    ("sizes", "fills"),
    [
        ((96 * MIB, 132 * MIB), True),
        ((96 * MIB, 132 * MIB, 132 * MIB), True),
        ((88 * MIB, 132 * MIB), False),  # in proportion: as large as what fills a card by chance
        ((96 * MIB, 130 * MIB), False),  # no card is full at that
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
