"""Which part of a program asked for memory: its pool, its backward, and for whose gradient."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oomscope.analysis.records import Location
from oomscope.analysis.verdict import asked
from oomscope.analysis.verdict.failed_requests import failed_requests, pool_of
from tests.analysis.asking import diagnose
from tests.analysis.programs import LOADING, MIB
from tests.passes.scripts import BACKWARD_CALL, Script


@pytest.mark.parametrize(
    ("off", "name"), [(0, "net.weight"), (asked.ROUNDING - 1, "net.weight"), (asked.ROUNDING, None), (-1, None)]
)
def test_of_a_node_with_several_the_parameter_of_that_size_is_named(off: int, name: str | None) -> None:
    script = Script()
    script.at(3, 64, *LOADING)
    with script.call(50, "train"):
        script.layer(31, 10, 16)
        script.oom(64 * MIB + off, script.stack(33, *BACKWARD_CALL))
    told = [("net.bias", 1 << 12), ("net.weight", 64 * MIB)]
    key = {
        "schema_version": 1,
        "tensors": [
            {"device": 0, "address": 1 << 50 | at, "bytes": bytes_, "category": "parameter", "name": name}
            for at, (name, bytes_) in enumerate(told)
        ],
        "autograd": {"node": "AddmmBackward0", "gradients_of": [name for name, _ in told], "forward": []},
    }
    found = diagnose(script.snapshot(oomscope=key))
    (request,) = failed_requests(found.study)
    assert asked.who_asked(found.study, request).gradient_of == name


def test_the_line_of_a_backward_is_read_from_the_first_stack_of_a_recording_too() -> None:
    script = Script()
    script.oom(64 * MIB, script.stack(33, *BACKWARD_CALL))
    found = diagnose(script.snapshot())
    (request,) = failed_requests(found.study)
    told = asked.who_asked(found.study, request)
    assert told.phase == "backward"
    assert told.backward_call == Location("/workspace/train/train.py", 33, "<module>")


@pytest.mark.parametrize(
    ("said", "pools", "pool"),
    [(0, [3], 0), (3, [0], 3), (-1, [3, 5], 5), (-1, [3, 0], 0), (-1, [], 0)],
)
def test_a_request_goes_to_the_pool_that_its_entry_says_or_that_its_stream_alone_uses(
    said: int, pools: list[int], pool: int
) -> None:
    spans = SimpleNamespace(
        there_at=lambda _: np.ones(len(pools), np.bool_), stream=np.full(len(pools), 7), pool=np.array(pools, np.int64),
        begin=np.arange(len(pools)),
    )  # fmt: skip
    history: Any = SimpleNamespace(trace=SimpleNamespace(pool=[said], stream=[7]), spans=spans)
    assert pool_of(history, 0) == pool
