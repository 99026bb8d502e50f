"""The sixty-first to the sixty-eighth round: blocks of a text, workspaces of evaluations, chance, windows that pad."""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.labels.kinds import PARAMETER
from oomscope.analysis.plan.growth.padded_windows import _fills, _whole_sides
from oomscope.analysis.plan.growth.polynomials import Evidence, Hint, Model, Point, Polynomial
from oomscope.analysis.plan.growth.size_models import fit
from oomscope.analysis.plan.growth.steps import Stepped, in_steps
from oomscope.analysis.plan.recordings import StackKeys, made_ready
from oomscope.analysis.plan.requests.weights import of_weights
from oomscope.analysis.plan.scaling import scaled
from tests.ledger.rounds import study
from tests.plan.peaks import Round

LENGTH, SIDE = ("batch", "seq"), ("batch", "side")
TOKENS, VOLUME = Hint((1, 1), (1, 1), (1, 1)), Hint((0, 3), (0, 3), (1, 3))


def _models(*sizes: dict[Point, int]) -> list[Model]:
    evidence = [Evidence(tuple(one), tuple(one.values()), TOKENS, False, False, usual=(1, 1)) for one in sizes]
    return in_steps([fit(one) for one in evidence], evidence, [np.array([row]) for row in range(len(sizes))], LENGTH)


def test_attention_over_blocks_of_which_the_first_and_the_last_differ():
    """All but two blocks of 64 tokens: 30 of 2,048, 40 of 2,688, 14 of 1,024; three and four steps fit as well."""
    (model,) = _models({(4.0, 2048.0): 30 << 22, (6.0, 2048.0): 45 << 22, (4.0, 2688.0): 40 << 22})
    assert model.likely.at((4.0, 1024.0)) == pytest.approx(14 << 22)
    assert isinstance(model.likely, Polynomial)


def test_chunks_that_overlap_are_fewer_than_the_windows_have_parts():
    """Windows of 512 tokens, which pad 1,344 to 1,536; chunks begin at each quarter, so that there are 7 and 11."""
    padded = {(8.0, 1024.0): 2 << 24, (12.0, 1024.0): 3 << 24, (8.0, 1344.0): 3 << 24}
    chunks = {(8.0, 1024.0): 14 << 20, (12.0, 1024.0): 21 << 20, (8.0, 1344.0): 22 << 20}
    model = _models(padded, chunks)[1]
    assert isinstance(model.likely, Stepped)
    assert (model.likely.width, model.likely.less) == (512, 0.25)
    assert model.likely.at((4.0, 2560.0)) == 19 << 20


@pytest.mark.parametrize("batch", [3.0, 21.0])
def test_a_workspace_that_a_batch_leaves_as_it_is_does_not_depend_on_it(batch: float):
    """Of an evaluation that cuts volumes into pieces, four at a time: a constant, and so much for each voxel."""
    sizes = {(6.0, 64.0): 302114451, (9.0, 64.0): 302114451, (6.0, 80.0): 589948563}
    model = fit(Evidence(tuple(sizes), tuple(sizes.values()), VOLUME, True, False, usual=(1, 1)))
    assert model.likely.at((batch, 64.0)) == pytest.approx(302114451)
    assert model.likely.at((batch, 80.0)) == pytest.approx(589948563)


def test_of_a_workspace_that_other_sides_split_otherwise_the_batches_tell_the_line():
    sizes = {(6.0, 64.0): 485827591, (9.0, 64.0): 723857407, (6.0, 80.0): 887615959}
    hint = Hint((1, 3), (1, 3), (1, 3))
    model = fit(Evidence(tuple(sizes), tuple(sizes.values()), hint, True, False, usual=(1, 1)))
    for point in ((6.0, 64.0), (9.0, 64.0)):
        assert model.likely.at(point) == pytest.approx(sizes[point])
    assert model.likely.at((6.0, 80.0)) == pytest.approx(sizes[6.0, 80.0], rel=0.06)


def test_scores_of_random_length_are_told_on_a_line_that_copies_queries_and_keys_first():
    shape = {"batch": 40, "seq": 112}
    recording = made_ready("base", study("fastspeech"), shape, StackKeys())
    model = scaled(recording, [], tuple(shape))
    size, own = model.sizes({"batch": 40, "seq": 56})[0], recording.program.size
    stacks, row = study("fastspeech").snapshot.stacks, recording.subject.extraction.row
    is_product = np.array([any(frame.line == 76 for frame in stacks[one][:1]) for one in range(len(stacks))] + [False])
    made = np.flatnonzero((row >= 0) & is_product[study("fastspeech").history.lifetimes.stack][row] & (own > 1 << 20))
    shares = np.round(size[made] / own[made], 2)
    assert set(shares.tolist()) == {0.25, 0.5}, "a softmax goes with the square of the length, copies with the length"


@pytest.mark.parametrize("shape", ["s256", "s672"])
def test_other_lengths_of_random_data_from_one_recording(shape: str):
    of = Round("sixty_first")
    found, truth = of.predicted("fastspeech", ())[shape], of.truth("fastspeech", shape)
    assert found.peak_allocated.bytes == pytest.approx(truth["allocated"], rel=0.02)
    assert found.peak_allocated.low <= truth["allocated"] <= found.peak_allocated.high


def test_what_a_layer_makes_of_its_weight_alone_is_of_weights():
    nfnet = study("nfnet")
    lifetimes, size = nfnet.history.lifetimes, nfnet.history.size
    made = lifetimes.stack >= 0
    weights = size[nfnet.categories == PARAMETER]
    assert of_weights(nfnet.snapshot.stacks, size, lifetimes.stack.astype(np.int64), made, weights).any()
    Round("sixty_first").check("nfnet", (), 0.004, 0.07)


def test_windows_that_pad_all_recorded_sides_alike_are_as_many_as_another_side_takes():
    """Patches of 16 in windows of 14 × 14: 320 and 416 pixels are padded to 448, 160 to 224, and 800 to 896."""
    Round("sixty_seventh").check("sam", ("s416",), 0.005, 0.05)


@pytest.mark.parametrize(
    ("width", "whole", "fills"), [(224, 448, True), (112, 448, False), (149, 448, False), (448, 448, True)]
)
def test_windows_fill_a_side_at_all_recorded_ones(width: int, whole: int, fills: bool):
    assert _fills(width, whole, {320, 416}) is fills


def test_what_is_padded_is_a_square_of_whole_pixels():
    tokens = np.array([28 * 28, 28 * 27, 3])
    assert list(_whole_sides(tokens * 320**2, np.array([20 * 20, 20 * 20, 7]))) == [448]
