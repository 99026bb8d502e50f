"""Kernels whose workspaces three shapes bear out, at smaller ones; and what more than one of them changes."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.plan.recordings import Recording, StackKeys, made_ready
from oomscope.analysis.plan.scaling import Scaled, scaled
from tests.plan.peaks import Round, study

ROUND = Round("twelfth")
SHAPES = {
    "dgcnn": {"batch": 32, "points": 2048},
    "dgcnn.b48": {"batch": 48, "points": 2048},
    "dgcnn.p3072": {"batch": 32, "points": 3072},
}


def test_what_three_shapes_bear_out_is_not_thought_gone_where_there_is_less_to_do():
    found = ROUND.predicted("dgcnn", ("b48", "p3072"))
    for name in ("b16", "p1024", "b16p6144"):
        truth = ROUND.truth("dgcnn", name)["reserved"]
        assert abs(found[name].peak_reserved.bytes / truth - 1) < 0.001, name
        assert found[name].peak_reserved.low <= truth <= found[name].peak_reserved.high, name


def models(*names: str) -> Scaled:
    keys = StackKeys()
    first, *others = (ready(name, keys) for name in names)
    return scaled(first, others, ("batch", "points"))


def ready(name: str, keys: StackKeys) -> Recording:
    return made_ready(name, study(name), SHAPES[name], keys)


def test_of_two_shapes_both_may_be_of_another_kernel_than_the_next():
    two, three = models("dgcnn", "dgcnn.b48"), models(*SHAPES)
    assert np.array_equal(two.changing, two.copies)
    assert np.array_equal(three.changing, three.workspace)
    assert three.changing.sum() < three.copies.sum()
