"""The segment map: every segment is shown or counted, and only what keeps a larger hole open is marked."""

from __future__ import annotations

import pytest

from oomscope.analysis import analyze
from oomscope.analysis.memory.fragmentation import free_bytes
from oomscope.rendering.html.lifetime_keys import keys_of
from oomscope.rendering.html.segment_map import MOST_BARS, SegmentMap, segment_map
from tests.builders import block, loaded, segment
from tests.samples import SAMPLES, sample_findings


def drawn(name: str) -> SegmentMap | None:
    findings = sample_findings(name)
    device = findings.devices[0]
    return segment_map(device, keys_of(device), findings.snapshot.pools)


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_shown_and_what_is_left_out_sum_to_what_cannot_be_released(name: str):
    device = sample_findings(name).devices[0]
    history = device.history
    free = free_bytes(history.layout_at(device.at_entry), history.config)
    found = drawn(name)
    assert found is not None
    shown = sum(bar.stranded * bar.alike for bar in found.bars)
    assert shown + found.others_stranded == int(free.stranded.sum() + free.walled.sum())


@pytest.mark.parametrize("name", SAMPLES)
def test_segments_that_look_alike_share_a_bar(name: str):
    found = drawn(name)
    assert found is not None
    looks = [(bar.size, bar.stranded, bar.free, bar.pieces) for bar in found.bars]
    assert len(set(looks)) == len(looks) <= MOST_BARS


def test_small_blocks_in_large_holes_are_marked_and_large_ones_beside_slivers_are_not():
    scattered, packed = drawn("oom_fragmentation"), drawn("oom_leak_total_loss")
    assert scattered is not None
    assert packed is not None
    assert scattered.capped
    assert all(piece.pin for bar in scattered.bars[:3] for piece in bar.pieces)
    # 18 MiB in use beside 2 MiB free, many times over.
    assert any(bar.alike > 20 and not any(piece.pin for piece in bar.pieces) for bar in packed.bars)


def test_segments_that_say_they_have_no_size_are_shown():
    torn = segment(0x7F00_0000_0000, [block(512), block(1 << 20, "inactive")])
    torn["total_size"] = 0
    findings = analyze(loaded([torn]), whatif=False)
    device = findings.devices[0]
    found = segment_map(device, keys_of(device), findings.snapshot.pools)
    assert found is not None
    assert [bar.size for bar in found.bars] == [0]


def test_segments_that_strand_next_to_nothing_have_no_bar(monkeypatch: pytest.MonkeyPatch):
    found = drawn("oom_fragmentation")
    assert found is not None
    total = sum(bar.stranded * bar.alike for bar in found.bars) + found.others_stranded
    first = found.bars[0].stranded
    monkeypatch.setattr("oomscope.rendering.html.segment_map.LEAST", total / first)
    shown = drawn("oom_fragmentation")
    assert shown is not None
    assert {bar.stranded for bar in shown.bars} == {first}
    assert sum(bar.stranded * bar.alike for bar in shown.bars) + shown.others_stranded == total
