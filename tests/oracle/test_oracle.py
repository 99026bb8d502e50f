"""What oomscope finds in any legal history is what a dictionary of blocks finds, one entry at a time."""

from __future__ import annotations

import io
import json
import os
import pickle
import random
from collections import Counter
from typing import Any

import numpy as np
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from oomscope.analysis import analyze
from oomscope.analysis.attribution.site_uses import site_uses
from oomscope.analysis.records import CATEGORIES, PHASES
from oomscope.analysis.study import DeviceStudy, SnapshotStudy
from oomscope.history import BEFORE
from oomscope.model import Snapshot
from oomscope.reading import load
from oomscope.redaction.snapshot import redact
from oomscope.rendering.formats import render
from tests.history.cutting import slack_curve
from tests.oracle.histories import LIMITS, OPERATIONS, WINDOWS, Operation, Window, run
from tests.oracle.replay import replay
from tests.oracle.toy import State, Toy
from tests.reading.cut_files import WRITERS

EXAMPLES = int(os.environ.get("OOMSCOPE_ORACLE", "40"))
"""Histories a property; by hand as many as there is time for."""

thoroughly = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
fewer = settings(thoroughly, max_examples=max(EXAMPLES // 4, 1))


def read(toy: Toy) -> Snapshot:
    return load(io.BytesIO(pickle.dumps(toy.document(), 4)))


def study_of(toy: Toy) -> DeviceStudy:
    devices = SnapshotStudy(read(toy)).devices
    assume(devices)  # where nothing was allocated there is no device
    return devices[0]


@thoroughly
@given(OPERATIONS, st.booleans(), LIMITS, WINDOWS)
def test_the_two_oracles_agree(operations: list[Operation], expandable: bool, limit: int, window: Window) -> None:
    toy = run(operations, expandable, limit, window)
    assert list(replay(toy)) == [toy.before, *toy.states]


@thoroughly
@given(OPERATIONS, st.booleans(), LIMITS, WINDOWS)
def test_curves_are_the_oracles_at_every_entry(
    operations: list[Operation], expandable: bool, limit: int, window: Window
) -> None:
    toy = run(operations, expandable, limit, window)
    history = study_of(toy).history
    missing_allocated = slack_curve(history, history.lifetimes.freed)
    missing_active = slack_curve(history, history.lifetimes.gone)
    assert window.kind != "whole" or not history.slack.any()
    states = list(replay(toy))
    assert history.entries == len(states) - 1
    for row, state in enumerate(states):
        assert history.curves.reserved[row] == state.reserved
        # By up to this many bytes a block from before the recording may be larger than is known.
        assert 0 <= state.allocated - history.curves.allocated[row] <= missing_allocated[row]
        assert 0 <= state.active - history.curves.active[row] <= missing_active[row]


@thoroughly
@given(OPERATIONS, st.booleans(), LIMITS, WINDOWS)
def test_every_way_to_divide_memory_sums_to_the_curve(
    operations: list[Operation], expandable: bool, limit: int, window: Window
) -> None:
    study = study_of(run(operations, expandable, limit, window))
    history = study.history
    for entry in range(BEFORE, history.entries):
        allocated, active, reserved = history.curves.at(entry)
        lives = history.lifetimes
        assert history.size[lives.allocated_at(entry)].sum() == allocated
        assert history.size[lives.active_at(entry)].sum() == active
        assert history.spans.size[history.spans.there_at(entry)].sum() == reserved
        assert sum(study.live_by(study.categories, CATEGORIES, entry).values()) == allocated
        assert sum(study.live_by(study.phases, PHASES, entry).values()) == allocated
        assert sum(row.bytes for row in site_uses(study, entry)) == allocated
        assert sum(bytes_by_pass(study, entry)) == allocated
        layout = history.layout_at(entry)
        assert (layout.allocated, layout.active, layout.reserved) == (allocated, active, reserved)


def bytes_by_pass(study: DeviceStudy, entry: int) -> list[int]:
    """Allocated bytes by the innermost pass that they were made in; those made in none first."""
    history, loops = study.history, study.loops
    live = np.flatnonzero(history.lifetimes.allocated_at(entry))
    born, size = history.lifetimes.born[live], history.size[live]
    run_of = loops.around(born)
    found: Counter[tuple[int, int]] = Counter()
    for birth, run_number, bytes_ in zip(born.tolist(), run_of.tolist(), size.tolist(), strict=True):
        number = -1
        if run_number >= 0:
            one = loops.runs[run_number]
            assert one.begin <= birth < one.end
            assert (np.diff(one.starts) > 0).all()
            number = int(np.searchsorted(one.starts, birth, side="right"))
            assert number > 0
        found[run_number, number] += bytes_
    return list(found.values())


@thoroughly
@given(OPERATIONS, st.booleans(), LIMITS)
def test_stacks_hold_what_they_allocated(operations: list[Operation], expandable: bool, limit: int) -> None:
    toy = run(operations, expandable, limit, Window("whole", 1.0))
    study = study_of(toy)
    for row, state in enumerate(replay(toy)):
        assert bytes_by_lines(study, row + BEFORE) == lines_of(toy, state)


def bytes_by_lines(study: DeviceStudy, entry: int) -> Counter[Any]:
    history, stacks = study.history, study.snapshot.stacks
    found: Counter[Any] = Counter()
    for row in np.flatnonzero(history.lifetimes.allocated_at(entry)).tolist():
        lines = tuple((frame.filename, frame.line) for frame in stacks[int(history.lifetimes.stack[row])])
        found[lines] += int(history.size[row])
    return found


def lines_of(toy: Toy, state: State) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for stack, size in state.by_stack.items():
        found[tuple((frame["filename"], frame["line"]) for frame in toy.stacks[stack])] += size
    return found


def report(snapshot: Snapshot) -> Any:
    """The JSON report, without what replays say, which depends on time."""
    return json.loads(render(analyze(snapshot, whatif=False), "json", None))


def shuffled(value: Any, chance: random.Random) -> Any:
    """`value` with the keys of every dict in another order."""
    if isinstance(value, dict):
        keys = list(value)
        chance.shuffle(keys)
        return {key: shuffled(value[key], chance) for key in keys}
    return [shuffled(item, chance) for item in value] if isinstance(value, list) else value


@fewer
@given(OPERATIONS, st.booleans(), LIMITS, WINDOWS, st.randoms(use_true_random=False))
def test_the_report_is_the_same_from_every_container_and_order_of_keys(
    operations: list[Operation], expandable: bool, limit: int, window: Window, chance: random.Random
) -> None:
    document = run(operations, expandable, limit, window).document()
    expected = report(load(io.BytesIO(pickle.dumps(document, 4))))
    for form, write in WRITERS.items():
        assert report(load(io.BytesIO(write(document)))) == expected, form
    assert report(load(io.BytesIO(pickle.dumps(shuffled(document, chance), 4)))) == expected


@fewer
@given(OPERATIONS, st.booleans(), LIMITS, WINDOWS)
def test_redaction_changes_no_number(operations: list[Operation], expandable: bool, limit: int, window: Window) -> None:
    snapshot = read(run(operations, expandable, limit, window))
    copy, _ = redact(snapshot)
    assert numbers(report(copy)) == numbers(report(snapshot))


def numbers(value: Any) -> Any:
    """`value` without its texts."""
    if isinstance(value, dict):
        return {key: numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [numbers(item) for item in value]
    return None if isinstance(value, str) else value


@thoroughly
@example([Operation("malloc", 1 << 19, 0, 0, 0, 0)] * 12, True, 1 << 40, Window("late", 0.5), 0.5)
@given(OPERATIONS, st.booleans(), LIMITS, WINDOWS, st.floats(0, 1))
def test_before_a_cut_nothing_is_counted_that_was_not_there(
    operations: list[Operation], expandable: bool, limit: int, window: Window, share: float
) -> None:
    """Of a file that was cut off, bytes are lower bounds up to the cut, and exact at the end."""
    toy = run(operations, expandable, limit, window)
    data = pickle.dumps(toy.document(), 4)
    traces = data.index(b"device_traces")
    snapshot = load(io.BytesIO(data[: traces + 30 + int(share * (len(data) - traces - 30))]))
    assume(snapshot.devices)  # a toy that allocated nothing is told of no device
    history = SnapshotStudy(snapshot).devices[0].history
    states = list(replay(toy))
    assert history.recorded == len(snapshot.devices[0].trace)
    for row, state in enumerate(states[: history.recorded + 1]):
        if history.recorded:
            assert history.curves.allocated[row] <= state.allocated
            assert history.curves.active[row] <= state.active
            assert history.curves.reserved[row] <= state.reserved
    assert history.curves.at(history.entries - 1) == (states[-1].allocated, states[-1].active, states[-1].reserved)


def test_the_toy_makes_what_it_should() -> None:
    """OOMs, retries, splits, merges, pending frees and unmapped pages are all met in a handful of histories."""
    met: Counter[str] = Counter()
    chance = random.Random(1)
    for number in range(60):
        operations = [
            Operation(
                chance.choice(["malloc"] * 6 + ["free"] * 4 + ["free_elsewhere", "complete", "empty_cache"]),
                chance.randrange(1, 60 << 20), chance.choice([0, 7]), chance.choice([0, 1]), chance.randrange(7),
                chance.randrange(1000),
            )
            for _ in range(50)
        ]  # fmt: skip
        toy = run(operations, number % 2 == 0, 160 << 20, Window("whole", 1.0))
        met.update(entry["action"] for entry in toy.entries)
        met["split"] += sum(len(segment.pieces) > 1 for segment in toy.segments)
    for action in ("alloc", "free_completed", "oom", "segment_free", "segment_map", "segment_unmap", "split"):
        assert met[action] > 5, action
