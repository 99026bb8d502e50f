"""What torch 2.11 really records beside stacks, on a card: see captures/README.md."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import oomscope
from oomscope.analysis import analyze
from oomscope.analysis.attribution.by_site import BACKWARD_OF
from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.study import study_device
from oomscope.redaction.snapshot import redact
from oomscope.rendering.json_report import render_json
from oomscope.rendering.text.terminal import render_text
from oomscope.wording.opening import occasion, verdict_text

CAPTURES = Path(__file__).parent / "captures"
MIB, GIB = 1 << 20, 1 << 30


@cache
def findings_of(name: str) -> Findings:
    return analyze(oomscope.load(CAPTURES / f"{name}.pickle.xz"), whatif=False)


def device_of(name: str) -> DeviceFindings:
    device = findings_of(name).main
    assert device is not None
    return device


def named(name: str) -> dict[tuple[str, str], int]:
    return {(use.kind, use.name): use.bytes for use in device_of(name).named}


def test_ranges_name_what_is_live_in_each_phase():
    device = device_of("ranges")
    assert device.steps.source == "recorded"  # the recorder counted steps of the optimizer, which goes first
    assert set(named("ranges")) >= {
        ("range", "train_step > forward"),
        ("range", "train_step > backward"),
        ("range", "train_step > update"),
        ("metadata", '{"batch": 46}'),
    }
    # All but the first weights and the workspace was allocated inside a range.
    ranged = sum(size for (kind, _), size in named("ranges").items() if kind == "range")
    assert device.at.allocated - ranged == 24 * MIB


def test_the_phases_of_plain_functions_are_those_of_the_ranges():
    phases = device_of("ranges").phases
    assert phases["forward"] > 2.5 * GIB
    assert phases["other"] == 24 * MIB  # the weights, made by the script itself


def test_what_was_said_of_a_request_in_backward_is_the_range_around_its_call():
    oom = device_of("ranges").oom
    assert oom is not None
    assert oom.said.ranges == ("train_step", "backward")
    # Metadata belongs to the thread that set it, and this is one of autograd's.
    assert oom.said.metadata is None


def test_a_number_in_the_range_is_the_name_of_the_step():
    steps = device_of("numbered").steps
    assert (steps.count, steps.steps[0].name, steps.steps[-1].name) == (262, "batch 0", "batch 261")
    oom = device_of("numbered").oom
    assert oom is not None
    assert (oom.verdict.cause, oom.said.ranges) == ("growth", ("batch 261",))


def test_a_range_of_another_thread_is_recorded():
    device = device_of("threads")
    assert "global_record_annotations" in device.study.snapshot.recorded.recording.asked
    assert named("threads") == {("range", "worker_phase"): 67 * 64 * MIB}
    assert device.oom is not None
    assert device.oom.said.ranges == ("worker_phase",)


def test_pools_have_the_names_that_the_program_gives_them():
    device = device_of("mempool")
    assert {one.pool: (one.kind, one.name) for one in device.pools} == {
        (0, 1): ("mempool", "mempool: engine.kv_pool"),
        (0, 2): ("mempool", "mempool: engine.weights_pool"),
        (0, 3): ("mempool", "mempool: scratch"),
        (1, 0): ("graph", "mempool: graph"),
    }
    kept = device.pools[0]
    assert (kept.reserved, kept.active, kept.largest_inactive) == (40 * 64 * MIB, 4 * 64 * MIB, 64 * MIB)
    assert sum(one.inactive for one in device.pools) == device.fragmentation.walled
    assert device.oom is not None
    assert device.oom.verdict.cause == "private_pools"


def test_what_a_compiled_region_made_is_told():
    assert named("compiled") == {("compiled", "Torch-Compiled Region: 0/0"): pytest.approx(2.94 * GIB, rel=0.01)}


def test_code_of_torch_fx_stands_for_the_line_it_was_made_from():
    device = device_of("fx_eager")
    frames = device.study.snapshot.stacks.frames
    generated = [frame for frame in frames if "fx_generated" in frame.filename]
    assert generated
    assert all(dict(frame.extra).get("fx_original_trace") for frame in generated)
    first = device.sites[0]
    assert first.site is not None
    assert (first.site.file, first.site.line, first.site.function) == ("/workspace/train/programs.py", 33, "forward")
    assert first.bytes > 3.7 * GIB


def test_a_backwards_blocks_have_the_line_of_their_forward_where_the_program_runs_anomaly_mode():
    device = device_of("anomaly")
    assert len(device.study.history.trace.forward_stacks) == 14_888
    backward = [site for site in device.sites if site.label == BACKWARD_OF]
    assert {(site.site.line, site.site.function) for site in backward if site.site} == {
        (33, "forward"),
        (167, "anomaly"),
    }
    assert not any(site.label == "backward" for site in device.sites)


@pytest.mark.parametrize(("name", "held"), [("pinned", 712 * MIB), ("pinned_copy", 24 * GIB)])
def test_a_cuda_error_that_is_pinned_memory_is_said_to_be(name, held):
    findings = findings_of(name)
    assert findings.refused is not None
    assert (findings.refused.message.kind, findings.refused.pinned) == ("cuda-driver", True)
    assert occasion(findings, str) == "Out of memory · Pinned host memory · cuda:0"
    assert "memory of the machine, not of the card" in verdict_text(findings)
    assert findings.pinned is not None
    assert findings.pinned.held == held


def test_without_a_history_there_are_figures_holders_and_the_message():
    findings = findings_of("async_backend")
    assert findings.devices == ()
    assert findings.refused is not None
    assert findings.refused.message.kind == "torch-async"
    recorded = findings.snapshot.recorded
    assert recorded.devices[0].allocated == pytest.approx(137 * GIB, rel=0.01)
    assert recorded.holders[0].holder == "async_backend: kept"
    assert json.loads(render_json(findings))["refused"]["kind"] == "torch-async"


def test_without_the_recorders_own_count_the_ranges_are_the_steps():
    snapshot = oomscope.load(CAPTURES / "ranges.pickle.xz")
    context = {key: value for key, value in (snapshot.context or {}).items() if key != "steps"}
    steps = study_device(replace(snapshot, context=context), 0).steps
    assert (steps.count, steps.source, steps.steps[-1].name) == (47, "annotations", "train_step 46")


@pytest.mark.parametrize("name", ["ranges", "mempool", "fx_eager", "pinned", "async_backend", "compiled"])
def test_a_redacted_report_has_the_figures_and_none_of_the_names(name):
    copy, _ = redact(oomscope.load(CAPTURES / f"{name}.pickle.xz"))
    redacted, findings = analyze(copy, whatif=False), findings_of(name)
    told = render_json(redacted) + render_text(redacted)
    for private in ("programs.py", "train_step", "engine.", "kv_pool", '\\"batch', "/workspace"):
        assert private not in told
    for before, after in zip(findings.devices, redacted.devices, strict=True):
        assert [one.reserved for one in after.pools] == [one.reserved for one in before.pools]
        assert [(one.kind, one.bytes) for one in after.named] == [(one.kind, one.bytes) for one in before.named]
        assert (after.oom is None) == (before.oom is None)
