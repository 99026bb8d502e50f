"""Two programs of a thirteenth round, written and run before anything was predicted of them.

A recommender of two towers, whose tables have dense gradients that are zeroed in place and whose loss compares with all
items of the batch; and a decoder of routed experts with groups of queries. The first figures are in
docs/plan-quality.md.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.ledger import EDITS
from oomscope.analysis.ledger.attention.matmuls import _of_repeated_keys, attentions
from oomscope.analysis.ledger.corrected import _of_whole_numbers, corrected, masks_of_logits, of_pairs_of_samples
from oomscope.analysis.ledger.dtypes.weight_copies import _is_of_sorted_rows, _of_step
from oomscope.analysis.ledger.edits.fused_loss import _logits
from oomscope.analysis.ledger.structure.blocks import blocks
from oomscope.analysis.ledger.structure.parts import parts
from tests.ledger.rounds import run

LAYERS = 6
BATCH, HISTORY = 8192, 64
USERS, ITEMS = 1_000_000 * 64 * 4, 1_500_000 * 64 * 4
LOGITS = BATCH * BATCH * 4
SCORES = 8 * 12 * 512 * 512 * 4


def test_what_is_added_to_a_gradient_that_stays_is_none_itself():
    towers = run("towers")
    tables = towers.gradients & np.isin(towers.size, (USERS, ITEMS))
    assert towers.step[tables].tolist() == [0, 0], "zeroed in place"


def test_gradients_that_are_made_anew_are_found_in_each_step():
    routed = run("routed")
    number = [int((routed.gradients & (routed.step == step)).sum()) for step in range(routed.steps)]
    assert len(set(number)) == 1
    assert number[0] > LAYERS * 24


def test_a_table_that_is_asked_behind_layers_goes_into_no_product():
    towers = run("towers")
    tables = np.flatnonzero(towers.gradients & (towers.size == ITEMS))
    assert [_is_of_sorted_rows(towers, int(row)) for row in tables] == [True]
    copied, _ = _of_step(towers, 0)
    assert not np.isin(towers.size[copied], (USERS, ITEMS)).any()
    assert len(copied), "the towers' weights are"


@pytest.mark.parametrize("program", ["vitdet", "segment", "conformer"])
def test_weights_of_products_are_no_tables(program: str):
    model = run(program)
    assert not any(_is_of_sorted_rows(model, int(row)) for row in np.flatnonzero(model.gradients))


def test_what_is_half_as_large_as_logits_before_the_last_layers_is_none_of_them():
    towers = run("towers")
    found = _logits(towers)
    assert (found & (towers.size == LOGITS) & towers.during(FORWARD)).sum() == 5 * towers.steps
    assert not (found & (towers.size == BATCH * HISTORY * 64 * 4)).any(), "the items of the histories"


def test_the_logits_of_a_loss_before_another_one_are_logits_all_the_same():
    """The main loss of images, whose logits are made before the layers of the other one."""
    deeplab = run("deeplab")
    made = _logits(deeplab) & deeplab.during(FORWARD)
    largest = deeplab.size == deeplab.size[made].max()
    assert (made & largest).sum() == (deeplab.during(FORWARD) & largest & (deeplab.stack >= 0)).sum()


def test_the_parts_that_a_model_without_blocks_calls_are_made_again():
    towers = run("towers")
    assert not blocks(towers)
    found = parts(towers)
    assert len(found) == 3 * towers.steps, "the pooling of the history, and two towers"
    assert towers.size[found[0].inner].max() == 4 * BATCH * HISTORY * 64 * 4


@pytest.mark.parametrize("program", ["recommender", "pinn", "clicks", "lstm"])
def test_of_one_part_or_of_small_ones_there_is_nothing_to_make_again(program: str):
    assert not parts(run(program))


def test_logits_that_are_corrected_by_a_vector_of_whole_numbers_are_in_float32():
    towers = run("towers")
    found = corrected(towers)
    assert (found & towers.during(FORWARD) & (towers.size == LOGITS)).sum() == 4 * towers.steps, "not the product"
    assert (found & towers.during(BACKWARD)).sum() == 4 * towers.steps
    assert (towers.size[masks_of_logits(towers)] == LOGITS // 4).all()
    assert masks_of_logits(towers).sum() == towers.steps


@pytest.mark.parametrize("program", ["retriever", "twotower", "preference", "dino"])
def test_logits_that_nothing_corrects_are_as_precise_as_the_model(program: str):
    assert not corrected(run(program)).any()


@pytest.mark.parametrize(
    ("sizes", "stacks", "saved", "whole", "found"),
    [
        ([4, 4, 4, 9], [1, 1, 1, 2], "....", 8, [2]),
        ([4, 4, 4, 9], [1, 1, 1, 2], ".x..", 8, []),
        ([4, 4, 4, 9], [1, 1, 1, 2], "....", 4, []),
        ([4, 9, 4, 9], [1, 1, 1, 2], "....", 8, []),
    ],
    ids=["a logarithm", "of what is trained", "of float32", "of one step"],
)
def test_steps_of_a_line_of_which_none_is_needed_are_made_of_an_input(
    sizes: list[int], stacks: list[int], saved: str, whole: int, found: list[int]
):
    line: Any = SimpleNamespace(
        size=np.array([*sizes, whole]) << 10,
        stack=np.array([*stacks, 7]),
        step=np.zeros(len(sizes) + 1),
        saved=np.array([one == "x" for one in saved + "."]),
        of=lambda _: np.array([False] * len(sizes) + [True]),
    )
    assert _of_whole_numbers(line, np.arange(len(sizes))) == found


def test_logits_of_each_sample_against_each_other_shrink_with_the_square_of_the_batch():
    towers = run("towers")
    found = of_pairs_of_samples(towers)
    assert set(towers.size[found].tolist()) == {LOGITS, LOGITS // 4}
    edited = EDITS["accumulate"].edit(towers, 4)
    assert edited is not None
    number = len(towers.size)
    assert (16 * edited.likely.size[:number][found] == towers.size[found]).all()
    saved = towers.saved & ~found & (towers.size >= 1 << 20)
    assert (4 * edited.likely.size[:number][saved] == towers.size[saved]).all()


@pytest.mark.parametrize("program", ["retriever", "preference", "gpt", "routed", "deeplab", "masked"])
def test_logits_over_a_vocabulary_or_classes_do_not(program: str):
    assert not of_pairs_of_samples(run(program)).any()


def test_scores_of_keys_that_were_repeated_for_groups_of_queries_are_found():
    routed = run("routed")
    assert len(attentions(routed)) == LAYERS * routed.steps
    for call in attentions(routed):
        assert (routed.size[call.scores] == SCORES).sum() == 5, "made, scaled, masked, a softmax, a dropout"
        assert (routed.size[call.scores] == SCORES // 4).sum() == 1, "the mask of the dropout"


@pytest.mark.parametrize(
    ("sizes", "stacks", "saved", "linear", "found"),
    [
        ([2, 2, 2, 8, 8, 8, 2, 2], [1, 2, 3, 3, 3, 4, 5, 6], "xxx..x..", ".......x", [3, 4, 5]),
        ([2, 2, 2, 8, 8, 8, 2, 2], [1, 2, 3, 3, 3, 4, 5, 6], "xxx.....", ".......x", None),
        ([2, 2, 2, 8, 8, 8, 2, 2], [1, 2, 3, 4, 4, 4, 5, 6], "xxx..x..", ".......x", None),
        ([2, 2, 2, 8, 8, 8, 2, 2], [1, 2, 3, 3, 3, 4, 5, 6], "xxx..x..", "x......x", None),
        ([2, 2, 2, 8, 8, 2, 2, 2], [1, 2, 3, 3, 3, 5, 5, 6], "xxx.x...", ".......x", None),
    ],
    ids=["three stages", "none is kept", "copied by another line", "a layer's", "two stages"],
)
def test_one_copy_before_the_scores_is_enough_where_keys_and_values_are_ready(
    sizes: list[int], stacks: list[int], saved: str, linear: str, found: list[int] | None
):
    flags = [np.array([one == "x" for one in text]) for text in (saved, linear)]
    line: Any = SimpleNamespace(
        size=np.array(sizes) << 20,
        stack=np.array(stacks),
        saved=flags[0],
        marked=lambda _: flags[1],
        study=SimpleNamespace(once=lambda *_: np.zeros(len(sizes), np.bool_)),
    )
    calls = _of_repeated_keys(line, np.arange(len(sizes)))
    assert [call.scores.tolist() for call in calls] == ([found] if found else [])
