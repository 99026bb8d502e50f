"""Parts of a program that go backward by oversight, in two programs of a thirteenth round.

A generator that its critic's step runs without `detach`, with gradients zeroed in place; a teacher, an average of the
model, that runs with a graph. No row is told of what could run without one unless that is known.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.ledger import EDITS, ledger_of, parse_remedy
from oomscope.analysis.ledger.attention.biased import attends, masks_for_biases
from oomscope.analysis.ledger.attention.matmuls import attentions
from oomscope.analysis.ledger.edits.checkpoint import _keeps_result
from oomscope.analysis.ledger.graphs import overlooked
from oomscope.analysis.ledger.graphs.overlooked import some_are_left
from oomscope.analysis.ledger.graphs.untrained import untrained
from oomscope.analysis.ledger.pairs import both
from oomscope.analysis.ledger.passes import backward_of, forwards
from oomscope.analysis.ledger.paths import paths
from oomscope.analysis.ledger.states import per_parameter
from oomscope.analysis.ledger.structure.blocks import blocks
from oomscope.analysis.ledger.structure.call_tree import follow_one_another
from oomscope.analysis.ledger.structure.helpers import _of_containers, called_alike
from tests.ledger.rounds import run, study

LAYERS = 6
SCORES = 32 * 32 * 96 * 96 * 4


def test_a_generator_before_its_critic_needs_no_graph_where_the_optimizer_has_the_critic_alone():
    images = run("superres")
    part, passes = untrained(images), forwards(images)
    assert part is not None
    # Each step has a pass of the critic, then one of the generator.
    for number, rows in enumerate(passes):
        alone, back = part.forward[rows], backward_of(images, passes, number)
        if number % 2:
            assert not alone.any()
            assert not part.backward[back].any()
        else:
            saved = images.saved[rows]
            assert 0.3 < images.size[rows[alone & saved]].sum() / images.size[rows[saved]].sum() < 0.6
            assert 0.2 < part.backward[back].mean() < 0.8


def test_what_the_critic_is_given_is_kept_for_it():
    images = run("superres")
    edited = EDITS["no_grad"].edit(images, None)
    assert edited is not None
    part = untrained(images)
    assert part is not None
    made = [
        row for row in forwards(images)[2].tolist() if part.forward[row] and images.size[row] == 16 * 3 * 256**2 * 4
    ]
    assert edited.likely.end[made[-1]] > images.first_of(1, BACKWARD)


def test_a_teacher_that_is_an_average_of_the_model_needs_no_graph():
    graphs = run("teacher")
    part = untrained(graphs)
    assert part is not None
    for number, rows in enumerate(forwards(graphs)):
        saved = graphs.size[rows] * graphs.saved[rows]
        assert 0.4 < saved[part.forward[rows]].sum() / saved.sum() < 0.55
        back = backward_of(graphs, forwards(graphs), number)
        own = back[part.backward[back]]
        assert len(own) > 400
        assert np.diff(own).mean() < 1.1, "one stretch of the backward"
        assert own[-1] < back[-1] - 400, "the model goes backward behind it"


def test_blocks_of_the_same_model_are_made_again_whether_or_not_they_need_a_graph():
    graphs = run("teacher")
    part = untrained(graphs)
    assert part is not None
    found = blocks(graphs)
    assert len(found) == 2 * LAYERS * graphs.steps
    assert sum(bool(part.forward[one.rows].all()) for one in found) == LAYERS * graphs.steps


def test_what_runs_without_a_graph_is_not_made_again():
    graphs = run("teacher")
    part = untrained(graphs)
    edits = [EDITS[slug].edit(graphs, None) for slug in ("no_grad", "checkpoint")]
    assert part is not None and edits[0] is not None and edits[1] is not None  # noqa: PT018
    pair, count = both(graphs.draft, edits[0], edits[1]).likely, len(graphs.size)
    source = pair.source[count:]
    assert not pair.size[count:][(source >= 0) & part.forward[source]].any()
    assert pair.size[count:][(source >= 0) & ~part.forward[source]].all()
    assert (pair.end[:count] <= edits[0].likely.end[:count])[part.forward].all()


def test_the_twin_must_end_as_the_model_does(monkeypatch: pytest.MonkeyPatch):
    """Else it was given what is trained, as a network in a loss is, whose backward makes the gradient of that."""
    graphs = run("teacher")
    passes = forwards(graphs)
    assert overlooked.calls_for_nothing(graphs, paths(graphs), passes)
    monkeypatch.setattr(overlooked, "_end_alike", lambda *_: False)
    assert not overlooked.calls_for_nothing(graphs, paths(graphs), passes)


@pytest.mark.parametrize(
    ("sizes", "alike"),
    [([7, 5, 3, 9, 7, 5, 3], True), ([7, 5, 4, 3, 7, 5, 3], False), ([9, 7, 5, 3], False)],
    ids=["alike", "with the gradient of what it is given", "alone"],
)
def test_ends_of_backwards_are_compared(sizes: list[int], alike: bool):
    """Of a call whose last thing goes before the first of these, and of one whose last goes before the last three."""
    begin = np.arange(1, len(sizes) + 1) * 10
    line = SimpleNamespace(size=np.array(sizes), begin=begin, end=np.array([5, int(begin[-3]) - 5]))
    assert overlooked._end_alike(cast("Any", line), np.arange(len(sizes)), [0], [1]) is alike


def test_no_row_where_gradients_are_left_and_nothing_tells_of_what(monkeypatch: pytest.MonkeyPatch):
    """Not what an evaluation would save, which is far more."""
    for program in ("superres", "teacher"):
        model = run(program)
        assert some_are_left(model, forwards(model))
        monkeypatch.setattr("oomscope.analysis.ledger.edits.no_grad.untrained", lambda _: None)
        assert EDITS["no_grad"].edit(model, None) is None


@pytest.mark.parametrize("program", ["classifier", "autoencoder", "lstm", "unet3d", "swin", "wavenet", "rotary"])
def test_nothing_is_left_where_all_is_trained(program: str):
    model = run(program)
    assert not some_are_left(model, forwards(model))
    assert EDITS["no_grad"].edit(model, None) is not None


def _gan(sizes: list[int], states: list[int], ends: list[int], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the last of the gradients of a backward, of these sizes and ends, are found to be stepped by others.

    The optimizer behind makes `states`; the next backward begins at moment 100.
    """
    count = len(sizes)
    line = SimpleNamespace(
        size=np.array([*sizes, *states, 1, 1]) << 20,
        begin=np.array([*range(count), *range(50, 50 + len(states)), 90, 100]),
        end=np.array([*ends, *[overlooked.NEVER] * len(states), 110, 110]),
        gradients=np.array([True] * count + [False] * (len(states) + 2)),
        states=np.array([False] * count + [True] * len(states) + [False] * 2),
    )
    backs = [np.arange(count), np.array([count + len(states) + 1])]
    monkeypatch.setattr(overlooked, "backward_of", lambda _run, _passes, number: backs[number])
    monkeypatch.setattr(overlooked, "per_parameter", lambda _: 1.0)
    monkeypatch.setattr(overlooked, "_calls_behind", lambda *_: {"generator"})
    passes = [np.array([0]), np.array([count + len(states)])]
    return bool(overlooked._stepped_by_others(cast("Any", line), {}, passes))


