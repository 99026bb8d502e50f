"""Programs of the twenty-fifth to the thirtieth round: what a line of torch, or how models are written, tells."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from oomscope.analysis.ledger import EDITS
from oomscope.analysis.ledger.casts import is_of_unknown_width
from oomscope.analysis.ledger.dtypes.norm_casts import in_float32
from oomscope.analysis.ledger.dtypes.own_parameters import with_own_parameters
from oomscope.analysis.ledger.dtypes.softmax_dtypes import with_dtype, without_dtype
from oomscope.analysis.ledger.graphs.untrained import untrained
from oomscope.analysis.ledger.losses import losses
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.structure.blocks import blocks
from oomscope.analysis.ledger.structure.call_tree import CallTree
from oomscope.analysis.ledger.structure.made_again import made_again
from oomscope.analysis.ledger.widths import frozen_are_of_32_bits
from oomscope.analysis.plan.requests.calls import Path
from oomscope.model import Frame, StackTable
from tests.ledger.rounds import run

MIB = 1 << 20


def _of_torch(name: str, line: int, file: str = "functional") -> Frame:
    return Frame(f"/venv/lib/python3.12/site-packages/torch/nn/{file}.py", line, name)


def _made_at(*frames: Frame) -> Run:
    """A run of one request, as far as its stack goes."""
    snapshot = SimpleNamespace(stacks=StackTable.from_stacks(frames, [[*range(len(frames))]]))
    return cast("Run", SimpleNamespace(study=SimpleNamespace(snapshot=snapshot), stack=np.zeros(1, np.int64)))


@pytest.mark.parametrize(
    ("name", "line", "wrapped", "with_one", "without"),
    [
        ("softmax", 2159, 1779, False, True),  # torch 2.11
        ("softmax", 2161, 1779, True, False),
        ("softmax", 2159, 1776, True, False),  # torch 2.10, where the line is the other one
        ("softmax", 2157, 1776, False, True),
        ("softmax", 1858, 1518, True, False),  # torch 2.1
        ("softmax", 1858, 1511, False, True),  # torch 2.2
        ("log_softmax", 2269, 1779, True, False),
        ("log_softmax", 2267, 1779, False, True),
        ("softmax", 9999, 1779, False, False),  # of a release that nobody knows yet
        ("gumbel_softmax", 2161, 1779, False, False),
    ],
)
def test_a_line_of_torch_tells_whether_a_softmax_has_a_dtype(
    name: str, line: int, wrapped: int, with_one: bool, without: bool
) -> None:
    seen = _made_at(_of_torch(name, line), _of_torch("_wrapped_call_impl", wrapped, "modules/module"))
    assert (bool(with_dtype(seen)[0]), bool(without_dtype(seen)[0])) == (with_one, without)


@pytest.mark.parametrize(
    ("program", "has_dtype"), [("bloom", True), ("translation", True), ("bert", False), ("esm_distill", False)]
)
def test_softmaxes_of_scores(program: str, has_dtype: bool) -> None:
    assert (with_dtype(run(program)) & ~losses(run(program))).any() == has_dtype
    assert without_dtype(run(program)).any() != has_dtype


@pytest.mark.parametrize(
    ("program", "copy_alone", "mib"),
    [
        # A norm of one line casts nothing, one of two does; T5 keeps what it was given beside the copy.
        ("grouped", True, 0),
        ("ssm", False, 0),
        ("rotary", True, 450),
        ("relative", False, 236),
        # Of Gemma's, the result is in float32 as well.
        ("gemma", True, 3510),
    ],
)
def test_what_norms_keep_in_float32(program: str, copy_alone: bool, mib: int) -> None:
    one = run(program)
    share = in_float32(one, copy_alone=copy_alone)
    assert set(np.unique(share[share > 0]).tolist()) <= ({1.0} if copy_alone else {1.5})
    assert int(one.size[(share > 0) & (one.step == 1)].sum()) // MIB == pytest.approx(mib, abs=mib // 50)


@pytest.mark.parametrize(
    ("program", "left"),
    [
        ("roberta", "evaluation"),
        ("bert_twice", "evaluation"),
        ("enformer", "evaluation"),
        ("e5_retriever", "evaluation"),
        ("dpo_sliding", "reference"),
        # Models of images do not ask whether they train; nor does a round that recycles, which trains.
        ("fcos", ""),
        ("swin_ema", ""),
        ("recycled", ""),
        ("vocoder_gan", ""),
    ],
)
def test_which_calls_of_blocks_are_made_again(program: str, left: str) -> None:
    every = blocks(run(program))
    again = made_again(run(program), every)
    others = [one for one in every if one not in again]
    assert bool(others) == bool(left)
    assert {bool(run(program).below_optimizer[one.rows[0]]) for one in others} <= {left == "evaluation"}


@pytest.mark.parametrize(
    ("program", "of_32_bits"), [("gemma_lora_sft", True), ("esm_distill", True), ("adapters", True), ("lora", False)]
)
def test_sizes_of_frozen_weights_tell_their_width(program: str, of_32_bits: bool) -> None:
    assert frozen_are_of_32_bits(run(program)) is of_32_bits
    assert is_of_unknown_width(run(program)) is not of_32_bits


def test_a_block_whose_forward_is_one_function_is_one_block() -> None:
    """``return checkpoint(_inner_forward, x)``: attention and what follows it are of one call."""
    layer = (("torch/nn/modules/linear.py", 134, "forward"),)

    def path(line: int) -> Path:
        return (
            (("train.py", 9, "<module>"),),
            (("model.py", 90, "forward"),),
            (("model.py", 26, "forward"), ("model.py", line, "_inner_forward")),
            layer,
        )

    known = {0: path(20), 1: path(21)}
    stacks = [0, 0, 1, 1] * 3
    ((calls, depth),) = CallTree(known).blocks(list(range(12)), stacks, 2)
    assert (depth, calls) == (2, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])


def test_what_a_module_combines_with_a_parameter_of_its_own_is_in_float32():
    vocoder = run("vocoder_gan")
    made = with_own_parameters(vocoder)
    named = {vocoder.study.snapshot.stacks[one][0].name for one in np.unique(vocoder.stack[made]).tolist()}
    assert named == {"forward"}
    assert vocoder.size[made & vocoder.saved].sum() > 0.5 * vocoder.size[vocoder.saved].sum(), "its activations"
    for program in ("bert", "gpt", "dgcnn"):
        assert not with_own_parameters(run(program)).any()


def test_a_head_that_waits_for_its_turn_is_trained() -> None:
    """Enformer trains on man and mouse in turn, so that every optimizer step makes the states of one head."""
    assert untrained(run("enformer")) is None


def test_logits_without_their_last_token_are_logits() -> None:
    """DPO's ``logits[:, :-1].float().log_softmax(-1)``, beside a loss of one number a sequence that has a name."""
    one = run("dpo_sliding")
    assert int(one.size[losses(one)].max()) > 700 * MIB
    assert EDITS["fused_loss"].edit(one, 8) is not None
