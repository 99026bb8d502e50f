"""What a recording could see."""

from __future__ import annotations

import pytest

from oomscope.analysis import analyze
from oomscope.analysis.recording_quality import history_kind
from oomscope.history import device_history, recorded_config
from oomscope.model import Snapshot
from oomscope.rendering.text.terminal import render_text
from oomscope.wording.opening import occasion, verdict_text
from tests import builders
from tests.builders import block, entry, frame, loaded, segment
from tests.history.cutting import cut
from tests.shared import captures, needs_shared, public, shared_snapshot

MIB = 1 << 20
A, B = 0x7F00_0000_0000, 0x7F80_0000_0000
HERE = [frame("here")]


def kind(snapshot: Snapshot) -> str:
    config = recorded_config(snapshot)
    return history_kind(snapshot, tuple(device_history(device, config) for device in snapshot.devices))


def small(*blocks: builders.Dict, frames: list[builders.Dict] | None = None, device: int = 0) -> builders.Dict:
    used = sum(item["size"] for item in blocks)
    base = B if device else A
    return segment(base, [*blocks, block(2 * MIB - used, "inactive")], kind="small", frames=frames or (), device=device)


WHOLE = [entry("segment_alloc", A, 2 * MIB), entry("alloc", A, 512, frames=HERE)]
LATER = [entry("alloc", A, 512, frames=HERE), entry("free_requested", A, 512), entry("free_completed", A, 512)]


@needs_shared
@pytest.mark.parametrize("name", captures())
def test_the_kind_of_real_captures(name: str) -> None:
    expected = {"late_start": "late", "ring_wrapped": "wrapped", "state_only": "state_only", "no_history": "none"}
    assert kind(shared_snapshot(name)) == expected.get(name, "full")


