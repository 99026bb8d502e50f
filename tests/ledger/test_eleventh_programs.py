"""Four programs of an eleventh round, written and run before anything was predicted of them.

torchvision's Swin transformer with an average of its weights, recurrent layers behind convolutions with CTC, a BERT
that encodes queries and passages by transformers, torchvision's DeepLab. The first figures are in docs/plan-quality.md.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.ledger.edits.bf16 import _softmaxes
from oomscope.analysis.ledger.edits.checkpoint import _beside_blocks, _is_called_through
from oomscope.analysis.ledger.states import first_states, per_parameter
from oomscope.analysis.ledger.structure.blocks import blocks
from oomscope.analysis.ledger.structure.call_tree import turns_of_which_some_end_early
from tests.ledger.rounds import run

STAGES = [3, 4, 23, 3]
"""Blocks of a ResNet-101."""


def test_blocks_of_which_only_the_first_of_a_stage_has_a_shortcut_are_told_apart():
    """``out += identity`` and an activation in place make nothing, so that the others end at an earlier line."""
    deeplab = run("deeplab")
    found = [block for block in blocks(deeplab) if deeplab.step[block.rows[0]] == 1]
    assert len(found) == sum(STAGES)
    shortcuts = np.flatnonzero(np.diff([len(set(deeplab.stack[block.rows].tolist())) for block in found]) > 0) + 1
    assert [0, *shortcuts.tolist()] == np.cumsum([0, *STAGES[:-1]]).tolist()


def test_what_a_shortcut_gave_to_a_sum_in_place_is_not_what_a_block_returns():
    deeplab = run("deeplab")
    for block in blocks(deeplab):
        assert deeplab.end[block.output] > deeplab.begin[int(block.rows[-1]) + 1]


def test_a_loop_within_a_call_has_the_lines_behind_it_at_its_end():
    assert turns_of_which_some_end_early([1, 2, 4, 1, 2, 1, 2, 4, 1, 2]) == [3, 5, 8]
    assert turns_of_which_some_end_early([1, 2, 1, 2, 4, 1, 2, 1, 2, 4]) == [], "two calls with a loop of two turns"
    assert turns_of_which_some_end_early([1, 2, 4, 1, 2, 4]) == [], "the last line of all of them tells"
    assert turns_of_which_some_end_early([1, 2, 3]) == []


def test_what_the_function_that_calls_the_blocks_calls_for_other_lines_is_made_again_as_well():
    """``x = self.run(layer, x)`` for each layer, and once for the convolutions before them."""
    for program in ("bilstm", "letters"):
        found = blocks(run(program))
        beside = _beside_blocks(run(program), found)
        assert len(beside) == run(program).steps
        assert all(_is_called_through(run(program), call, found) for call in beside), program
    found = blocks(run("vae"))
    assert not any(_is_called_through(run("vae"), call, found) for call in _beside_blocks(run("vae"), found)), (
        "a loop of one line in two modules is no such function"
    )


def test_attention_of_transformers_casts_its_softmax_in_decoders():
    known, may_be = _softmaxes(run("qwen3"))
    assert known.any()
    assert not may_be.any()
    known, may_be = _softmaxes(run("retriever"))
    assert not known.any()
    assert not may_be.any(), "its line of torch is that of calls without a dtype"


def test_an_average_of_the_weights_does_not_double_the_states_of_each():
    swin = run("shifted")
    assert per_parameter(swin) == 2
    assert 2 * swin.size[first_states(swin)].sum() == swin.size[swin.states].sum()
