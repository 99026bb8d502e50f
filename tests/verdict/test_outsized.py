"""One request far larger than what its work has made before it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oomscope.analysis.labels.categories import ACTIVATION, PARAMETER
from oomscope.analysis.remedies import split_request
from oomscope.analysis.verdict import outsized
from oomscope.analysis.verdict.causes import capacity
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