@needs_shared
@pytest.mark.parametrize("percent", [5, 50, 95])
@pytest.mark.parametrize("name", ["train_ok", "train_ok.expandable", "oom_leak_total_loss", "oom_fragmentation"])
def test_a_ring_that_lost_its_beginning_is_never_called_whole(name: str, percent: int) -> None:
    snapshot = shared_snapshot(name)
    device = snapshot.devices[0]
    one = device_history(cut(device, len(device.trace) * percent // 100), recorded_config(snapshot))
    assert history_kind(snapshot, (one,)) == "late"
    kept = len(device.trace) // 1000 * 1000
    ring = device_history(cut(device, len(device.trace) - kept), recorded_config(snapshot))
    assert history_kind(snapshot, (ring,)) == "wrapped"


def test_a_recording_from_the_first_segment_on_is_full() -> None:
    assert kind(loaded([small(block(512, frames=HERE))], [WHOLE])) == "full"


def filled(entries: int) -> list[builders.Dict]:
    """A trace of so many entries, of which the first makes the block at 512."""
    return [entry("alloc", A + 512, 512, frames=HERE), *[entry("snapshot", 0, 0)] * (entries - 1)]


@pytest.mark.parametrize(
    ("entries", "expected"), [(64, "late"), (128, "wrapped"), (999, "late"), (1000, "wrapped"), (1001, "late")]
)
def test_a_recorded_block_without_an_entry_is_overwritten_only_where_the_ring_may_be_full(
    entries: int, expected: str
) -> None:
    trace = filled(entries)
    assert kind(loaded([small(block(512), block(512, frames=HERE))], [trace])) == "late"
    assert kind(loaded([small(block(512, frames=HERE), block(512, frames=HERE))], [trace])) == expected


def test_a_recording_that_was_started_again_is_late_and_says_why_old_blocks_have_stacks() -> None:
    """The published ones: 19,464 entries under a bound of 1,000,000, and blocks with stacks from before them."""
    recording = analyze(
        loaded([small(block(512, frames=HERE), block(512, frames=HERE))], [filled(19_464)]), whatif=False
    ).recording
    assert recording.history == "late"
    assert recording.notes[0].code == "recording.restarted"
    assert recording.notes[0].values["before"] == 512


@needs_shared
@pytest.mark.parametrize("name", public())
def test_no_public_capture_is_called_overwritten(name: str) -> None:
    """Their programs ask for 100,000 entries and more, and none holds so many."""
    assert kind(shared_snapshot(name)) != "wrapped"


def test_a_cached_segment_without_an_entry_tells_of_an_earlier_time_too() -> None:
    assert kind(loaded([small()], [LATER])) == "late"
    assert kind(loaded([small(frames=HERE)], [LATER])) == "late"
    assert kind(loaded([small(frames=HERE)], [filled(1000)])) == "wrapped"


@pytest.mark.parametrize("trace", [[], [entry("alloc", A, 512, frames=HERE)]])
def test_without_a_history_nobody_says_that_nothing_failed(trace: list[builders.Dict]) -> None:
    findings = analyze(loaded([small(block(512, frames=HERE))], [trace]), whatif=False)
    assert occasion(findings, str) == "It is not known whether a request failed · cuda:0"
    assert "not known whether a request failed" in verdict_text(findings)


def test_what_falls_below_zero_is_no_size() -> None:
    """The trace obtains a segment that the final segments do not hold, and never gives it back."""
    trace = [entry("segment_alloc", B, 20 * MIB), entry("alloc", A, 512, frames=HERE), entry("snapshot", 0, 0)]
    device = analyze(loaded([small(block(512, frames=HERE))], [trace]), at=0, whatif=False).devices[0]
    assert device.history.curves.at(-1)[2] < 0
    assert analyze(device.study.snapshot, at=-1, whatif=False).devices[0].at.reserved == 0
    assert device.reconciliation.unaccounted_bytes == 18 * MIB


def test_a_known_bound_decides() -> None:
    def bounded(bound: int) -> str:
        context = {"recording": {"max_entries": bound}}
        return kind(loaded([small(block(512), block(512, frames=HERE))], [LATER], oomscope=context))

    assert bounded(len(LATER)) == "wrapped"
    assert bounded(len(LATER) + 1) == "late"


@pytest.mark.parametrize("bound", [None, "5", True, 0, -3])
def test_a_bound_that_is_none_is_ignored(bound: object) -> None:
    context = {"recording": {"max_entries": bound}}
    assert kind(loaded([small(block(512, frames=HERE))], [WHOLE], oomscope=context)) == "full"


def test_a_full_ring_is_not_called_whole_even_if_nothing_older_is_left() -> None:
    context = {"recording": {"max_entries": len(WHOLE)}}
    assert kind(loaded([small(block(512, frames=HERE))], [WHOLE], oomscope=context)) == "wrapped"


def test_state_only_and_nothing_at_all() -> None:
    assert kind(loaded([small(block(512, frames=HERE))])) == "state_only"
    assert kind(loaded([small(block(512))])) == "none"


def test_of_several_devices_the_least_complete_counts() -> None:
    snapshot = loaded([small(block(512, frames=HERE)), small(device=1)], [WHOLE, [
        entry("alloc", B, 512, frames=HERE), entry("free_requested", B, 512), entry("free_completed", B, 512),
    ]])  # fmt: skip
    assert kind(snapshot) == "late"


@pytest.mark.parametrize(
    ("snapshot", "code"),
    [
        (loaded([small(block(512, frames=HERE))], [WHOLE]), "recording.full"),
        (loaded([small()], [LATER]), "recording.late_and_freed"),
        (loaded([small(block(512, frames=HERE), block(512, frames=HERE))], [filled(1000)]), "recording.wrapped"),
        (loaded([small(block(512, frames=HERE), block(512, frames=HERE))], [filled(999)]), "recording.restarted"),
        (loaded([small(block(512, frames=HERE), block(512))], [WHOLE]), "recording.late"),
        (loaded([small(frames=HERE)], [filled(1000)]), "recording.wrapped"),
        (loaded([small(block(512, frames=HERE))], [WHOLE[1:]]), "recording.state_only"),
        (loaded([small(block(512, frames=HERE))], [WHOLE[:1]]), "recording.ring_of_one"),
        (loaded([small(block(512, frames=HERE))]), "recording.stopped"),
        (loaded([small(block(512))]), "recording.none"),
        (loaded(), "recording.empty"),
    ],
)
def test_the_first_note_says_what_can_be_seen_and_how_to_see_more(snapshot: Snapshot, code: str) -> None:
    assert analyze(snapshot, whatif=False).recording.notes[0].code == code


@pytest.mark.parametrize(
    ("trace", "blocks", "agrees", "growth"),
    [
        (WHOLE, [block(512, frames=HERE)], True, True),
        (WHOLE[:1], [block(512, frames=HERE)], False, False),
        ([], [block(512, frames=HERE)], False, False),
        ([], [block(512)], False, False),
        ([], [], False, False),
    ],
)
def test_without_a_course_of_events_nothing_is_said_to_agree_or_not_to_grow(
    trace: list[builders.Dict], blocks: list[builders.Dict], agrees: bool, growth: bool
) -> None:
    text = render_text(analyze(loaded([small(*blocks)] if blocks else [], [trace]), whatif=False))
    assert ("Trace and segments agree" in text) is agrees
    assert ("whether memory grows" in text) is growth
    assert bool(blocks) or "it has segments" not in text


def test_bytes_that_no_stack_explains_are_counted() -> None:
    recording = analyze(loaded([small(block(1024), block(512, frames=HERE))]), whatif=False).recording
    assert (recording.unattributed_live_bytes, recording.stacks) == (1024, "python")


def test_stacks_with_cpp_frames_are_told_apart() -> None:
    cpp = [frame("alloc", 0, "??"), *HERE]
    assert analyze(loaded([small(block(512, frames=cpp))]), whatif=False).recording.stacks == "all"
    assert analyze(loaded([small(block(512))]), whatif=False).recording.stacks == "none"
