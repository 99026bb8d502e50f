"""What has other places than an image need not grow with it."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.plan.recordings import Recording, StackKeys, made_ready
from oomscope.analysis.plan.requests.facts import Facts
from oomscope.analysis.plan.requests.image_places import divided_by_squares, of_its_places, of_other_places
from tests.plan.peaks import Round, study

BATCH, SIDE, QUERIES, TEXT = 32, 512, 100, 77


def _recording() -> Recording:
    return made_ready("base", study("detr"), {"batch": BATCH, "side": SIDE}, StackKeys())


def _each(facts: Facts, value: int) -> np.ndarray:
    return np.full(len(facts.size), value, np.int64)


def test_queries_of_a_decoder_have_other_places_than_the_image():
    facts = Facts(_recording())
    found = of_other_places(facts, _each(facts, SIDE), _each(facts, BATCH), _each(facts, 0))
    of_queries = facts.forward & (facts.size == BATCH * QUERIES * 2048 * 4)
    assert of_queries.any()
    assert found[of_queries].all()


def test_features_of_the_image_have_its_places():
    recording = _recording()
    facts = Facts(recording)
    found = of_other_places(facts, _each(facts, SIDE), _each(facts, BATCH), _each(facts, 0))
    features = facts.forward & facts.convolved & ~recording.at_once
    assert features.any()
    assert not found[features].any()


def test_half_the_side_is_not_said_to_fit_what_the_queries_do_not_leave():
    of = Round("thirty_seventh")
    row = of.predicted("detr", ())["s256"]
    true = of.truth("detr", "s256")["allocated"]
    assert row.peak_allocated.low <= true <= row.peak_allocated.high


def test_places_of_a_halved_image():
    size = np.array([4 * 56 * 56 * 64, 4 * TEXT * 768, 4 * 28 * 28 * 3])
    side, samples = np.full(3, 224), np.ones(3, np.int64)
    assert of_its_places(size, side, samples).tolist() == [True, False, True]
    assert divided_by_squares(size, side).tolist() == [True, False, True]
