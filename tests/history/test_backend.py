"""Which device an allocator served, and how it rounded, told from what it recorded."""

from __future__ import annotations

import pytest

from oomscope.allocator.config import ASCEND_ALIGNMENT
from oomscope.analysis import analyze
from oomscope.history import device_kind, find_padding, recorded_config
from oomscope.history.backend import _LEAST_NEIGHBOURS, find_alignment
from tests import builders
from tests.builders import block, entry, frame, loaded, segment
from tests.shared import captures, needs_shared, public, shared_snapshot

MIB = 1 << 20
A = 0x7F0000000000
ASCEND = "public/codeasier__MemSnapDump__tests__test_data__"


def blocks(size: int, requested: int, **more: object):
    """A small segment with one live block."""
    return [segment(A, [block(size, requested=requested), block(2 * MIB - size, "inactive")], kind="small", **more)]


@pytest.mark.parametrize(
    ("size", "requested", "padding"), [(512, 480, 0), (512, 481, 0), (1024, 481, 32), (1536, 1024, 32)]
)
def test_the_size_of_a_live_block_tells_how_requests_are_rounded(size: int, requested: int, padding: int):
    snapshot = loaded(blocks(size, requested))
    assert find_padding(snapshot) == recorded_config(snapshot).padding == padding


def neighbours(count: int, distance: int):
    """Requests for 512 bytes that lie `distance` bytes apart."""
    trace = [entry("segment_alloc", A, 2 * MIB)]
    trace += [entry("alloc", A + number * distance, 512) for number in range(count + 1)]
    for number in range(count + 1):
        trace += [entry(action, A + number * distance, 512) for action in ("free_requested", "free_completed")]
    return loaded([segment(A, [block(2 * MIB, "inactive")])], [trace])


def test_where_all_is_freed_the_distance_of_neighbours_tells():
    assert find_padding(neighbours(_LEAST_NEIGHBOURS, 1024)) == 32
    assert find_padding(neighbours(_LEAST_NEIGHBOURS - 1, 1024)) == 0
    assert find_padding(neighbours(50, 512)) == 0
    assert find_padding(neighbours(50, 1536)) == 0


def test_one_block_where_plain_rounding_lets_the_one_before_it_end_shows_that_nothing_is_padded() -> None:
    far = A + 2 * MIB - 1024
    trace = [entry("alloc", A + number * 1024, 512) for number in range(50)]
    trace += [entry("alloc", far, 512), entry("alloc", far + 512, 512)]
    padded = loaded([segment(A, [block(2 * MIB, "inactive")])], [trace[:-1]])
    plain = loaded([segment(A, [block(2 * MIB, "inactive")])], [trace])
    assert (find_padding(padded), find_padding(plain)) == (32, 0)


def test_a_block_right_behind_one_that_rounds_the_same_either_way_shows_nothing() -> None:
    far = A + 2 * MIB - 2048
    trace = [entry("alloc", A + number * 1024, 512) for number in range(50)]
    trace += [entry("alloc", far, 100), entry("alloc", far + 512, 512)]
    assert find_padding(loaded([segment(A, [block(2 * MIB, "inactive")])], [trace])) == 32


@pytest.mark.parametrize(("mapped", "aligns"), [(True, False), (False, True)])
def test_only_addresses_in_memory_that_was_seen_mapped_tell_how_blocks_are_aligned(mapped: bool, aligns: bool) -> None:
    trace = [entry("segment_map", A, 20 * MIB)] if mapped else []
    trace += [entry("alloc", A + 512, 4 * MIB)]
    blocks = [block(512), block(4 * MIB), block(16 * MIB - 512, "inactive")]
    snapshot = loaded([segment(A, blocks, expandable=True)], [trace])
    assert find_alignment(snapshot.devices[0]) == (ASCEND_ALIGNMENT if aligns else 0)


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("/venv/lib/python3.11/site-packages/torch_npu/utils/_module.py", "npu"),
        ("/venv/lib/python3.11/site-packages/torch/xpu/memory.py", "xpu"),
        ("/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", "cuda"),
        ("/home/me/torch_npu_tests/train.py", "cuda"),
    ],
)
def test_a_device_is_called_by_the_package_that_served_it(file: str, kind: str):
    trace = [entry("segment_alloc", A, 2 * MIB), entry("alloc", A, 1024, frames=[frame("f", 1, file)])]
    snapshot = loaded(blocks(1024, 1024), [trace])
    assert device_kind(snapshot) == kind
    assert analyze(snapshot, whatif=False).devices[0].name == f"{kind}:0"


def test_each_device_has_its_own_kind_of_segments():
    """Where the file has no settings (torch before 2.3, torch_npu), one device does not speak for another."""
    ordinary, mapped = blocks(1024, 1024)[0], blocks(1024, 1024, device=1, expandable=True)[0]
    traces = [[entry("segment_alloc", A, 2 * MIB)], [entry("segment_map", A, 2 * MIB)]]
    snapshot = loaded([ordinary, mapped], traces)
    assert [recorded_config(snapshot, device).expandable_segments for device in snapshot.devices] == [False, True]
    study = analyze(snapshot, whatif=False).devices
    assert [one.history.config.expandable_segments for one in study] == [False, True]


@pytest.mark.parametrize(("said", "mapped", "found"), [(True, False, True), (False, True, True), (False, False, False)])
def test_settings_that_were_changed_at_the_end_do_not_hide_what_was_mapped(said: bool, mapped: bool, found: bool):
    action = "segment_map" if mapped else "segment_alloc"
    one = blocks(1024, 1024, expandable=mapped)
    settings = builders.settings(expandable_segments=said)
    snapshot = loaded(one, [[entry(action, A, 2 * MIB)]], allocator_settings=settings)
    assert recorded_config(snapshot).expandable_segments is found


@needs_shared
@pytest.mark.parametrize("name", [*captures(), *public()])
def test_real_captures_are_of_the_backend_that_made_them(name: str):
    snapshot = shared_snapshot(name)
    assert (device_kind(snapshot), find_padding(snapshot)) == (("npu", 32) if name.startswith(ASCEND) else ("cuda", 0))


@needs_shared
@pytest.mark.parametrize("name", ["snapshot_1768383987920985470.pkl", "snapshot_expandable.pkl"])
def test_the_peaks_of_ascend_are_exact(name: str):
    """Every address of the replay is the recorded one, so every block has the size that was recorded."""
    findings = analyze(shared_snapshot(ASCEND + name), whatif_seconds=0)
    assert findings.whatif[0].self_check.mismatches == 0
    assert findings.devices[0].reconciliation.replay_agrees is True
    assert findings.devices[0].peak.allocated == findings.whatif[0].rows[0].peak_allocated


@needs_shared
def test_a_replay_that_departs_takes_exact_from_every_figure():
    device = analyze(
        shared_snapshot("public/Da1sypetals__SnapViewer__assets__memory.pickle"), whatif_seconds=0
    ).devices[0]
    assert device.reconciliation.replay_agrees is False
    assert not device.exact
