"""Programs of the forty-seventh to the fifty-seventh round: plain functions, a head behind the last block, biases."""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.ledger import ledger_of
from oomscope.analysis.ledger.attention.written_out import scores_of_fused, written_by_torch
from oomscope.analysis.ledger.dtypes.own_parameters import with_own_parameters
from oomscope.analysis.ledger.edits.fused_loss import _logits
from oomscope.analysis.ledger.paths import has_modules, paths
from oomscope.analysis.ledger.structure.blocks import blocks
from oomscope.analysis.ledger.structure.call_tree import (
    turns_of_which_some_have_more,
    turns_of_which_the_last_goes_on,
)
from tests.ledger.rounds import run, study


@pytest.mark.parametrize(("program", "modules"), [("huginn", False), ("retnet", False), ("latent_attention", True)])
def test_functions_take_the_place_of_modules(program: str, modules: bool):
    assert has_modules(run(program)) is modules
    assert {len(part) for path in paths(run(program)).values() for part in path} == {1} or modules


def test_plain_functions_have_blocks():
    """Four blocks a turn, of a random number of turns with gradients; twelve layers, three batches in evaluation."""
    assert len(blocks(run("huginn"))) == 48
    assert len(blocks(run("retnet"))) == 12 * 4 + 12 * 3


def test_weights_that_no_module_holds_are_parameters():
    weights = run("retnet").size[run("retnet").parameters]
    assert len(weights) == 12 * 9 + 3
    assert not ledger_of(study("retnet"), [("autocast", None)]).rows, "nothing tells which results are products"


@pytest.mark.parametrize(
    ("program", "count"),
    # A stage of Swin and a layer of MBART; a Vision Transformer's blocks, but not what convolves behind it.
    [("donut", (4 + 4) * 4), ("vitmatte", 4 * 4), ("transolver", 8 * 6)],
)
def test_blocks(program: str, count: int):
    assert len(blocks(run(program))) == count


@pytest.mark.parametrize(
    ("lines", "turns"),
    [
        ([1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 3], [2, 4, 6, 8, 10]),
        # Fewer turns may be those of a loop within one call.
        ([1, 2, 1, 2, 1, 2, 3], []),
        # Stages of different numbers of blocks.
        ([1, 2, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 3], []),
        ([1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2], []),
    ],
)
def test_the_last_of_several_blocks_may_go_on(lines: list[int], turns: list[int]):
    assert turns_of_which_the_last_goes_on(lines) == turns


@pytest.mark.parametrize(
    ("lines", "turns"),
    [
        pytest.param([1, 2, 3, 4, 1, 2, 3, 4, 5, 1, 2, 3, 4], [4, 9], id="one of three attends"),
        pytest.param([1, 2, 3, 4, 1, 2, 3, 4, 5], [4], id="the last attends"),
        pytest.param([1, 2, 3, 1, 2, 3, 4], [], id="three lines may be a loop with what is behind it"),
        pytest.param([1, 2, 3, 4, 2, 3, 4, 1, 2, 3, 4, 5], [], id="a call goes on with a loop"),
        pytest.param([1, 2, 4, 5, 6, 1, 2, 3, 4, 5, 6], [], id="what one has more is not behind the rest"),
    ],
)
def test_some_blocks_may_have_more_than_others(lines: list[int], turns: list[int]):
    assert turns_of_which_some_have_more(lines) == turns


def test_a_bias_that_each_attention_makes_keeps_fused_kernels_away():
    model = run("flan_t5")
    assert not scores_of_fused(model)[model.size == 4 * 12 * 512 * 512 * 4].any()
    assert model.size[written_by_torch(model)].sum() > 1 << 30


def test_a_norm_with_buffers_of_its_own_is_computed_in_full():
    model = run("transvg")
    made = model.size[with_own_parameters(model)]
    assert made.sum() > 1 << 32


def test_logits_are_as_long_as_the_sequences_of_their_step():
    model = run("dpo_pairs")
    found = _logits(model)
    sizes = [np.unique(model.size[found & (model.step == step) & (model.size > 1 << 29)]) for step in range(4)]
    assert all(len(one) == 2 for one in sizes), "with the last token and without it"
    assert len(np.unique(np.concatenate(sizes))) == 2 * len(sizes)
