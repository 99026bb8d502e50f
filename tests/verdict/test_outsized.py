"""One request far larger than what its work has made before it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oomscope.analysis.labels.categories import ACTIVATION, PARAMETER
from oomscope.analysis.remedies import raise_cap, split_request
from oomscope.analysis.verdict import outsized
from oomscope.analysis.verdict.causes import capacity
from oomscope.model.recorded_stacks import RecordedSource
from oomscope.wording.verdict_text import advice_text
from tests.verdict.stand_ins import PLACE, circumstances, outcome, suspect


def study(sizes: list[int], categories: list[int], *frames: str) -> Any:
    history = SimpleNamespace(
        size=np.array(sizes),
        lifetimes=SimpleNamespace(allocated_at=lambda _: np.ones(len(sizes), np.bool_)),
        trace=SimpleNamespace(stack=np.array([0])),
    )
    stacks = [[SimpleNamespace(filename=one) for one in frames]]
    return SimpleNamespace(
        history=history, categories=np.array(categories), snapshot=SimpleNamespace(stacks=stacks), index=0
    )


@pytest.mark.parametrize(
    ("sizes", "categories", "times"),
    [
        ([500, 9000], [ACTIVATION, PARAMETER], 8.0),
        ([501, 9000], [ACTIVATION, PARAMETER], None),
        ([9000], [PARAMETER], None),
    ],
)
def test_a_request_is_measured_against_the_largest_activation(
    sizes: list[int], categories: list[int], times: float | None
) -> None:
    assert outsized.TIMES == 8
    request = circumstances(4000).request
    assert outsized.times_the_largest(study(sizes, categories), request) == times


@pytest.mark.parametrize(("size", "told"), [(2500, True), (2499, False)])
def test_a_request_that_is_a_small_part_of_the_limit_is_not_measured(size: int, told: bool) -> None:
    assert outsized.LEAST_SHARE == 0.25
    found = outsized.times_the_largest(study([10], [ACTIVATION]), circumstances(size).request)
    assert (found is not None) is told


@pytest.mark.parametrize(
    ("frames", "is_layer"),
    [
        (("/venv/torch/nn/modules/linear.py", "/workspace/train.py"), True),
        (("/workspace/train.py", "/venv/torch/nn/modules/module.py"), False),
        ((), True),
    ],
)
def test_a_layer_may_be_meant_to_make_much_of_little(frames: tuple[str, ...], is_layer: bool) -> None:
    one = circumstances(study=study([10], [ACTIVATION], *frames), times_the_largest=48.0)
    assert outsized.is_of_a_layer(one.study, one.request) is is_layer
    assert [advice.slug for advice in split_request.propose(one)] == ([] if is_layer else ["split_request"])


def told(text: str) -> tuple[RecordedSource, ...]:
    return (RecordedSource(PLACE.file, PLACE.line, PLACE.line - 1, ("def loss(x, y):", text, "    return d")),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("    d = F.one_hot(y, 104)  # [B, C]", "Do without the one-hot encoding at train (train.py:31)"),
        ("    d = torch.cdist(x, y)", "Compute the pairs at train (train.py:31) in pieces"),
        ("    d = x[:, :, None, :] - y[:, None, :, :]", "Make train (train.py:31) work in pieces: its operands are"),
        ("    d = x.unsqueeze(1) - y", "Make train (train.py:31) work in pieces: its operands are broadcast to "),
        ("    d = x.argsort(dim=1)", "Sort piece by piece in train (train.py:31)"),
        ("    d = x.repeat(1, n)", "Use `expand` instead of copies at train (train.py:31)"),
        ("    d = f(x[0], y)  # x[None]", None),
        ("    d = table[None](x)", "Make train (train.py:31) work in pieces: its operands are"),
    ],
)
def test_a_line_that_makes_much_of_little_is_told_by_its_text(text: str, said: str | None) -> None:
    """Half as much again as in the layer before it is nothing unusual, unless the line says why."""
    assert split_request.LEAST_TIMES == 1.5
    one = circumstances(study=study([1666], [ACTIVATION], "/w/train.py"), size=2500, sources=told(text))
    found = [advice_text(advice).action for advice in split_request.propose(one)]
    assert [action.startswith(said or "") for action in found] == ([] if said is None else [True])
    less = circumstances(study=study([1667], [ACTIVATION], "/w/train.py"), size=2500, sources=told(text))
    assert not list(split_request.propose(less))


@pytest.mark.parametrize(("lines", "set_at"), [(1, True), (2, False)])
def test_the_one_line_that_sets_the_cap_is_told(lines: int, set_at: bool) -> None:
    text = ("torch.cuda.set_per_process_memory_fraction(0.5)",) * lines + ("# set_per_process_memory_fraction(1)",)
    sources = (RecordedSource("/w/main.py", 7, 7, text),)
    (advice,) = raise_cap.propose(circumstances(cap=10_000, device_free=1 << 30, sources=sources))
    assert (advice.at is not None) is set_at
    assert ("(set at main.py:7)" in advice_text(advice).action) is set_at


@pytest.mark.parametrize(("retained", "first"), [(1999, "outsized"), (2001, "keeper")])
def test_what_is_asked_for_comes_before_an_object_that_keeps_less(retained: int, first: str) -> None:
    kept = suspect("shapes.clouds", "list", live=2200, retained=retained, passes=5)
    one = circumstances(2000, allocated=2200, suspects=(kept,), times_the_largest=48.0, study=study([10], [ACTIVATION]))
    found = capacity.headline(one, outcome("capacity"))
    assert found[0].code == f"causes.capacity.{first}"
    assert any(note.values.get("place") == PLACE for note in found) is (first == "outsized")


def test_where_nobody_knows_what_keeps_the_rest_it_is_not_told() -> None:
    one = circumstances(2000, names_known=False, times_the_largest=48.0, study=study([10], [ACTIVATION], "/w/train.py"))
    assert "causes.capacity.outsized" not in [note.code for note in capacity.headline(one, outcome("capacity"))]
    assert list(split_request.propose(one)) == []
