"""Files that contradict themselves are read, and the contradictions named."""

from __future__ import annotations

from typing import Any

from tests.builders import block, loaded, segment
from tests.said import said


def notes_of(*segments: dict[str, Any]) -> str:
    return said(loaded(list(segments)).notes)


def test_sound_segments_need_no_note() -> None:
    assert notes_of(segment(0, [block(512), block(1024, "inactive")]), segment(4096, [block(512)])) == ""


def test_a_declared_sum_that_the_blocks_do_not_reach() -> None:
    wrong = segment(0, [block(512), block(512, "active_pending_free", requested=500)])
    wrong["allocated_size"], wrong["requested_size"] = 1024, 1 << 20
    notes = notes_of(wrong, segment(4096, [block(512)]))
    assert (
        "1 of 2 segments of device 0: allocated_size contradicts the blocks (1.00 KiB declared, 512 B found)" in notes
    )
    assert "1 of 2 segments of device 0: requested_size" in notes
    assert "active_size" not in notes


def test_blocks_that_do_not_cover_their_segment() -> None:
    short = segment(0, [block(512)])
    short["total_size"] = 2048
    assert "The only segment of device 0: total_size contradicts the blocks" in notes_of(short)


def test_blocks_with_a_gap_between_them() -> None:
    torn = segment(0, [block(512), block(512)])
    torn["blocks"][1]["address"] = 4096
    assert "1 of 2 blocks of device 0 does not begin where the previous block ends" in notes_of(torn)


def test_segments_that_overlap() -> None:
    notes = notes_of(segment(0, [block(4096)]), segment(512, [block(512)]))
    assert "1 segment of device 0 begins inside another" in notes


def test_segments_of_a_device_without_a_trace() -> None:
    assert "segments of device 3, but traces only of devices 0 to 0" in notes_of(segment(0, [block(512)], device=3))


def test_blocks_out_of_order_are_put_in_order() -> None:
    mixed = segment(0, [block(512), block(1024)])
    mixed["blocks"].reverse()
    assert loaded([mixed]).device(0).layout.blocks.size.tolist() == [512, 1024]
