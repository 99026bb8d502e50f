"""Four programs of an eighth round, written and run before anything was predicted of them, with seven remedies each.

Masked words by torch's own encoder, letters of speech by LSTMs and CTC, a simulator on graphs, a diffusion U-Net with
written-out attention. The first figures are in docs/plan-quality.md.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.ledger import EDITS
from oomscope.analysis.ledger.attention.scores import written_out
from oomscope.analysis.ledger.dtypes.cross_entropy import of_logits
from oomscope.analysis.ledger.dtypes.precision import halves
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.edits.checkpoint import _inputs_of
from oomscope.analysis.ledger.states import first_states
from oomscope.analysis.ledger.structure.blocks import blocks
from oomscope.analysis.plan.growth.reductions import made_to_add_up
from tests.ledger.rounds import run

LOGITS = 12 * 512 * 30522 * 4
SCORES = 24 * 4 * 256 * 256 * 4
"""Bytes for 24 images of 16 × 16 pixels and four heads."""
EDGES = 6 * 1800 * 12 * 128 * 4
"""Bytes of 128 channels for 12 edges of each node."""


def edited(program: str, remedy: str) -> Edited:
    found = EDITS[remedy].edit(run(program), None)
    assert found is not None
    return found


def test_pixels_that_attend_to_one_another_have_scores():
    images = run("ddpm")
    assert set(images.size[written_out(images)].tolist()) == {SCORES}


def test_no_fused_kernel_may_take_queries_of_a_convolution():
    np.testing.assert_array_equal(edited("ddpm", "sdpa").others[-1].size, run("ddpm").draft.size)


def test_the_momentum_of_a_recurrent_layer_is_kept_for_every_weight_of_it():
    letters = run("letters")
    assert np.count_nonzero(first_states(letters) & (letters.size == 4 * 640 * 640 * 4)) == 16


def test_a_softmax_of_logits_is_in_16_bits_and_its_loss_is_not():
    words = run("masked")
    calls = of_logits(words)
    assert len(calls) == 3, "one a step"
    likely, call = edited("masked", "autocast").likely, calls[1]
    assert [likely.size[one] for one in (call.made, call.gradient, call.back)] == [LOGITS // 2, LOGITS, LOGITS // 2]
    copies = np.flatnonzero((likely.source == call.made) & (np.arange(len(likely)) >= len(words.size)))
    assert likely.size[copies[0]] == LOGITS
    assert words.begin[call.gradient] < likely.end[copies[0]] < words.begin[call.back]


def test_what_a_norm_and_a_shortcut_are_given_is_there_in_both_precisions():
    images = run("ddpm")
    joined = images.saved & (images.size == 24 * 288 * 64 * 64 * 4) & (halves(images).likely == 1.5)
    assert np.count_nonzero(joined & (images.step == 1)) == 1


def test_a_group_norm_before_the_layer_of_an_attention_has_no_activation_in_place():
    images = run("ddpm")
    before = np.flatnonzero(written_out(images) & (images.step == 1))[0]
    norm = np.flatnonzero(images.saved[:before] & (images.size[:before] == 24 * 288 * 256 * 4))[-3]
    assert halves(images).likely[norm] == 0.5


def test_a_sum_with_what_a_norm_made_is_in_full_precision():
    graph = run("mesh")
    joined = np.flatnonzero(graph.saved & (graph.step == 1) & (graph.size == 3 * EDGES))
    assert set(halves(graph).likely[joined].tolist()) == {0.5}, "a copy for the product"
    assert set(halves(graph).originals[joined[1:]].tolist()) == {1.0}, "beside what Python holds"


def test_all_that_goes_into_a_block_is_kept_until_it_has_gone_backward():
    graph = run("mesh")
    first = next(block for block in blocks(graph) if graph.step[block.rows[0]] == 1)
    inputs = _inputs_of(graph, first, None)
    assert sorted(graph.size[inputs].tolist()) == [EDGES // 12, EDGES]
    assert (edited("mesh", "checkpoint").likely.end[inputs] >= graph.end[first.inner].max()).all()


def test_sums_are_added_up_in_float32():
    graph = run("mesh")
    sums = made_to_add_up(graph.recording.program) & graph.during(BACKWARD)
    assert sums.any()
    likely = edited("mesh", "bf16").likely
    np.testing.assert_array_equal(likely.size[: len(sums)][sums], graph.size[sums])


def test_a_copy_is_there_from_when_the_gradient_is_and_goes_before_the_sums_behind_its_function():
    letters = run("letters")
    likely = edited("letters", "offload_activations").likely
    reserves = np.flatnonzero(letters.saved & (letters.step == 1) & (letters.size > 400 << 20))
    workspaces = letters.begin[letters.during(BACKWARD) & (letters.size > 700 << 20) & (letters.step == 1)]
    for row in reserves.tolist():
        copy = np.flatnonzero((likely.source == row) & (np.arange(len(likely)) >= len(letters.size)))
        assert np.count_nonzero((workspaces > likely.begin[copy]) & (workspaces < likely.end[copy])) == 2
    graph = run("mesh")
    likely, sums = edited("mesh", "offload_activations").likely, made_to_add_up(graph.recording.program)
    joined = np.flatnonzero(graph.saved & (graph.size == 3 * EDGES))
    copies = np.isin(likely.source, joined) & (np.arange(len(likely)) >= len(graph.size))
    assert np.isin(likely.end[copies], graph.begin[sums]).all()


def test_calls_beside_the_blocks_may_be_made_again_too():
    letters = run("letters")
    found = edited("letters", "checkpoint")
    convolved = np.flatnonzero(letters.saved & letters.during(FORWARD) & (letters.step == 1))[0]
    assert found.likely.end[convolved] < letters.end[convolved]
    assert any(other.end[convolved] == letters.end[convolved] for other in found.others)
