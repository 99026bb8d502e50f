"""Reinforcement learning from pixels, whose rollout keeps a graph through all steps made with it; and words."""

from __future__ import annotations

from oomscope.analysis.ledger import EDITS
from oomscope.analysis.ledger.attention.matmuls import attentions
from oomscope.analysis.ledger.graphs.never_backward import never_backward
from oomscope.analysis.ledger.graphs.several_steps import for_several_steps, optimizer_steps
from tests.ledger.rounds import run

UPDATES = 4
"""Two epochs of two batches, with each of four rollouts."""


def test_each_rollout_has_several_steps_of_the_optimizer():
    assert len(optimizer_steps(run("rollouts"))) == 4 * UPDATES
    assert len(optimizer_steps(run("chosen"))) == run("chosen").steps


def test_micro_batches_leave_a_rollout_as_it_is():
    pixels = run("rollouts")
    edited = EDITS["accumulate"].edit(pixels, 2)
    assert edited is not None
    graph = never_backward(pixels) & for_several_steps(pixels)
    # What acts on one image after the other keeps a graph as well, each to the next image alone.
    acting, lasts = never_backward(pixels) & ~for_several_steps(pixels), pixels.end - pixels.begin
    assert lasts[acting].max() < lasts[graph].min()
    size = edited.likely.size[: len(pixels.size)]
    assert (size == pixels.size)[graph].all()
    others = pixels.saved & pixels.grows_with_batch & ~for_several_steps(pixels)
    assert (size < pixels.size)[others].mean() > 0.9


def test_a_graph_that_one_step_outlives_is_made_anew_for_each_micro_batch():
    policy = run("chosen")
    assert never_backward(policy).any()
    assert not for_several_steps(policy)[never_backward(policy)].any()


def test_a_product_that_no_backward_needs_is_no_attention():
    """As of a language model's states with the table of its words, in an evaluation."""
    assert attentions(run("truncated")) == ()
    assert EDITS["sdpa"].edit(run("truncated"), None) is None
    images = run("masked_patches")
    assert len(attentions(images)) > 0
    assert all(images.saved[call.scores].any() for call in attentions(images))
