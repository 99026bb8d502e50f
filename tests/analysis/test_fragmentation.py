"""Free bytes and what keeps them, against layouts with known answers and against the allocator itself."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from oomscope.allocator import AllocatorConfig
from oomscope.allocator.limits import Limit
from oomscope.analysis.attribution.by_site import Attribution
from oomscope.analysis.memory.fragmentation import fragmentation, free_bytes
from oomscope.analysis.memory.free_for_request import free_for_request
from oomscope.analysis.memory.pins import find_pins
from oomscope.analysis.study import study_device
from oomscope.history import device_history, recorded_config
from oomscope.model import Blocks, Layout, Segments
from tests.builders import block, loaded, segment
from tests.history.programs import CONFIGS, OPERATIONS, Operation, run
from tests.shared import captures, needs_shared, shared_snapshot

MIB = 1 << 20
A, B, C, D = (0x7F00_0000_0000 + at * (1 << 30) for at in range(4))
DEFAULT = AllocatorConfig()
EXPANDABLE = AllocatorConfig(expandable_segments=True)


def layout(*segments: object, **top: object) -> Layout:
    return loaded(list(segments), **top).devices[0].layout  # type: ignore[arg-type]


def parts(found: Layout, config: AllocatorConfig = DEFAULT) -> tuple[int, int, int]:
    free = free_bytes(found, config)
    return int(free.releasable.sum()), int(free.walled.sum()), int(free.stranded.sum())


def test_a_wholly_free_segment_of_the_default_pool_is_releasable() -> None:
    assert parts(layout(segment(A, [block(20 * MIB, "inactive")]))) == (20 * MIB, 0, 0)


def test_free_bytes_of_a_private_pool_are_walled_whether_or_not_anything_lives_there() -> None:
    free = segment(A, [block(20 * MIB, "inactive")], pool=(1, 0))
    shared = segment(B, [block(2 * MIB), block(18 * MIB, "inactive")], pool=(0, 3))
    assert parts(layout(free, shared)) == (0, 38 * MIB, 0)


@pytest.mark.parametrize("state", ["active_allocated", "active_pending_free", "something_new"])
def test_free_bytes_beside_a_block_are_stranded(state: str) -> None:
    found = layout(segment(A, [block(18 * MIB, "inactive"), block(2 * MIB, state)]))
    assert parts(found) == (0, 0, 18 * MIB)


def test_of_an_expandable_segment_whole_free_pages_are_releasable() -> None:
    # Pages of 20 MiB: free from 5 to 65, so that the pages 20-40 and 40-60 are free as a whole.
    found = layout(segment(A, [block(5 * MIB), block(60 * MIB, "inactive"), block(15 * MIB)], expandable=True))
    assert parts(found, EXPANDABLE) == (40 * MIB, 0, 20 * MIB)


def test_pages_of_the_small_pool_are_two_mebibytes() -> None:
    found = layout(segment(A, [block(MIB), block(6 * MIB, "inactive"), block(MIB)], kind="small", expandable=True))
    assert parts(found, EXPANDABLE) == (4 * MIB, 0, 2 * MIB)


def test_a_hole_that_covers_no_page_releases_nothing() -> None:
    found = layout(segment(A, [block(MIB), block(38 * MIB, "inactive"), block(MIB)], expandable=True))
    assert parts(found, EXPANDABLE) == (0, 0, 38 * MIB)


def test_rounding_and_unsplit_rests_are_told_apart() -> None:
    found = fragmentation(
        layout(segment(A, [block(20 * MIB, requested=19 * MIB + 5)]), segment(B, [block(512, requested=1)])),
        DEFAULT,
        ((0, 0),),
    )
    assert found.rounding == (512 - 5) + 511
    assert found.unsplit == MIB - 512


def test_each_kind_of_free_list_is_a_row_and_rows_sum_to_the_whole() -> None:
    snapshot = loaded(
        [
            segment(A, [block(2 * MIB), block(18 * MIB, "inactive")]),
            segment(B, [block(20 * MIB, "inactive")], stream=7),
            segment(C, [block(512), block(2 * MIB - 512, "inactive")], kind="small"),
            segment(D, [block(30 * MIB), block(10 * MIB, "inactive")], pool=(1, 0)),
        ]
    )
    found = fragmentation(snapshot.devices[0].layout, DEFAULT, snapshot.pools)
    assert [(row.pool, row.stream, row.segment_type) for row in found.by_pool] == [
        ((1, 0), 0, "large"),
        ((0, 0), 0, "large"),
        ((0, 0), 7, "large"),
        ((0, 0), 0, "small"),
    ]
    for name in ("inactive", "releasable", "walled", "stranded"):
        assert sum(getattr(row, name) for row in found.by_pool) == getattr(found, name)
    assert found.largest_inactive == 20 * MIB
    assert found.holes == 4


def test_nothing_at_all_is_not_fragmented() -> None:
    found = fragmentation(Layout(Segments.empty(), Blocks.empty()), DEFAULT, ((0, 0),))
    assert (found.inactive, found.largest_inactive, found.holes, found.by_pool) == (0, 0, 0, ())
    assert (found.rounding, found.unsplit) == (0, 0)


quickly = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@quickly
@given(OPERATIONS, CONFIGS)
def test_what_is_called_releasable_is_what_empty_cache_gives_back(operations: list[Operation], conf: str) -> None:
    recorder, _ = run(operations, conf, Limit())
    for name in sorted(recorder.waiting):
        recorder.complete(name)
    snapshot = recorder.snapshot()
    config = recorded_config(snapshot)
    found = fragmentation(snapshot.devices[0].layout, config, snapshot.pools)
    assert found.releasable + found.walled + found.stranded == found.inactive
    assert min(found.releasable, found.walled, found.stranded) >= 0
    before = recorder.allocator.reserved
    recorder.empty_cache()
    assert before - recorder.allocator.reserved == found.releasable


@quickly
@given(OPERATIONS, CONFIGS)
def test_if_everything_moved_all_stranded_bytes_came_free(operations: list[Operation], conf: str) -> None:
    snapshot = run(operations, conf, Limit())[0].snapshot()
    study = study_device(snapshot, snapshot.devices[0].index)
    history = study.history
    rows = len(history.lifetimes)
    # All blocks of one site, so that moving it moves everything.
    study.attribution = Attribution(
        np.zeros(rows, np.int64), np.full(1, -1, np.int32), np.full(1, -1, np.int32), ("all",)
    )
    pins = find_pins(study, history.entries - 1, history.layout)
    stranded = fragmentation(history.layout, history.config, snapshot.pools).stranded
    assert sum(pin.stranded_bytes for pin in pins) == sum(pin.alone_bytes for pin in pins) == stranded


@quickly
@given(OPERATIONS, CONFIGS)
def test_free_bytes_are_worth_one_thing_to_a_request(operations: list[Operation], conf: str) -> None:
    snapshot = run(operations, conf, Limit())[0].snapshot()
    config, found = recorded_config(snapshot), snapshot.devices[0].layout
    free = free_for_request(found, config, size=5 * MIB, stream=0, pool=0, room=0)
    whole = int(free_bytes(found, config).inactive.sum())
    assert free.usable + free.walled + free.other_streams + free.other_class == whole
    assert free.largest <= free.usable
    assert free.walled_piece <= free.walled
    assert free.other_streams_piece <= free.other_streams


@needs_shared
@pytest.mark.parametrize("name", captures())
def test_the_three_parts_sum_to_the_inactive_bytes_of_real_captures(name: str) -> None:
    snapshot = shared_snapshot(name)
    config = recorded_config(snapshot)
    for device in snapshot.devices:
        history = device_history(device, config)
        for entry in np.linspace(-1, history.entries - 1, 7).astype(int).tolist():
            found = fragmentation(history.layout_at(entry), config, snapshot.pools)
            assert found.releasable + found.walled + found.stranded == found.inactive
            assert sum(row.reserved for row in found.by_pool) == history.curves.at(entry)[2]
            for row in found.by_pool:
                assert row.releasable + row.walled + row.stranded == row.inactive
                assert dataclasses.astuple(row)
