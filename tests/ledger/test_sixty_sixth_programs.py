"""What the sixty-first to the sixty-sixth round taught: weights made of weights, a GAN's two steppers, casts, ranges.

The first figures are in docs/plan-quality.md.
"""

from __future__ import annotations

import pytest

from oomscope.analysis.labels import own_layers
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.casts import autocast_copies, is_mixed
from oomscope.analysis.ledger.dtypes import usual_casts
from oomscope.analysis.ledger.edits import sdpa
from oomscope.analysis.ledger.edits.accumulate import _kept
from oomscope.analysis.ledger.graphs.several_steps import _of_each_optimizer, for_several_steps, optimizer_steps
from oomscope.analysis.ledger.ranges import NEAR, WIDEST, measured_doubt, range_of
from oomscope.analysis.study import DeviceStudy
from tests.ledger.rounds import Round, run, study

ROUND = Round("sixty_first")


def test_a_layer_that_standardizes_its_weight_is_told_by_what_it_makes_of_that():
    """The convolutions of NFNet are of a class of its own; one linear layer of torch's stands behind them."""
    found = own_layers.found(study("nfnet"))
    lines = {study("nfnet").snapshot.stacks[one][0].line for one in found[:-1].nonzero()[0].tolist()}
    assert lines == {30}
    assert run("nfnet").marked(Mark.LINEAR).sum() > found[run("nfnet").stack].sum() > 0


@pytest.mark.parametrize("program", ["convnext_v2", "bigbird", "encodec", "detr"])
def test_other_lines_are_no_layers(program: str):
    """Norms scale what they make by vectors, and batches may be as large as a weight by chance."""
    assert not own_layers.found(study(program)).any()


def test_a_layers_own_weight_does_not_grow_with_the_batch():
    model = run("nfnet")
    standardized = [
        row for row, one in enumerate(model.stack.tolist()) if one >= 0 and _line(model.study, one) == ("forward", 29)
    ]
    assert standardized
    assert not model.grows_with_batch[standardized].any()


def test_two_optimizers_that_one_method_steps_are_two():
    codec = run("encodec")
    assert [len(own) for own in _of_each_optimizer(codec)] == [4, 3], "the critic rests every third step"
    assert len(optimizer_steps(codec)) == 7


def test_what_a_generator_keeps_until_its_own_next_step_shrinks_with_its_micro_batches():
    codec = run("encodec")
    several = for_several_steps(codec)
    assert not _kept(codec).any()
    assert codec.size[several].sum() < 0.01 * codec.size[codec.saved].sum()


def test_results_that_are_half_as_large_as_one_weight_by_chance_are_no_copies_of_weights():
    assert not is_mixed(run("qformer"))
    assert not len(autocast_copies(run("qformer")))


@pytest.mark.parametrize(
    ("program", "casts"),
    [
        pytest.param("bigbird", True, id="a language model of its own"),
        pytest.param("masked", False, id="torch's own layers"),
        pytest.param("bert_mlm", False, id="transformers"),
        pytest.param("wavenet", False, id="256 classes of a sample"),
        pytest.param("nfnet", False, id="images"),
    ],
)
def test_which_models_cast_their_logits(program: str, casts: bool):
    assert usual_casts.logits(run(program), in_scores=False) is casts


def test_fewer_keys_that_one_layer_makes_with_queries_are_repeated_in_full_precision():
    few = sdpa.edit(run("starcoder"), None)
    assert few is not None
    assert few.likely is run("starcoder").draft
    assert few.beside_halves is not None, "kernels in 16 bits repeat them"
    assert not sdpa._packs_fewer_keys(run("bert_mlm"))


@pytest.mark.parametrize(
    ("others", "doubt", "low", "high"),
    [
        pytest.param([], 10, 490, 510, id="a doubt alone"),
        pytest.param([450], 10, 440, 510, id="around all"),
        pytest.param([350], 60, 346, 536, id="others before the rest of a doubt"),
        pytest.param([100], 60, 345, 535, id="others that are too far away"),
        pytest.param([100, 900], 10, 405, 595, id="on both sides"),
    ],
)
def test_a_range_spans_the_others_and_is_no_wider_than_it_may_be(others: list[int], doubt: int, low: int, high: int):
    found = range_of(500, others, doubt, 1000)
    assert found == pytest.approx((low, high), abs=1)
    assert found[1] - found[0] <= WIDEST * 1000
    assert found[0] <= 500 - min(doubt, NEAR * 1000)
    assert found[1] >= 500 + min(doubt, NEAR * 1000)


def test_two_remedies_are_in_doubt_by_what_the_less_sure_one_is():
    assert measured_doubt(["sgd", "bf16"]) == measured_doubt(["bf16"]) > measured_doubt(["sgd"])


@pytest.mark.parametrize(
    ("program", "remedy"),
    [
        ("nfnet", "autocast"),
        ("nfnet", "accumulate=4"),
        ("encodec", "accumulate=4"),
        ("starcoder", "sdpa"),
        ("bigbird", "bf16"),
    ],
)
def test_what_was_far_off_is_within_one_percent(program: str, remedy: str):
    assert ROUND.error(program, remedy) < 0.01


def _line(of: DeviceStudy, stack: int) -> tuple[str, int]:
    frame = of.snapshot.stacks[stack][0]
    return frame.name, frame.line
