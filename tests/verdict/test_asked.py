"""For whose gradient a backward asked."""

from __future__ import annotations

import pytest

from oomscope.analysis.verdict import asked
from oomscope.analysis.verdict.failed_requests import failed_requests
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
