"""The first forward or backward of a run is told as such, where no loop tells it."""

from __future__ import annotations

import pytest

from oomscope.analysis import analyze
from oomscope.wording.page import occasion_parts
from tests.verdict.known import programs, recorded


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("batch_finder", "the first forward pass"),
        ("imagenet_resnet", "the first forward pass"),
        ("big_vocabulary", "the first backward pass"),
        ("gp_regression", "the first backward pass"),
    ],
)
def test_a_run_that_failed_before_anything_repeated_says_so(name: str, told: str):
    assert told in occasion_parts(analyze(recorded(programs()[name].path), whatif=False))


@pytest.mark.parametrize(
    "name",
    [
        "fit_batch_size",  # a forward had failed before
        "halving.oom",  # forwards that may be rounds of a loop
        "repl_session",  # no forward failed
        "gptfast_bench",
    ],
)
def test_nothing_is_called_the_first_that_may_not_be(name: str):
    findings = analyze(recorded(programs()[name].path), whatif=False)
    assert findings.main is not None
    assert findings.main.oom is not None
    asked = findings.main.oom.verdict.asked
    assert asked is not None
    assert not asked.is_first
