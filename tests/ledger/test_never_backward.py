"""Graphs that no backward uses, and an evaluation with a batch of its own, in two programs of a fourteenth round.

A U-Net whose average is evaluated with a graph at the end of each round of the loop, which a variable keeps through the
next one; a frozen encoder of speech whose output is detached, though its convolutions run with a graph.
"""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.ledger import EDITS, ledger_of
from oomscope.analysis.ledger.graphs.never_backward import never_backward
from oomscope.analysis.ledger.passes import forwards
from oomscope.analysis.plan.requests.below_optimizer import share_of_batch
from tests.ledger.rounds import run, study

CONVOLUTIONS = 7


def _below(program: str) -> tuple[np.ndarray, np.ndarray]:
    """What a program computes below its optimizer's step, and what its forwards make."""
    model = run(program)
    return model.below_optimizer, model.during(FORWARD) & (model.stack >= 0)


def test_the_convolutions_of_a_frozen_encoder_are_kept_for_nothing():
    speech = run("frozen")
    found = never_backward(speech)
    for step, rows in enumerate(forwards(speech)):
        own = rows[found[rows]]
        assert len(own) == 2 * CONVOLUTIONS + 2, "with their activations, and a norm"
        assert (speech.end[own] < speech.first_of(step, BACKWARD)).all()
        assert speech.size[own].sum() > 1.4 * 2**30


def test_an_evaluation_is_kept_until_the_next_one():
    images = run("validated")
    found, below = never_backward(images), _below("validated")[0]
    assert found.any()
    assert below[found].all()
    kept = np.flatnonzero(found & (images.step == 2))
    assert 1.2 * 2**30 < images.size[kept].sum() < 1.4 * 2**30
    assert (images.end[kept] > images.last_of(2, BACKWARD)).mean() > 0.9


@pytest.mark.parametrize("program", ["frozen", "validated"])
def test_no_grad_is_listed_and_spares_that_alone(program: str):
    model = run(program)
    edited = EDITS["no_grad"].edit(model, None)
    assert edited is not None
    moved = edited.likely.end < model.end
    assert moved[never_backward(model)].all()
    assert not moved[~never_backward(model)].any()
    assert (edited.likely.size == model.size).all()
    assert "no_grad" in {row.slug for row in ledger_of(study(program)).rows}


@pytest.mark.parametrize(
    "program", ["shifted", "forecast", "smoothed", "latent", "teacher", "superres", "ddpm", "speech"]
)
def test_what_a_backward_uses_or_python_holds_is_not_kept_for_nothing(program: str):
    """Swin's evaluation runs without a graph: what its functions hold goes when each returns."""
    assert not never_backward(run(program)).any()


def test_micro_batches_leave_an_evaluation_as_it_is():
    images = run("validated")
    edited = EDITS["accumulate"].edit(images, 4)
    assert edited is not None
    below, forward = _below("validated")
    count = len(images.size)
    assert (edited.likely.size[:count] == images.size)[below].all()
    trained = images.grows_with_batch & forward & ~below
    assert (edited.likely.size[:count][trained] < images.size[trained]).mean() > 0.9


@pytest.mark.parametrize(("program", "own"), [("validated", True), ("shifted", False)])
def test_an_evaluation_whose_modules_make_other_sizes_has_a_batch_of_its_own(program: str, own: bool):
    model = run(program)
    below, forward = _below(program)
    assert 0.1 < below[forward].mean() < 0.6
    stacks = model.study.snapshot.stacks
    assert (share_of_batch(stacks, model.stack[forward], model.size[forward], below[forward]) != 1) is own


@pytest.mark.parametrize("program", ["frozen", "superres", "forecast"])
def test_nothing_is_below_the_last_of_several_optimizers(program: str):
    below, forward = _below(program)
    assert not below[forward].any()
