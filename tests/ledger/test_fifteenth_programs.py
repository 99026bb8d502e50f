"""What four programs of a fifteenth round showed.

A model that is tuned to preferences beside a frozen copy; a state space model of genomes; a network of protein
structures that runs twice and goes backward once; a segmenter whose validation keeps a graph in a list.
"""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.ledger import EDITS, ledger_of
from oomscope.analysis.ledger.attention.biased import attends, learned
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.graphs.never_backward import never_backward
from oomscope.analysis.ledger.passes import forwards
from oomscope.analysis.ledger.run import Run
from tests.ledger.rounds import run, study

GIB, MIB = 1 << 30, 1 << 20
BLOCKS = 3
SCORES, EACH = 54 * MIB, 9 * MIB
SHIFTED = 41_604_416
"""Bytes of the scores of a stage of two blocks, in whole 512 bytes."""


def edited(program: str, slug: str) -> Edited:
    found = EDITS[slug].edit(run(program), None)
    assert found is not None
    return found


def _of_last_round(model: Run, rows: np.ndarray) -> np.ndarray:
    """What a forward makes that its backward gives up."""
    step = int(model.step[rows[0]])
    saved = rows[model.saved[rows]]
    return saved[model.end[saved] > model.first_of(step, BACKWARD)]


def test_the_graph_of_the_round_before_goes_for_nothing():
    fold = run("recycled")
    unused = never_backward(fold)
    for rows in forwards(fold):
        own = rows[unused[rows]]
        assert 4 * GIB < fold.size[own].sum() < 4.5 * GIB
        used = _of_last_round(fold, rows)
        assert fold.size[used[used < own.max()]].sum() < fold.size[own].sum() / 16
        made = np.searchsorted(fold.begin, [fold.end[own].min(), fold.end[own].max()])
        assert made[0] == made[1], "at once, where the result of the next round is bound"


def test_what_no_backward_uses_is_not_made_again_and_goes_into_no_block():
    fold = run("recycled")
    draft = edited("recycled", "checkpoint").likely
    unused = np.flatnonzero(never_backward(fold))
    assert not np.isin(draft.source[len(fold.size) :], unused).any()
    large = unused[fold.size[unused] > 16 * MIB]
    assert (draft.end[large] <= fold.end[large]).all()


def test_no_grad_is_listed_for_the_round_before_alone():
    assert "no_grad" in {row.slug for row in ledger_of(study("recycled")).rows}
    fold = run("recycled")
    moved = edited("recycled", "no_grad").likely.end < fold.end
    assert not moved[~never_backward(fold)].any()


def test_activations_of_a_validation_in_its_own_function_stay_on_the_card():
    images = run("windowed")
    unused = never_backward(images)
    assert images.below_optimizer[unused].all()
    assert images.size[unused & (images.step == 2)].sum() > 4 * GIB
    draft = edited("windowed", "offload_activations").likely
    assert (draft.end[: len(images.end)][unused] == images.end[unused]).all()
    # In the loop itself, as in the round before, what is switched on there is on for it, too.
    smoothed = run("validated")
    draft = edited("validated", "offload_activations").likely
    assert (draft.end[: len(smoothed.end)] < smoothed.end)[never_backward(smoothed)].all()


def test_queries_keys_and_values_of_one_layer_are_attention():
    policy = run("chosen")
    rows = attends(policy) & policy.during(FORWARD)
    assert (policy.size[rows] == SCORES).all()
    assert all(np.count_nonzero(rows & (policy.step == step)) == 2 * 10 for step in range(policy.steps))


def test_a_kernel_keeps_the_whole_result_that_its_values_are_a_view_of():
    policy = run("chosen")
    draft = edited("chosen", "sdpa").likely
    grown = draft.size[: len(policy.size)] > policy.size
    assert grown.any()
    assert (policy.size[grown] == EACH).all()
    assert (draft.size[: len(policy.size)][grown] == 3 * EACH).all()
    assert (policy.saved & policy.during(FORWARD))[grown].all()


@pytest.mark.parametrize("program", ["windowed", "shifted"])
def test_a_bias_of_relative_places_is_learned_in_every_stage(program: str):
    images = run(program)
    found = attends(images) & images.during(FORWARD) & ~images.below_optimizer
    if found.any():
        assert learned(images, found)[found].all()
