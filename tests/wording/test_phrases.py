"""Limits, instants and growth in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oomscope.analysis.memory.records import Peak
from oomscope.analysis.passes.records import StepPeak, Steps
from oomscope.analysis.records import At
from oomscope.analysis.verdict.records import ProcessLimit
from oomscope.units import GIB
from oomscope.wording.growth import LEAST_SPREAD, STEADY, no_growth
from oomscope.wording.instants import before_oom, elsewhere, instant
from oomscope.wording.labels import CAUSE_LABELS, label
from oomscope.wording.limits import limit_text
from oomscope.wording.opening import WAITING_SHARE, verdict_text
from oomscope.wording.template import holder
from tests.samples import sample_findings


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (ProcessLimit(8 * GIB, 8 * GIB, "recorded"), "Limit 8.00 GiB (recorded)"),
        (ProcessLimit(8 * GIB, 8 * GIB, "device"), "Limit 8.00 GiB (what the device could give)"),
        (ProcessLimit(12 * GIB, 12 * GIB + 1000, "bracket"), "Cap ≈ 12.0 GiB (inferred)"),
        (ProcessLimit(7 * GIB, 8 * GIB, "bracket"), "Cap 7.00 GiB to 8.00 GiB (inferred)"),
    ],
)
def test_a_limit_says_where_it_is_known_from_and_no_range_of_equal_ends(limit: ProcessLimit, text: str):
    assert limit_text(limit) == text


@pytest.mark.parametrize(
    ("kind", "entry", "entries", "text"),
    [
        ("oom", 2973, 2974, "at the OOM (the last entry, 2,973)"),
        ("peak", 5, 2974, "at the peak (entry 5 of 0 to 2,973)"),
        ("entry", 5, 2974, "at entry 5 of 0 to 2,973"),
        ("end", 2973, 2974, "at the end of the snapshot"),
        ("peak", -1, 0, "at the end of the snapshot"),
    ],
)
def test_an_instant_is_told_by_its_entry(kind: str, entry: int, entries: int, text: str):
    assert instant(At(kind, 0, entry, None), entries) == text


@pytest.mark.parametrize(
    ("entry", "failed", "text"),
    [
        (9, [9], "at the OOM (the last entry, 9)"),
        (9, [4, 9], "at the last of 2 OOMs (entry 9)"),
        (4, [4, 9], "at the first of 2 OOMs (entry 4 of 0 to 9)"),
        (5, [4, 5, 9], "at number 2 of 3 OOMs (entry 5 of 0 to 9)"),
    ],
)
def test_which_of_several_ooms_it_is(entry: int, failed: list[int], text: str) -> None:
    assert instant(At("oom", 0, entry, None), 10, failed=failed) == text


def test_a_verdict_about_another_instant_is_said_to_be():
    device = sample_findings("oom_fragmentation").devices[0]
    assert elsewhere(At("oom", 0, device.at_entry, None), device) is None
    moved = replace(device, at_entry=7)
    text = elsewhere(At("entry", 0, 7, None), moved)
    assert text is not None
    assert text.startswith("The verdict and its numbers describe the OOM at entry 2,973;")


def test_times_are_told_from_the_oom():
    device = sample_findings("oom_fragmentation").devices[0]
    assert before_oom(device, 0).endswith(" before the OOM")
    assert before_oom(device, -1) == "before the recording"
    assert before_oom(replace(device, oom=None), 12) == "entry 12"


def steps(*peaks: int) -> Steps:
    made = tuple(StepPeak(str(number), number, number, peak, number, 0) for number, peak in enumerate(peaks))
    return Steps(len(made), "inferred", tuple(range(len(made))), made)


@pytest.mark.parametrize(
    ("least", "text"),
    [
        (round(10_000 * (1 - STEADY)), "No growth: after the first, all 3 steps peak within 5.0% of each other."),
        (
            round(10_000 * (1 - STEADY)) - 1,
            "No line leaves more behind in every step to the end; later peaks lie between",
        ),
        (10_000, "No growth: after the first, all 3 steps peak within 0.1% of each other."),
        (
            round(10_000 * (1 - 2 * LEAST_SPREAD)),
            "No growth: after the first, all 3 steps peak within 0.2% of each other.",
        ),
    ],
)
def test_steps_without_growth_are_compared_after_the_first(least: int, text: str):
    device = replace(sample_findings("train_ok").devices[0], steps=steps(1, least, 10_000))
    assert no_growth(device).startswith(text)


@pytest.mark.parametrize(("count", "text"), [(1, "No step was seen to repeat"), (2, "Two steps are too few to tell")])
def test_too_few_steps_are_not_compared(count: int, text: str):
    device = replace(sample_findings("train_ok").devices[0], steps=steps(*range(1, count + 1)))
    assert text in no_growth(device)


@pytest.mark.parametrize(("waiting", "is_said"), [(1000 // WAITING_SHARE, False), (1000 // WAITING_SHARE + 1, True)])
def test_freed_memory_is_said_to_wait_only_where_it_is_more_than_a_passing_block(waiting: int, is_said: bool):
    findings = sample_findings("train_ok")
    peak = Peak(allocated=1000 - waiting, active=1000, reserved=1200, allocated_entry=0, reserved_entry=0)
    shown = replace(findings, devices=(replace(findings.devices[0], peak=peak),))
    assert ("waiting for another stream" in verdict_text(shown)) == is_said
    assert ("more than was ever active" in verdict_text(shown)) != is_said


def test_a_slug_without_a_label_is_shown_as_it_is():
    assert label("growth", CAUSE_LABELS) == "memory growth"
    assert label("made_up\x1b", CAUSE_LABELS) == "made up\\x1b"


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("main: batch._store._mapping['edge_index']", "`batch.edge_index`"),
        (
            "encoder._forward_hooks[1].__self__.opt",
            "`opt` of the object whose method is a forward hook of `encoder`",
        ),
        ("main: net._backward_hooks[0].__self__", "the object whose method is a backward hook of `net` (in main)"),
    ],
)
def test_a_way_is_told_as_a_person_would_write_it(way: str, said: str):
    assert holder(way) == said
