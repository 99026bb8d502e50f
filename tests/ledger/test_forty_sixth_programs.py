"""Programs of the thirty-ninth to the forty-sixth round: blocks of containers and of several classes, evaluations."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from oomscope.analysis.labels.phases import BACKWARD, OPTIMIZER
from oomscope.analysis.ledger.edits import adafactor, no_grad
from oomscope.analysis.ledger.graphs.never_backward import evaluations, never_backward
from oomscope.analysis.ledger.paths import paths
from oomscope.analysis.ledger.structure.blocks import blocks
from tests.ledger.rounds import run


def _files(program: str) -> Counter[str]:
    """How many blocks each file calls, whether through a container of torch's or not."""
    known = paths(run(program))
    found: Counter[str] = Counter()
    for block in blocks(run(program)):
        callers = known[int(run(program).stack[block.rows[0]])][: block.depth]
        found[next(part[-1][0] for part in reversed(callers) if not part[-1][0].startswith("torch/"))] += 1
    return found


def test_a_teacher_is_not_made_again_for_its_containers_are_those_of_the_model():
    found = _files("xcit_distill")
    assert len(found) == 1
    assert next(iter(found)).endswith("xcit_distill.py")


def test_blocks_of_several_classes_that_one_line_calls():
    """A U-Net's residual blocks, the attention between some of them, and what halves the image."""
    of_line = Counter(
        paths(run("unet_flow"))[int(run("unet_flow").stack[one.rows[0]])][: one.depth]
        for one in blocks(run("unet_flow"))
    )
    assert max(of_line.values()) >= 15
    left = sum(int(run("unet_flow").size[one.inner].sum()) for one in blocks(run("unet_flow")))
    assert left > 0.8 * run("unet_flow").size[run("unet_flow").saved].sum()


def test_an_evaluation_keeps_the_graph_of_each_of_its_batches():
    subject = run("chexnet_densenet121")
    graphs = evaluations(subject)
    assert len(graphs) == 2
    first, second = (int(subject.size[rows].sum()) for rows in graphs)
    assert second == pytest.approx(first, rel=0.02)
    edited = no_grad.edit(subject, None)
    assert edited is not None
    unused = np.flatnonzero(never_backward(subject))
    assert (edited.likely.end[unused] < subject.end[unused]).mean() > 0.9


def test_an_evaluation_behind_the_last_step_makes_no_temporaries_of_an_optimizer():
    subject = run("mt5_summarization")
    edited = adafactor.edit(subject, None)
    assert edited is not None
    trains = [step for step in range(subject.steps) if subject.last_of(step, BACKWARD, OPTIMIZER) > 0]
    assert max(trains) < subject.steps - 1
    added = edited.likely.begin[len(subject.size) :]
    assert len(added)
    assert added.max() < subject.first_of(max(trains) + 1, *range(5))


@pytest.mark.parametrize(("program", "blocks_of_a_step"), [("train_effnet", 16), ("vqgan_f16", 44)])
def test_blocks_of_classes_that_a_line_calls_in_turn_are_each_one(program: str, blocks_of_a_step: int):
    """Of stages whose first block has no shortcut, and of residual blocks, attention, and what halves an image."""
    subject = run(program)
    trained = [one for one in blocks(subject) if int(subject.step[one.rows[0]]) == 1]
    assert len(trained) == pytest.approx(blocks_of_a_step, abs=2)
