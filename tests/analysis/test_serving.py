"""What a serving process leaves behind, from captures of one: H200, torch 2.11."""

from __future__ import annotations

from pathlib import Path

import oomscope
from oomscope.rendering.answers.verdict import summary

CAPTURES = Path(__file__).parent / "serving"


def test_an_engine_that_sleeps_in_a_pool_holds_free_memory_that_others_may_not_use():
    """Its weights went to the CPU and its cache was dropped: 3 GiB are free, in a MemPool that lives on."""
    findings = oomscope.analyze(oomscope.load(CAPTURES / "sleeping_pool.pickle.xz"), whatif=False)
    device = findings.main
    assert device is not None
    assert device.oom is not None
    assert device.oom.verdict.cause == "private_pools"
    assert device.fragmentation.walled == 3 << 30
    assert summary(findings)["cause"] == "private_pools"
