"""Pinned host memory: its own history, its figures, and failures that are its own."""

from __future__ import annotations

from typing import Any

import pytest

from oomscope.analysis import analyze
from oomscope.analysis.verdict import refused, told_by_exception
from oomscope.rendering.html.page import render_html
from oomscope.rendering.text.terminal import render_text
from oomscope.wording.opening import occasion, verdict_text
from tests.builders import block, entry, frame, loaded, segment
from tests.passes.scripts import Script

MIB = 1 << 20
AT = 0x7F00_0000_0000
START = 1_700_000_000_000_000
PINNING = [
    frame("pin_memory", 64, "/venv/lib/python3.12/site-packages/torch/utils/data/_utils/pin_memory.py"),
    frame("load", 12, "/workspace/train/data.py"),
]


def pinned_snapshot(**top: Any):
    """Three blocks of 32 MiB and one of 4 bytes; the first was given back and is cached."""
    sizes = [32 * MIB, 32 * MIB, 32 * MIB, 4]
    trace, segments = [], []
    for number, size in enumerate(sizes):
        at, time = AT + number * 64 * MIB, START + 10 * number
        trace += [
            entry("segment_alloc", at, size, time_us=time),
            entry("alloc", at, size, time_us=time, frames=PINNING),
        ]
        state = "active_allocated" if number else "inactive"
        segments.append(segment(at, [block(size, state, frames=PINNING if number else [])], device=-1, kind="small"))
    trace[4:4] = [entry(f"free_{what}", AT, 32 * MIB, time_us=START + 15) for what in ("requested", "completed")]
    on_card = segment(1 << 40, [block(20 * MIB, frames=PINNING[1:])])
    card = [
        entry("segment_alloc", 1 << 40, 20 * MIB, time_us=START + 12),
        entry("alloc", 1 << 40, 20 * MIB, time_us=START + 12, frames=PINNING[1:]),
    ]
    return loaded([on_card], [card], release="2.14", host_segments=segments, host_traces=trace, **top)


def test_its_figures_are_those_of_its_own_segments_and_trace():
    found = analyze(pinned_snapshot(), at="end", whatif=False).pinned
    assert found is not None
    assert found.usage is not None
    assert found.peak is not None
    assert (found.held, found.in_use, found.most_held) == (96 * MIB + 4, 64 * MIB + 4, 96 * MIB + 4)
    assert found.usage.inactive == 32 * MIB
    assert found.peak.active == 64 * MIB + 4


def test_the_instant_is_that_of_the_report_by_time():
    found = analyze(pinned_snapshot(), at="peak", device=0, whatif=False).pinned
    assert found is not None
    assert found.at is not None
    # The card's peak is at 12 µs: two blocks are there, none is given back yet.
    assert (found.at.reserved, found.at.allocated) == (64 * MIB, 64 * MIB)
    (use,) = found.sites
    assert use.site is not None
    assert (use.site.file, use.bytes, use.blocks) == ("/workspace/train/data.py", 64 * MIB, 2)


def test_it_is_no_device_and_changes_no_figure_of_one():
    findings = analyze(pinned_snapshot(), whatif=False)
    assert [device.device for device in findings.devices] == [0]
    assert findings.devices[0].usage.reserved == 20 * MIB


def test_every_format_shows_it():
    findings = analyze(pinned_snapshot(), whatif=False)
    text, page = render_text(findings), render_html(findings)
    assert "Pinned host memory" in text
    assert "96.0 MiB" in text
    assert 'id="said"' in page
    assert page.count('<polyline class="l-reserved"') == 1


def test_without_a_history_torchs_counters_stand():
    stats = {"allocated_bytes.current": 48 * MIB, "allocated_bytes.peak": 64 * MIB, "active_bytes.current": 16 * MIB}
    snapshot = loaded([segment(1 << 40, [block(2 * MIB)])], oomscope={"schema_version": 1, "pinned_stats": stats})
    found = analyze(snapshot, whatif=False).pinned
    assert found is not None
    assert (found.held, found.in_use, found.most_held) == (48 * MIB, 16 * MIB, 64 * MIB)


@pytest.mark.parametrize("held", [4, 4 * MIB])
def test_a_counter_beyond_what_is_pinned_is_unknown_and_a_few_bytes_get_no_table(held: int):
    stats = {"allocated_bytes.current": held, "allocated_bytes.peak": held, "active_bytes.current": held + 76}
    snapshot = loaded([segment(1 << 40, [block(2 * MIB)])], oomscope={"schema_version": 1, "pinned_stats": stats})
    findings = analyze(snapshot, whatif=False)
    assert findings.pinned is not None
    assert findings.pinned.in_use is None
    text, page = render_text(findings), render_html(findings)
    for told in (text, page):
        assert ("Pinned host memory" in told) is (held >= MIB)
    assert "-76 B" not in text
    assert "\n    cached" not in text