NEVER = overlooked.NEVER


@pytest.mark.parametrize(
    ("sizes", "states", "ends", "found"),
    [
        ([5, 6, 7, 8], [5, 6], [NEVER] * 4, True),
        ([5, 6, 7, 8], [5, 6], [200, 200, 80, 80], True),
        ([5, 6, 7, 8], [5, 6], [200, 200, 150, 150], False),
        ([5, 6, 7, 8], [7, 8], [NEVER] * 4, False),
        ([5, 6, 5, 6], [5, 6], [NEVER] * 4, False),
        ([5, 6, 7, 8], [], [NEVER] * 4, False),
        ([5, 6, 7, 8], [1, 2, 5], [NEVER] * 4, False),
        ([5, 6, 7, 8], [5, 6, 7, 8], [NEVER] * 4, False),
    ],
    ids=[
        "zeroed in place",
        "let go before the next backward",
        "added to by the next backward",
        "a critic behind its generator",
        "two of the same sizes",
        "no states",
        "states of other sizes",
        "all are stepped",
    ],
)
def test_gradients_that_the_optimizer_behind_does_not_take(
    sizes: list[int], states: list[int], ends: list[int], found: bool, monkeypatch: pytest.MonkeyPatch
):
    assert _gan(sizes, states, ends, monkeypatch) is found


