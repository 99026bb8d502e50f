"""What recordings tell of a parameter that none of them varies, and when they do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from oomscope.analysis.plan import MOST_UNTOLD, _Planner, plan_of
from oomscope.analysis.plan.kinds import BATCH, LENGTH, UNKNOWN, batch_among, kind_of
from oomscope.analysis.plan.predicting import untold_share
from oomscope.analysis.plan.recordings import Recording, Shape, StackKeys, made_ready
from oomscope.analysis.plan.requests.facts import Facts
from oomscope.analysis.plan.requests.hints import hints
from oomscope.analysis.plan.requests.patches import made_of, tokens_of
from oomscope.analysis.plan.requests.strides import _left_of
from oomscope.analysis.plan.requests.widths import has_known_width, sides_of, widths_of
from oomscope.analysis.plan.scaling import scaled
from oomscope.errors import RequestError
from tests.plan.peaks import Round, study

ROUND = Round("unvaried")
UTTERANCES, PARTS = {"batch": 8, "samples": 128_000}, {"batch": 32, "points": 2048}
FRAMES = [25599, 12799, 6399, 3199, 1599, 799, 399]
"""What seven convolutions with strides of 5 and 2 leave of 128,000 samples."""


def ready(name: str, shape: Shape) -> Recording:
    return made_ready(name, study(name), shape, StackKeys())


def degrees(name: str, shape: Shape, size: int) -> set[tuple[int, ...]]:
    recording = ready(name, shape)
    found = hints(recording, tuple(shape)).degree[recording.program.size == size]
    return {tuple(one) for one in found.tolist()}


def test_samples_beside_a_batch_are_a_length():
    assert kind_of("samples", ("batch", "samples")) == LENGTH
    assert kind_of("samples", ("samples", "side")) == BATCH
    assert kind_of("batch", ("batch", "samples")) == BATCH
    assert kind_of("history", ("batch", "history")) == UNKNOWN
    assert batch_among([{"samples": 4, "batch": 2}]) == "batch"


@pytest.mark.parametrize("program", ["utterances", "parts"])
def test_peaks_at_lengths_that_were_not_recorded_are_near_and_in_range(program: str):
    ROUND.check(program, (), 0.004, 0.11)


def test_strided_convolutions_tell_frames_and_these_the_scores_between_them():
    assert degrees("utterances", UTTERANCES, 8 * 512 * FRAMES[0] * 4) == {(1, 1)}
    assert (1, 2) in degrees("utterances", UTTERANCES, 8 * 12 * FRAMES[-1] ** 2 * 4)


def test_each_length_is_another_one_without_its_stride():
    each = [512 * 4 * frames for frames in FRAMES]
    assert _left_of(128_000, sorted(each, reverse=True), [768, 512]) == FRAMES
    assert _left_of(128_000, [512 * 4 * 30_011], [768, 512]) == [], "no stride leaves so many"
    assert _left_of(128_000, each, [768]) == [], "of no known number of channels"


def test_what_no_layer_makes_and_is_of_two_points_is_of_pairs():
    assert (1, 2) in degrees("parts", PARTS, 32 * 2048**2 * 4)


def test_without_what_convolutions_leave_a_length_is_refused_and_no_largest_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("oomscope.analysis.plan.requests.hints.strided", lambda *_: [])
    at, longer = [UTTERANCES], {"batch": 8, "samples": 192_000}
    with pytest.raises(RequestError, match="record one more step at another samples") as raised:
        plan_of([("a", study("utterances"))], at=at, wanted=[longer])
    assert "81% of the peak is of sizes that do not have samples as a factor" in str(raised.value)
    found = plan_of([("a", study("utterances"))], at=at, wanted=[{**UTTERANCES, "batch": 12}], gpus=["80GiB"])
    assert [one.parameter for one in found.largest] == ["batch"]
    assert "plan.not_told" in {one.code for one in found.notes}


def untold(name: str, shape: Shape, parameter: str) -> float:
    recording = ready(name, shape)
    return untold_share(scaled(recording, [], tuple(shape)), parameter)


@pytest.mark.parametrize(("name", "shape"), [("utterances", UTTERANCES), ("parts", PARTS)])
def test_what_is_told_is_nearly_all(name: str, shape: Shape):
    assert untold(name, shape, "batch") < 1e-6
    assert untold(name, shape, list(shape)[-1]) < MOST_UNTOLD / 2


def test_text_beside_patches_is_not_told_and_does_not_grow():
    recording = made_ready("twotower", study("twotower"), None, StackKeys())
    shape = recording.shapes[-1]
    planner = _Planner([recording])
    assert 0.2 < untold_share(planner.scaled_from(recording), "side") < MOST_UNTOLD
    found = hints(recording, tuple(shape)).degree[:, list(shape).index("side")]
    for tokens, degree in ((101, 2), (48, 0)):
        rows = recording.program.size == 96 * tokens * 2048 * 4
        assert rows.any()
        assert set(found[rows].tolist()) == {degree}, "100 patches and one token more; words"


@pytest.mark.parametrize(
    ("each", "known"), [(768, True), (3 * 768, True), (64, True), (12 * 256, True), (4500, False), (17 * 3072, False)]
)
def test_what_a_length_divides_has_as_many_values_a_token_as_the_program_has_channels(each: int, known: bool):
    size, length, batch = (np.array([one], np.int64) for one in (8 * 256 * each * 4, 256, 8))
    assert has_known_width(size, length, batch, [768, 3072]).all() == known


def test_pairs_are_told_by_what_weights_leave_where_no_shape_of_one_is_recorded():
    ROUND.check("teacher", (), 0.01, 0.01)
    nodes = {"batch": 32, "nodes": 96}
    assert degrees("teacher", nodes, 32 * 96**2 * 128 * 4) == {(1, 2)}, "pairs"
    assert degrees("teacher", nodes, 32 * 32 * 96**2 * 4) == {(1, 2)}, "scores of 32 heads"
    assert degrees("teacher", nodes, 32 * 96 * 2048 * 4) == {(1, 1)}, "tokens"
    masks = dropouts("teacher", nodes, 32 * 32 * 96**2)
    assert masks == {(1, 2)}, "what a dropout of the scores keeps, a byte for each"


def dropouts(name: str, shape: Shape, size: int) -> set[tuple[int, ...]]:
    recording = ready(name, shape)
    rows = Facts(recording).dropout & (recording.program.size == size)
    return {tuple(one) for one in hints(recording, tuple(shape)).degree[rows].tolist()}


def test_a_part_of_a_model_that_may_be_of_pairs_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("oomscope.analysis.plan.requests.pairs.MOST", 1.0)
    at, larger = [{"batch": 32, "nodes": 96}], {"batch": 32, "nodes": 128}
    with pytest.raises(RequestError, match="record one more step at another nodes"):
        plan_of([("a", study("teacher"))], at=at, wanted=[larger])


def test_the_sides_of_weights_are_told_by_what_follows_them():
    hidden, heads, wide = 512 * 4, 8 * 512 * 4, 512 * 1536 * 4
    sides = sides_of(np.array([120 * hidden, hidden, hidden, wide, 1536 * 4, heads, hidden], np.int64))
    assert {120, 512, 1536} <= set(sides.tolist())
    assert not {6144, 12288, 3072} & set(sides.tolist()), "no quotient of a matrix whose sides are known"
    assert not len(sides_of(np.array([512 * 512 * 4], np.int64)))


def test_a_matrix_tells_the_channels_beside_those_of_a_vector():
    assert widths_of(np.array([768 * 4, 1000 * 768 * 4], np.int64), [768]) == [768, 1000, 2000]


class _Made:
    """Facts of requests that a forward makes."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.size = np.array(sizes, np.int64)
        self.forward = np.ones(len(sizes), np.bool_)


@pytest.mark.parametrize(
    ("side", "tokens"), [(224, 197), (224, 257), (518, 37 * 37), (384, 577), (288, 325), (224, 196), (224, 95)]
)
def test_tokens_of_patches_are_told_by_a_rare_factor(side: int, tokens: int):
    made = _Made([4 * tokens * width * 4 for width in (768, 3072, 2304)])
    column = np.full(3, side, np.int64)
    found = tokens_of(made, column, np.full(3, 4, np.int64), np.ones(3, np.bool_))  # type: ignore[arg-type]
    known = tokens in (197, 257, 37 * 37, 577, 325)
    assert set(found.tolist()) == {tokens if known else 0}
    assert made_of(made.size, found, np.full(3, 4, np.int64)).all() == known