def failed(message: str, failing: list[dict[str, Any]] | None = None, **more: Any):
    context = {
        "schema_version": 1,
        "reason": "oom",
        "exception": {"type": "RuntimeError", "message": message},
        "stacks": {"failing": [dict(one) for one in failing or []]},
        **more,
    }
    return analyze(pinned_snapshot(oomscope=context), whatif=False)


def test_a_driver_error_while_memory_was_pinned_is_pinned_memory():
    findings = failed("CUDA error: out of memory\nCompile with TORCH_USE_CUDA_DSA", PINNING)
    assert findings.refused is not None
    assert findings.refused.pinned
    assert occasion(findings, str) == "Out of memory · Pinned host memory · cuda:0"
    told = verdict_text(findings)
    assert "memory of the machine, not of the card" in told
    assert "PyTorch had 96.0 MiB of it pinned" in told


def test_the_same_error_anywhere_else_is_the_drivers():
    findings = failed("CUDA error: out of memory", [frame("launch", 3, "/workspace/train/train.py")])
    assert findings.refused is not None
    assert (findings.refused.message.kind, findings.refused.pinned) == ("cuda-driver", False)
    assert "No OOM" not in verdict_text(findings)


@pytest.mark.parametrize("deep", [refused._DEEP - 1, refused._DEEP])
def test_only_the_innermost_calls_say_that_memory_was_pinned(deep):
    inner = [frame("step", number, "/workspace/train/train.py") for number in range(deep)]
    findings = failed("CUDA error: out of memory", [*inner, PINNING[0]])
    assert findings.refused is not None
    assert findings.refused.pinned == (deep < refused._DEEP)


@pytest.mark.parametrize("before", [told_by_exception._LONGEST - 30, told_by_exception._LONGEST])
def test_of_a_message_only_the_beginning_is_read(before):
    findings = failed("x" * (before - 1) + "\nCUDA error: out of memory")
    assert (findings.refused is not None) == (before < told_by_exception._LONGEST)


@pytest.mark.parametrize(
    ("line", "pinned"),
    [
        ("batch = batch.pin_memory()", True),
        ("x = torch.empty(9, pin_memory=True)", True),
        ("x = torch.empty(9, pin_memory=False)", False),
        ("torch.cuda.synchronize()", False),
    ],
)
def test_the_line_that_failed_says_that_memory_was_pinned(line, pinned):
    at = frame("load", 12, "/workspace/train/data.py")
    source = {"filename": at["filename"], "line": 12, "first": 11, "text": ["pin_memory()", line, "pin_memory()"]}
    findings = failed("CUDA error: out of memory", [at], sources=[source])
    assert findings.refused is not None
    assert findings.refused.pinned == pinned


@pytest.mark.parametrize("message", ["", "a ValueError", "index out of range"])
def test_another_exception_is_no_refusal(message):
    findings = failed(message)
    assert findings.refused is None
    assert verdict_text(findings).startswith("No OOM")


def test_what_the_observer_saw_is_told_by_the_trace_alone():
    request = {"device": 0, "alloc_size": 1, "limit_or_total": 1, "device_free": 0}
    assert failed("CUDA out of memory. Tried to allocate 2.00 GiB", request=request).refused is None


@pytest.mark.parametrize(("went_on", "is_told"), [(False, False), (True, True)])
def test_a_failure_in_which_the_trace_ends_is_told_by_the_trace_alone(went_on: bool, is_told: bool):
    script = Script()
    script.at(10, 8)
    script.fails(11, 100)
    if went_on:
        script.at(12, 8)
    message = {"type": "RuntimeError", "message": "CUDA error: out of memory"}
    context = {"schema_version": 1, "reason": "oom", "exception": message}
    assert (analyze(script.snapshot(oomscope=context), whatif=False).refused is not None) is is_told


@pytest.mark.parametrize(("allocated", "is_told"), [("0.01", False), ("0.03", True)])
def test_a_failure_with_the_figures_of_the_message_is_in_the_trace_though_threads_went_on(
    allocated: str, is_told: bool
):
    script = Script()
    script.at(10, 8)
    script.fails(11, 2048)
    script.at(12, 8)
    text = (
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 4.00 GiB of which 1.00 GiB is "
        f"free. Of the allocated memory {allocated} GiB is allocated by PyTorch, and 1.00 MiB is reserved by PyTorch "
        "but unallocated."
    )
    context = {"schema_version": 1, "reason": "oom", "exception": {"type": "OutOfMemoryError", "message": text}}
    findings = analyze(script.snapshot(oomscope=context), whatif=False)
    assert (findings.refused is not None) is is_told
    assert findings.main is not None
    assert findings.main.oom is not None
    assert findings.main.oom.recovered is is_told
