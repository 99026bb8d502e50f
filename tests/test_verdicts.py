"""The right cause for every failure that we know the reason of, and nothing wrong said with high confidence."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from oomscope.analysis import analyze
from oomscope.analysis.verdict.records import Oom
from tests.analysis.oom_programs import (
    KINDS,
    Program,
    growth,
    holes_of_another_stream,
    larger_batch,
    saved_by,
    tight,
    walls_at_a_higher_limit,
)
from tests.shared import needs_shared, shared_snapshot

SEEDS = range(12)

# What the README beside the captures says, as the contract names it; the confidences that are honest.
CAPTURES = {
    "oom_activations": ("capacity", {"medium", "high"}, "activations"),
    "oom_activations.expandable": ("capacity", {"medium", "high"}, "activations"),
    "oom_fragmentation": ("fragmentation", {"high"}, None),
    "oom_fragmentation.expandable": ("fragmentation", {"high"}, None),
    "oom_varlen_15.4": ("fragmentation", {"high"}, None),
    "oom_leak_total_loss": ("growth", {"high"}, "retained_graph"),
    "oom_optimizer_step": ("capacity", {"high"}, "optimizer_state"),
    # The proven limit leaves but 0.4 %.
    "oom_cuda_graphs": ("private_pools", {"low", "medium"}, None),
    # The size of the card is not in a bare snapshot: what the arithmetic gives, and that it cannot know.
    "oom_outside_memory": (None, {"low", "medium"}, None),
}
HEALTHY = ["train_ok", "train_ok.expandable", "compiled", "late_start", "ring_wrapped", "ddp.rank0", "ddp.rank1",
           "oom_record_stream", "no_history", "state_only"]  # fmt: skip


def failure(name: str) -> Oom:
    found = analyze(shared_snapshot(name), whatif=False).main
    assert found is not None
    assert found.oom is not None
    return found.oom


@needs_shared
@pytest.mark.parametrize("name", CAPTURES)
def test_the_cause_of_a_real_failure(name: str) -> None:
    cause, confidences, driver = CAPTURES[name]
    verdict = failure(name).verdict
    assert verdict.cause == (cause or verdict.cause)
    assert verdict.confidence in confidences
    if driver:
        assert driver in [one.slug for one in verdict.drivers[:2]]
    if cause is None:
        assert any(unknown.code == "verdict.unknown.card" for unknown in verdict.cannot_know)


@needs_shared
@pytest.mark.parametrize("name", HEALTHY)
def test_no_failure_has_no_verdict(name: str) -> None:
    findings = analyze(shared_snapshot(name), whatif=False)
    assert all(device.oom is None and not device.ooms for device in findings.devices)


@cache
def program(kind: str, seed: int) -> Program:
    return KINDS[kind](seed)


def judged(kind: str, seed: int, *, with_context: bool) -> Oom:
    found = analyze(program(kind, seed).snapshot(with_context=with_context), whatif=False).main
    assert found is not None
    assert found.oom is not None
    return found.oom


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_programs_fail_for_the_reason_that_they_are_named_after(kind: str, seed: int) -> None:
    assert not program(kind, seed).run()[1]
    assert saved_by(kind, program(kind, seed))


@pytest.mark.parametrize("with_context", [False, True], ids=["bare", "recorded"])
@pytest.mark.parametrize("kind", KINDS)
def test_made_up_failures_get_the_cause_that_they_were_made_with(kind: str, with_context: bool) -> None:
    found = [judged(kind, seed, with_context=with_context).verdict for seed in SEEDS]
    wrong = [(seed, one.cause, one.confidence) for seed, one in zip(SEEDS, found, strict=True) if one.cause != kind]
    assert not [one for one in wrong if one[2] == "high"], "wrong, and said with high confidence"
    # Without the card's size nobody can know what is outside.
    if kind != "outside_allocator" or with_context:
        assert len(wrong) <= len(SEEDS) // 10, wrong
    if with_context:
        assert sum(one.confidence == "high" for one in found) >= 0.8 * len(SEEDS)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_said_of_a_failure_adds_up(seed: int) -> None:
    for kind in KINDS:
        oom = judged(kind, seed, with_context=seed % 2 == 0)
        assert oom.totals.allocated <= oom.totals.active <= oom.totals.reserved <= oom.limit.low
        assert oom.limit.high is None or oom.limit.low <= oom.limit.high
        shown = {one.slug: one.bytes for one in oom.verdict.evidence}
        assert shown.get("largest", 0) <= oom.free.usable
        bound = program(kind, seed).limit.bytes
        assert bound is not None
        assert oom.limit.low <= bound
        assert oom.limit.source == "device" or oom.limit.high is None or bound <= oom.limit.high


@pytest.mark.parametrize("seed", SEEDS)
def test_what_would_only_just_have_fitted_is_capacity(seed: int) -> None:
    found = analyze(tight(seed).snapshot(with_context=True), whatif=False).main
    assert found is not None
    assert found.oom is not None
    assert found.oom.verdict.cause == "capacity"


@pytest.mark.parametrize("seed", SEEDS)
def test_steps_that_leave_nothing_behind_are_no_growth(seed: int) -> None:
    found = analyze(larger_batch(seed).snapshot(with_context=True), whatif=False).main
    assert found is not None
    assert found.oom is not None
    assert not found.growth
    assert (found.oom.verdict.cause, found.oom.verdict.confidence) == ("capacity", "high")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("make", [holes_of_another_stream, walls_at_a_higher_limit])
def test_what_one_wall_alone_may_not_explain_is_not_said_with_high_confidence(
    make: Callable[[int], Program], seed: int
) -> None:
    found = analyze(make(seed).snapshot(), whatif=False).main
    assert found is not None
    assert found.oom is not None
    assert found.oom.verdict.confidence != "high"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_program_that_grows_is_told_how_fast(seed: int) -> None:
    kept = [one for one in growth(seed).operations if getattr(one, "kept", False)]
    found = analyze(growth(seed).snapshot(), whatif=False).main
    assert found is not None
    assert found.growth, "the leak is seen"
    assert found.growth[0].site is not None
    assert found.growth[0].site.line == 70
    assert found.growth[0].bytes_per_step == pytest.approx(kept[0].size, rel=0.1)
