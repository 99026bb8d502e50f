"""What the fifty-eighth to the sixtieth round taught: a GPT of layers of its own, ConvNeXt V2, ELECTRA, clicks.

GANs and rollouts are of earlier rounds. The first figures are in docs/plan-quality.md.
"""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.labels import own_layers
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger import ledger_of, parse_remedy
from oomscope.analysis.ledger.attention.matmuls import attentions
from oomscope.analysis.ledger.edits.accumulate import accumulated
from oomscope.analysis.ledger.graphs.never_backward import never_backward
from oomscope.analysis.ledger.graphs.several_steps import for_several_steps, now_and_then, optimizer_steps
from oomscope.analysis.ledger.structure.blocks import blocks
from oomscope.analysis.ledger.structure.call_tree import _lines
from oomscope.wording import say
from tests.ledger.rounds import Round, run, study


def test_layers_of_a_programs_own_are_found_where_it_has_none_of_torchs():
    model = run("megatron")
    products = model.marked(Mark.LINEAR)
    assert not (study("megatron").roles.mark[model.stack] & int(Mark.LINEAR)).any()
    lines = {study("megatron").snapshot.stacks[one][0].line for one in model.stack[products].tolist()}
    assert lines == {178, 179}, "both returns of one forward, with a bias and without"
    assert own_layers.marks(study("convnext_v2")) is study("convnext_v2").roles.mark


def test_blocks_are_told_by_the_function_that_their_one_line_calls_behind_another_class():
    """Eighteen blocks in each of four steps; a norm before each stage is of the same container, and much smaller."""
    assert sum(len(one.rows) > 12 for one in blocks(run("convnext_v2"))) == 4 * 18


@pytest.mark.parametrize(
    ("parts", "lines"),
    [
        pytest.param([("a", 9), ("b", 5), None], [9, 15, 20], id="what the line does itself comes last"),
        pytest.param([("a", 9), ("a", 8), None, ("a", 9)], [9, 8, 10, 9], id="one function"),
        pytest.param([None, ("a", 9)], [1, 1], id="what the line does first is not in a function"),
    ],
)
def test_functions_of_one_line_count_in_the_order_in_which_they_come(
    parts: list[tuple[str, int] | None], lines: list[int]
):
    own = ("model.py", 1, "forward")
    given = [(own,) if one is None else (own, ("model.py", one[1], one[0])) for one in parts]
    assert _lines(given) == lines


def test_attention_is_found_in_an_evaluation_that_keeps_its_graph():
    clicks = run("behaviour_sequences")
    kept = never_backward(clicks)
    assert any(kept[one.scores].any() and not clicks.saved[one.scores].any() for one in attentions(clicks))


def test_what_two_optimizers_find_in_turn_is_there_for_one_step_of_each():
    assert not for_several_steps(run("pix2pix")).any()
    assert for_several_steps(run("rollouts")).any()


def test_a_rollout_is_made_once_and_before_all_gradients():
    """Of PPO: sixteen steps of the optimizer, four rollouts without a graph before them."""
    policy = run("rollouts")
    acts = now_and_then(policy)
    assert acts.any()
    assert len(optimizer_steps(policy)) == 16
    assert not acts[policy.saved].any()
    draft = accumulated(policy, policy.draft)
    first = np.flatnonzero(policy.gradients & (policy.step == policy.step[policy.gradients].max()))[0]
    before = policy.begin[acts][policy.begin[acts] < policy.begin[first]].max()
    assert draft.begin[first] > before
    assert not now_and_then(run("pix2pix")).any()


def test_where_no_trace_tells_whether_logits_are_cast_a_note_says_what_the_other_case_comes_to():
    """It does here: the truth lies nearer to what the note says than to the row."""
    ledger = ledger_of(study("gpt_pretrain"), [parse_remedy("bf16")])
    (note,) = [one for one in ledger.notes if one.code == "ledger.logits_cast"]
    truth = Round("thirty_first").peaks["gpt_pretrain"]["on"]["bf16"]["allocated"]
    assert abs(note.values["bytes"] - truth) < 0.4 * abs(ledger.rows[0].peak_allocated.bytes - truth)
    assert truth < ledger.rows[0].peak_allocated.low
    assert say(note).startswith(
        "With bf16, logits are taken to be cast for their loss (`logits.float()`); if they stay"
    )
