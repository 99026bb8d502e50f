"""What keeps stranded bytes: hand-made layouts whose answer is known."""

from __future__ import annotations

from typing import Any

from oomscope.analysis import analyze
from oomscope.analysis.memory.records import Pin
from tests import builders
from tests.builders import block, frame, loaded, segment

MIB = 1 << 20
A, B, C = (0x7F00_0000_0000 + at * (1 << 30) for at in range(3))


def made_in(name: str) -> list[builders.Dict]:
    return [frame(name, 1, f"/workspace/{name}.py")]


def held(size: int, name: str) -> builders.Dict:
    return block(size, frames=made_in(name))


def free(size: int) -> builders.Dict:
    return block(size, "inactive")


def pins(*segments: builders.Dict, **settings: Any) -> dict[str, Pin]:
    snapshot = loaded(segments, allocator_settings=builders.settings(**settings))
    return {pin.site.function if pin.site else "": pin for pin in analyze(snapshot, whatif=False).devices[0].pins}


def test_one_block_keeps_the_rest_of_its_segment() -> None:
    (pin,) = pins(segment(A, [held(2 * MIB, "a"), free(18 * MIB)])).values()
    assert (pin.stranded_bytes, pin.alone_bytes, pin.blocks, pin.segments) == (18 * MIB, 18 * MIB, 1, 1)
    assert (pin.live_bytes, pin.smallest, pin.largest) == (2 * MIB, 2 * MIB, 2 * MIB)


def test_sites_that_share_a_segment_keep_it_together_and_neither_alone() -> None:
    found = pins(
        segment(A, [held(2 * MIB, "a"), free(16 * MIB), held(2 * MIB, "b")]),
        segment(B, [held(3 * MIB, "a"), free(17 * MIB)]),
    )
    assert (found["a"].stranded_bytes, found["a"].alone_bytes, found["a"].segments) == (33 * MIB, 17 * MIB, 2)
    assert (found["b"].stranded_bytes, found["b"].alone_bytes, found["b"].segments) == (16 * MIB, 0, 1)
    assert list(found) == ["a", "b"], "what frees most alone comes first"
    assert [pin.together_bytes for pin in found.values()] == [17 * MIB, 33 * MIB], "with both gone all is free"


def test_the_next_site_is_the_one_that_completes_most() -> None:
    found = pins(
        segment(A, [held(2 * MIB, "a"), free(18 * MIB)]),
        segment(B, [held(2 * MIB, "a"), free(16 * MIB), held(2 * MIB, "b")]),
        segment(C, [held(10 * MIB, "c"), free(10 * MIB)]),
    )
    assert list(found) == ["a", "b", "c"], "b alone frees nothing, but after a it frees more than c"
    assert [pin.together_bytes for pin in found.values()] == [18 * MIB, 34 * MIB, 44 * MIB]


def test_several_blocks_of_one_site_keep_their_segment_once() -> None:
    found = pins(segment(A, [held(2 * MIB, "a"), free(8 * MIB), held(3 * MIB, "a"), free(7 * MIB)]))
    assert (found["a"].stranded_bytes, found["a"].blocks) == (15 * MIB, 2)
    assert (found["a"].smallest, found["a"].largest) == (2 * MIB, 3 * MIB)


def test_full_and_free_segments_and_private_pools_have_no_pins() -> None:
    assert not pins(
        segment(A, [held(20 * MIB, "a")]),
        segment(B, [free(20 * MIB)]),
        segment(C, [held(2 * MIB, "b"), free(18 * MIB)], pool=(1, 0)),
    )


def test_of_an_expandable_segment_only_the_pages_with_a_block_are_kept() -> None:
    # Pages of 20 MiB: a keeps 15 of the first, b 18 of the last; two pages between are free as a whole.
    found = pins(
        segment(A, [held(5 * MIB, "a"), free(73 * MIB), held(2 * MIB, "b")], expandable=True), expandable_segments=True
    )
    assert (found["a"].stranded_bytes, found["b"].stranded_bytes) == (15 * MIB, 18 * MIB)
    assert found["a"].alone_bytes == 15 * MIB


def test_a_block_over_several_pages_keeps_the_rest_of_its_first_and_last() -> None:
    found = pins(
        segment(A, [free(10 * MIB), held(55 * MIB, "a"), free(15 * MIB)], expandable=True), expandable_segments=True
    )
    assert (found["a"].stranded_bytes, found["a"].blocks, found["a"].segments) == (25 * MIB, 1, 2)