def test_a_bias_for_each_score_is_kept_as_a_mask():
    graphs = run("teacher")
    kept = masks_for_biases(graphs)
    softmaxes = kept & graphs.during(FORWARD)
    assert len(attentions(graphs)) == 2 * LAYERS * graphs.steps == softmaxes.sum()
    assert (graphs.size[softmaxes] == SCORES).all()
    assert (graphs.size[kept & graphs.during(BACKWARD)] == SCORES).all()
    edited = EDITS["sdpa"].edit(graphs, None)
    assert edited is not None
    assert (edited.likely.size[softmaxes] == SCORES).all()
    assert not edited.others[0].size[softmaxes].any()
    assert not edited.likely.size[attends(graphs) & ~kept].any()


@pytest.mark.parametrize("program", ["bert", "decoder", "latent", "wav2vec", "retriever", "shifted", "t5"])
def test_masks_are_no_biases(program: str):
    assert not masks_for_biases(run(program)).any()


def test_weights_of_a_teacher_have_no_states():
    assert per_parameter(run("teacher")) == 2
    row = ledger_of(study("teacher"), [parse_remedy("sgd_momentum")]).rows[0]
    assert 0.005 < row.saves_bytes / ledger_of(study("teacher"), [parse_remedy("sdpa")]).peak_allocated < 0.015


def test_layers_of_a_critic_that_judges_twice_are_no_blocks():
    images = run("superres")
    part = untrained(images)
    assert part is not None
    found = blocks(images)
    assert len(found) == 16 * 2 * images.steps, "those of the generator, in either pass"
    assert sum(bool(part.forward[one.rows].all()) for one in found) == 16 * images.steps


@pytest.mark.parametrize(
    ("calls", "outer", "found"),
    [
        ([[0, 1], [4, 5]], [[0, 1, 2], [4, 5, 6]], False),
        ([[0, 1], [2, 3], [4, 5]], [[0, 1, 2, 3], [4, 5]], True),
        ([[0, 1]], [[0, 1]], False),
    ],
    ids=["once in each", "twice in one", "alone"],
)
def test_blocks_follow_one_another_in_one_call(calls: list[list[int]], outer: list[list[int]], found: bool):
    assert follow_one_another(calls, outer) is found


def test_what_goes_into_a_sum_is_no_result_that_a_backward_needs():
    images = run("superres")
    assert not any(_keeps_result(images, block) for block in blocks(images))
    stages = [one for one in called_alike(images, blocks(images)) if len(one.inner) == 3]
    assert stages and all(_keeps_result(images, one) for one in stages)  # noqa: PT018


def test_what_the_function_calls_that_calls_the_blocks_is_made_again():
    """Two upsamplings of the generator, and seven stages of the critic with more than a convolution in each call."""
    images = run("superres")
    passes = forwards(images)
    found = called_alike(images, blocks(images))
    numbers = [next(number for number, rows in enumerate(passes) if one.rows[0] in rows) for one in found]
    assert [numbers.count(number) for number in range(len(passes))] == [2 + 2 * 7, 2 + 7] * images.steps
    inside = {row for block in blocks(images) for row in block.rows.tolist()}
    assert not any(inside & set(one.rows.tolist()) for one in found)


@pytest.mark.parametrize("program", ["rotary", "bert", "latent", "convnext", "wavenet"])
def test_nothing_is_called_alike_where_modules_call_their_blocks_themselves(program: str):
    assert not called_alike(run(program), blocks(run(program)))


@pytest.mark.parametrize(
    ("file", "parts"), [("torch/nn/modules/container.py", [1, 4, 2]), ("programs/train.py", [7])], ids=["torch", "own"]
)
def test_containers_begin_with_a_layer_of_one_kind(file: str, parts: list[int]):
    """A convolution alone, then one with its workspace and a norm of two, then one with a norm."""
    convolution, norm = (("torch/nn/modules/" + name, 1, "forward") for name in ("conv.py", "norm.py"))
    known = {
        number: ((("train.py", 1, "run"),), ((file, 9, "forward"),), (one,))
        for number, one in enumerate((convolution, norm))
    }
    stack = np.array([0, 0, 0, 1, 1, 0, 1])
    line = SimpleNamespace(
        stack=stack,
        marked=lambda _: stack == 0,
        recording=SimpleNamespace(at_once=np.arange(7) == 2),
    )
    found = _of_containers(cast("Any", line), cast("Any", known), np.arange(7), 1)
    assert [len(part) for part in found] == parts
