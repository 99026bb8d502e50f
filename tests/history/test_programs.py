"""What history rebuilds of a program is what the allocator really did, whatever part of the trace is left."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oomscope.allocator.limits import Limit
from oomscope.history import BEFORE, DeviceHistory, device_history, recorded_config
from oomscope.history.layouts import layout_at
from tests.history.cutting import cut, slack_curve
from tests.history.programs import CONFIGS, LIMITS, OPERATIONS, Moment, Operation, run
from tests.history.same import assert_same_layout, assert_tiled

quickly = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def sizes_at(history: DeviceHistory, entry: int) -> dict[int, tuple[int, int]]:
    """(size, slack) of each allocated block by its address."""
    rows = history.lifetimes.allocated_at(entry)
    columns = (history.lifetimes.address, history.size, history.slack)
    return {
        address: (size, slack)
        for address, size, slack in zip(*(column[rows].tolist() for column in columns), strict=True)
    }


def assert_true(history: DeviceHistory, moment: Moment, entry: int) -> None:
    allocated, active, reserved = history.curves.at(entry)
    unknown_allocated = int(slack_curve(history, history.lifetimes.freed)[entry - BEFORE])
    unknown_active = int(slack_curve(history, history.lifetimes.gone)[entry - BEFORE])
    assert reserved == moment.reserved
    assert 0 <= moment.allocated - allocated <= unknown_allocated
    assert 0 <= moment.active - active <= unknown_active
    found = sizes_at(history, entry)
    assert found.keys() == moment.blocks.keys()
    for address, size in moment.blocks.items():
        known, slack = found[address]
        assert known <= size <= known + slack


@quickly
@given(OPERATIONS, CONFIGS, LIMITS)
def test_a_whole_recording_gives_every_size_and_curve_exactly(
    operations: list[Operation], conf: str, limit: Limit
) -> None:
    recorder, moments = run(operations, conf, limit)
    snapshot = recorder.snapshot()
    history = device_history(snapshot.devices[0], recorded_config(snapshot))
    assert not history.slack.any()
    assert (history.missing_bytes, history.overlapping, history.strangers) == (0, 0, 0)
    for moment in moments:
        assert_true(history, moment, moment.entry)
    assert_same_layout(layout_at(history.entries - 1, history.lifetimes, history.size, history.spans), history.layout)


@quickly
@given(OPERATIONS, CONFIGS, LIMITS, st.floats(0, 1))
def test_a_recording_that_lost_its_beginning_is_right_within_its_slack(
    operations: list[Operation], conf: str, limit: Limit, share: float
) -> None:
    recorder, moments = run(operations, conf, limit)
    snapshot = recorder.snapshot()
    kept_from = int(share * len(recorder.entries))
    history = device_history(cut(snapshot.devices[0], kept_from), recorded_config(snapshot))
    assert (history.missing_bytes, history.overlapping, history.strangers) == (0, 0, 0)
    for moment in moments:
        if moment.entry >= kept_from + BEFORE:
            assert_true(history, moment, moment.entry - kept_from)


@quickly
@given(OPERATIONS, OPERATIONS, CONFIGS)
def test_the_layout_at_any_entry_is_the_snapshot_that_torch_would_have_taken_then(
    before: list[Operation], after: list[Operation], conf: str
) -> None:
    recorder, moments = run(before, conf, Limit())
    then = recorder.snapshot().devices[0].layout
    entry = moments[-1].entry
    # The program goes on with the same names, which are free again once all is given back.
    for number, operation in enumerate(after):
        if operation.kind == "malloc":
            recorder.malloc(10_000 + number, operation.size, operation.stream, operation.pool)
        elif recorder.live:
            recorder.free(sorted(recorder.live)[operation.choice % len(recorder.live)])
    recorder.empty_cache()
    snapshot = recorder.snapshot()
    history = device_history(snapshot.devices[0], recorded_config(snapshot))
    rebuilt = history.layout_at(entry)
    assert_tiled(rebuilt)
    assert_same_layout(rebuilt, then)
