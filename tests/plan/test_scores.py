"""Scores of attention are told by their sizes where no name tells them."""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.plan.requests.calls import Path, module_of, path_of
from oomscope.analysis.plan.requests.scores import SMALL, between_projections, written_out
from oomscope.model import Frame

TOKENS, HEADS, WIDTH, BATCH = 640, 14, 896, 4
QKV = BATCH * TOKENS * 3 * WIDTH * 4
SCORES = BATCH * HEADS * TOKENS * TOKENS * 4
HIDDEN = BATCH * TOKENS * 6 * WIDTH * 4
LINEAR = ("linear.py", 134, "forward")


def attention(line: int) -> Path:
    return ((("model.py", 80, "forward"),), (("model.py", 64, "forward"),), (("model.py", line, "forward"),))


def found(*made: tuple[int, Path], layers: int = 2, tokens: int = TOKENS) -> set[int]:
    """The sizes that are scores, of a model whose layers make these; a path into `LINEAR` is of a linear layer."""
    known = dict(enumerate({path: None for _, path in made}))
    number = {path: stack for stack, path in known.items()}
    size = np.array([one for _ in range(layers) for one, _ in made], np.int64)
    stack = np.array([number[path] for _ in range(layers) for _, path in made], np.int64)
    linear = np.array([path[-1] == (LINEAR,) for _ in range(layers) for _, path in made])
    rows = written_out(size, stack, np.arange(len(size)), linear, known, [tokens], 1, np.zeros(len(size), np.bool_))
    return set(size[rows].tolist())


QKV_LAYER = (QKV, (*attention(35), (LINEAR,)))


def test_what_the_square_divides_and_is_larger_than_the_linear_layers():
    assert found(QKV_LAYER, (SCORES, attention(39)), (QKV // 3, attention(42))) == {SCORES}


def test_the_hidden_layer_of_a_wide_mlp_is_none():
    assert found((HIDDEN, (*attention(54), (LINEAR,))), (HIDDEN, attention(54)), (QKV // 3, attention(55))) == set()


def test_logits_beside_no_linear_layer_of_their_module_are_none():
    assert found(QKV_LAYER, (SCORES, ((("train.py", 9, "loss"),),))) == set()


def test_where_the_square_divides_the_linear_layers_too_nothing_is_told():
    tokens = 512
    linear = (4 * tokens * 1024 * 4, (*attention(35), (LINEAR,)))
    assert found(linear, (4 * 16 * tokens * tokens * 4, attention(39)), tokens=tokens) == set()


def test_one_layer_is_not_enough():
    assert found(QKV_LAYER, (SCORES, attention(39)), layers=1) == set()


@pytest.mark.parametrize("tokens", [2, 16])
def test_so_few_tokens_divide_anything(tokens: int):
    assert found((QKV + tokens, (*attention(35), (LINEAR,))), (SCORES, attention(39)), tokens=tokens) == set()


def test_a_path_is_cut_at_each_call_of_a_module():
    frames = [
        Frame("torch/nn/modules/linear.py", 134, "forward"),
        Frame("torch/nn/modules/module.py", 1790, "_call_impl"),
        Frame("model.py", 35, "forward"),
        Frame("torch/nn/modules/module.py", 1790, "_call_impl"),
        Frame("train.py", 3, "<module>"),
    ]
    path = path_of(frames)
    assert [part[-1][1] for part in path] == [3, 35, 134]
    other = (*path[:1], (("model.py", 36, "forward"),))
    assert module_of(path[:2]) == module_of(other)
    assert module_of(()) == ()


EACH, PIXELS = 8 * 512 * 32 * 32 * 4, 32 * 32
"""Bytes of the queries of 8 images of 32 × 32 pixels and 512 channels in one head."""


def between(layers: list[tuple[int, int]], stages: int = 3) -> set[int]:
    """The sizes that are scores between `layers`, each with its bytes and stack, and one as large as the queries."""
    scores = [(8 * PIXELS * PIXELS * 4, 90)] * stages + [(EACH, 91)]
    made = [*layers, *scores, (EACH, 92), (EACH, 93)]
    linear = np.array([True] * len(layers) + [False] * len(scores) + [True, False])
    size, stack = (np.array([one[part] for one in made], np.int64) for part in (0, 1))
    rows = between_projections(size, stack, np.arange(len(size)), linear, {PIXELS})
    return set(size[rows].tolist())


@pytest.mark.parametrize(
    "layers",
    [
        [(EACH, 1), (EACH, 2), (EACH, 3)],
        [(EACH, 1)] * 3,
        [(EACH, 1), (400, 1)] * 3,
        [(3 * EACH, 1)],
    ],
)
def test_queries_keys_and_values_of_three_lines_or_one_or_one_layer(layers: list[tuple[int, int]]):
    assert between(layers) == {8 * PIXELS * PIXELS * 4}


@pytest.mark.parametrize("layers", [[(EACH, 1), (2 * EACH, 2)], [(2 * EACH, 1), (EACH, 2)]])
def test_queries_beside_keys_and_values_of_one_layer_where_only_a_softmax_is_as_large_as_their_product(
    layers: list[tuple[int, int]],
):
    assert between(layers, 2) == {8 * PIXELS * PIXELS * 4}
    assert between(layers, 1) == set()
    assert between([(EACH, 1)] * 3, 2) == set()


@pytest.mark.parametrize(
    "layers", [[(EACH, 1)] * 2, [(EACH, 1), (EACH // 4, 1), (EACH // 4, 1)], [(EACH, 1), (EACH // SMALL, 1)] * 3]
)
def test_two_layers_and_such_of_other_sizes_make_no_attention(layers: list[tuple[int, int]]):
    assert between(layers) == set()
