"""One word for one loop, a cause by what its verdict found, and no claim that nothing is missing where something is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oomscope.analysis import Findings, analyze
from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.records import Location
from oomscope.model import note
from oomscope.reading import load
from oomscope.wording.cause_labels import cause_label
from oomscope.wording.loops import pass_word, which_is_which
from oomscope.wording.opening import verdict_text
from oomscope.wording.page import larger_note, occasion_parts, sureness
from oomscope.wording.template import place
from tests.samples import bundled_path, sample_findings


def bundled(name: str) -> tuple[Findings, DeviceFindings]:
    findings = analyze(load(bundled_path(name)), whatif=False)
    assert findings.main is not None
    return findings, findings.main


def test_steps_that_are_the_passes_of_the_loop_are_called_passes_and_counted_from_one():
    findings, device = bundled("oom_kept_exception")
    assert pass_word(device) == ("pass", "passes")
    assert occasion_parts(findings)[2].startswith("pass 2 of the loop in ")  # the first ran out of memory as well
    assert [step.name for step in device.steps.steps] == ["1", "2"]


def test_recorded_steps_are_those_of_the_optimizer_and_which_is_which_is_said():
    findings, device = bundled("oom_leak_in_validation")
    assert pass_word(device) == ("optimizer step", "optimizer steps")
    # The headline counts those of another loop.
    assert [part for part in occasion_parts(findings) if "pass" in part] == [
        "one pass = one round of the loop in main()"
    ]
    said = which_is_which(device)
    assert said.startswith("Here a pass is one round of the loop in main")
    assert "above the headline" not in said  # where no pass is counted
    assert said.endswith("; each one ends with the step of the optimizer; what comes after the last is drawn with it.")


def test_the_loop_is_named_whose_passes_are_counted():
    findings, device = bundled("oom_activations")
    assert device.oom is not None
    verdict = replace(device.oom.verdict, headline=())
    lone = replace(device, oom=replace(device.oom, verdict=verdict))
    said = occasion_parts(replace(findings, devices=(lone,)))[2]
    assert said == "pass 6 of the loop in train(), after 5 that fitted"


def test_of_a_recording_that_begins_in_the_loop_only_what_it_holds_is_said():
    findings, device = bundled("oom_activations")
    assert device.oom is not None
    assert device.oom.verdict.failing_pass is not None
    part = replace(device.oom.verdict.failing_pass, is_part=True)
    verdict = replace(device.oom.verdict, headline=(), failing_pass=part)
    lone = replace(device, oom=replace(device.oom, verdict=verdict))
    said = occasion_parts(replace(findings, devices=(lone,)))[2]
    assert said == "at least pass 6 of the loop in train(), after 5 that fitted"
    assert larger_note(part) == "tokens is larger here than in any pass recorded before: 96 × 2,048"
    assert larger_note(replace(part, input=None)).endswith("more memory than in any pass recorded before")
    none = replace(part, completed=0, before=0)
    lone = replace(device, oom=replace(device.oom, verdict=replace(verdict, failing_pass=none)))
    assert not any("pass" in one for one in occasion_parts(replace(findings, devices=(lone,))))


def test_what_the_headline_says_of_the_passes_is_not_said_above_it():
    findings, _ = bundled("oom_activations")
    assert "any of the 5 that fitted" in verdict_text(findings)
    assert "fitted" not in occasion_parts(findings)[2]


def test_without_a_loop_the_optimizer_steps_that_ended_are_counted():
    findings, device = bundled("oom_activations")
    assert device.oom is not None
    verdict = replace(device.oom.verdict, failing_pass=None)
    lone = replace(device, oom=replace(device.oom, verdict=verdict), passes=None)
    assert occasion_parts(replace(findings, devices=(lone,)))[2] == "after 5 optimizer steps"
    assert len(findings.snapshot.recorded.steps) == 5


def test_where_no_loop_is_known_nothing_is_said_of_passes():
    device = sample_findings("oom_fragmentation").devices[0]
    assert device.oom is not None
    verdict = replace(device.oom.verdict, failing_pass=None)
    lone = replace(device, growth=(), oom=replace(device.oom, verdict=verdict), steps=replace(device.steps, steps=()))
    assert which_is_which(lone) == ""


@pytest.mark.parametrize(
    ("code", "label"),
    [
        ("causes.other_stream.opened", "memory that came free too late"),
        ("causes.other_stream.pending", "freed memory that waits for another stream"),
        ("causes.other_stream.free", "free memory that belongs to another stream"),
    ],
)
def test_a_request_that_waited_is_not_said_to_be_of_another_stream(code: str, label: str):
    oom = sample_findings("oom_fragmentation").devices[0].oom
    assert oom is not None
    assert cause_label(replace(oom.verdict, cause="other_stream", headline=(note(code),))) == label


@pytest.mark.parametrize(
    ("skips", "said"), [(False, "every allocation was recorded"), (True, "recorded from the start")]
)
def test_that_nothing_is_missing_is_said_only_where_no_entries_were_skipped(skips: bool, said: str):
    findings = sample_findings("oom_fragmentation")
    notes = (*findings.recording.notes, *([note("recording.no_completed_free")] if skips else []))
    parts = sureness(replace(findings, recording=replace(findings.recording, notes=notes)))
    assert any(part.endswith(said) for part in parts)
    assert skips != any("every allocation" in part for part in parts)


@pytest.mark.parametrize(
    ("function", "said"), [("f", "f (a.py:3)"), ("<module>", "a.py:3"), ("<lambda>", "<lambda> (a.py:3)")]
)
def test_code_outside_of_functions_is_named_by_its_line_alone(function: str, said: str):
    assert place(Location("/x/a.py", 3, function)) == said
