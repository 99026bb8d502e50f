"""Five more programs, written and run before anything was predicted of them, with nine to twelve remedies each.

A detector with a pyramid and shared heads, an autoencoder with a frozen critic, state space layers, a radiance field,
a decoder against its frozen copy. The first figures are in docs/plan-quality.md.
"""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger import EDITS
from oomscope.analysis.ledger.casts import is_mixed
from oomscope.analysis.ledger.dtypes.promotion import promoted
from oomscope.analysis.ledger.dtypes.slopes import learned_slopes
from oomscope.analysis.ledger.losses import losses
from oomscope.analysis.ledger.pairs import both
from oomscope.analysis.ledger.structure.blocks import blocks
from tests.ledger.rounds import run


@pytest.mark.parametrize(("program", "count"), [("detector", 16), ("nerf", 10), ("ssm", 12), ("preference", 8)])
def test_a_head_over_the_levels_of_a_pyramid_is_no_loop_of_blocks(program: str, count: int):
    """The detector calls both heads for five levels each, with the same weights."""
    assert sum(int(run(program).step[block.rows[0]]) == 1 for block in blocks(run(program))) == count


def test_what_a_layer_makes_of_small_features_is_no_copy_of_a_weight():
    assert not is_mixed(run("detector"))


def test_the_softmax_of_logits_is_a_loss_without_a_frame_that_says_so():
    decoder = run("preference")
    made = np.flatnonzero(losses(decoder) & (decoder.step == 1))
    assert decoder.size[made].tolist() == [2 * 4 * 511 * 32000 * 4] * 2, "of the frozen copy, and of the decoder"
    assert not decoder.marked(Mark.LOSS).any()


def test_targets_of_whole_numbers_make_what_is_computed_with_them_float32():
    images = run("detector")
    made = np.flatnonzero(promoted(images) & (images.step == 1))
    assert images.size[made[0]] == 2 * images.size[made[1]], "the classes, one-hot, before they are cast"
    assert len(set(images.size[made[1:]].tolist())) == 1


def test_slopes_that_are_learned_are_told_by_their_gradient_for_each_element():
    volumes = run("vnet")
    calls = learned_slopes(volumes) & (volumes.step == 1)
    assert np.count_nonzero(calls) == 14
    assert not learned_slopes(run("convnext")).any()


def test_what_is_made_again_beside_activations_is_as_small_as_another_remedy_makes_it():
    images = run("detector")
    edits = [EDITS[slug].edit(images, None) for slug in ("checkpoint", "autocast")]
    assert edits[0] is not None and edits[1] is not None  # noqa: PT018
    first = edits[0].likely
    beside = np.flatnonzero((first.end - first.begin == 1) & (first.source >= 0))
    together = both(images.draft, edits[0], edits[1]).likely
    assert together.size[beside].sum() < 0.75 * first.size[beside].sum()
