"""Every layout that a release of torch writes, in every form it may come in."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import pickle
from typing import Any

import pytest

from oomscope.errors import SnapshotError
from oomscope.model import NO_STACK, Action, BlockState, Snapshot
from oomscope.reading import load
from tests.builders import RELEASES, block, entry, frame, loaded, pickled, segment, snapshot
from tests.reading.comparing import assert_same, rows
from tests.said import said

MIB = 1 << 20
INNER, OUTER = frame("forward"), frame("main", 9)

SCHEMAS = {
    "1.13": "1.13 or older", "2.0": "2.0", "2.1": "2.1", "2.2": "2.2", "2.4": "2.3-2.4", "2.7": "2.5-2.7",
    "2.8": "2.8", "2.9": "2.9", "2.10": "2.10-2.11", "2.12": "2.12-2.13", "2.14": "2.14-2.15", "2.15": "2.15",
}  # fmt: skip


def document(release: str = "2.10", **top: Any) -> Any:
    stack = [INNER, OUTER]
    blocks = [block(2 * MIB, requested=2 * MIB - 100, frames=stack), block(18 * MIB, "inactive", requested=7)]
    trace = [
        entry("segment_alloc", 0x7F00_0000_0000, 20 * MIB, frames=stack),
        entry("alloc", 0x7F00_0000_0000, 2 * MIB - 100, frames=stack),
        entry("oom", 5 * MIB, 40 * MIB, frames=[INNER]),
    ]
    return snapshot([segment(0x7F00_0000_0000, blocks)], [trace], release=release, **top)


@pytest.mark.parametrize("release", RELEASES)
def test_every_release_is_read_and_recognised(release: str) -> None:
    read = load(pickled(document(release)))
    assert read.schema == SCHEMAS[release]
    blocks = read.device(0).layout.blocks
    assert blocks.address.tolist() == [0x7F00_0000_0000, 0x7F00_0000_0000 + 2 * MIB]
    assert blocks.state.tolist() == [BlockState.ACTIVE_ALLOCATED, BlockState.INACTIVE]
    assert blocks.requested_size[0] == 2 * MIB - 100
    assert [level.name for level in read.stacks[blocks.stack[0]]] == ["forward", "main"]
    assert blocks.stack[1] == NO_STACK
    if release != "1.13":
        assert [row[0] for row in rows(read)] == [Action.SEGMENT_ALLOC, Action.ALLOC, Action.OOM]
        assert read.device(0).trace.timed == (release not in ("2.0", "2.1"))
        assert (read.device(0).trace.pool[0] == 0) == (release in ("2.12", "2.14", "2.15"))


@pytest.mark.parametrize("protocol", range(6))
def test_every_protocol_of_pickle_gives_the_same(protocol: int) -> None:
    assert_same(load(pickled(document(), protocol)), load(pickled(document())))


def twice(data: bytes) -> bytes:
    return bz2.compress(gzip.compress(data))


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, twice])
def test_compression_is_told_by_content(compress: Any) -> None:
    data = compress(pickle.dumps(document()))
    assert_same(load(io.BytesIO(data)), load(pickled(document())))


def test_zstd_is_read_in_frames_with_and_without_their_size() -> None:
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed (the extra [zstd])")
    data = pickle.dumps(document())
    one = zstandard.ZstdCompressor().compress(data)
    streaming = zstandard.ZstdCompressor().compressobj()
    several = zstandard.ZstdCompressor().compress(data[:500]) + streaming.compress(data[500:]) + streaming.flush()
    for compressed in (one, several):
        assert_same(load(io.BytesIO(compressed)), load(pickled(document())))
    with pytest.raises(SnapshotError, match="cut off"):
        load(io.BytesIO(one[:-20]))


def test_zstd_without_a_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    monkeypatch.setitem(__import__("sys").modules, "compression", None)
    with pytest.raises(SnapshotError, match=r"zstd.*pip install 'oomscope\[zstd\]'"):
        load(io.BytesIO(b"\x28\xb5\x2f\xfd" + bytes(100)))


def test_json_is_read_with_its_lists_for_pairs() -> None:
    written = snapshot([segment(4096, [block(512)], pool=(0, 3))], [[entry("alloc", 4096, 512, pool_id=(0, 3))]])
    read = load(io.BytesIO(json.dumps(written, indent=1).encode()))
    assert_same(read, load(pickled(written)))
    assert read.pools == ((0, 0), (0, 3))


def test_the_pickle_in_a_page_of_trace_plot_is_read() -> None:
    data = pickle.dumps(document(), 4)
    data += bytes(-len(data) % 3)
    page = b'<!DOCTYPE html><script>const local_files = [{"name": "snapshot.pickle", "base64": "%b"}]</script>'
    assert_same(load(io.BytesIO(page % base64.b64encode(data))), load(pickled(document())))


def test_addresses_beyond_63_bits_are_kept_however_they_are_written() -> None:
    high = 0xFFFF_8000_0000_0000
    xpu = segment(high, [block(512)])
    del xpu["segment_pool_id"]
    signed = segment(high - (1 << 64), [block(512)])
    from_python = loaded([xpu], [[entry("alloc", high, 512)]])
    from_cpp = loaded([signed], [[entry("alloc", high - (1 << 64), 512)]])
    assert_same(from_python, from_cpp)
    assert int(from_python.device(0).trace.address[0]) == high - (1 << 64)


def test_pinned_host_memory_stands_apart_from_the_devices() -> None:
    host = segment(4096, [block(8192)], device=-1, kind="small")
    read = loaded([], [[]], release="2.14", host_segments=[host], host_traces=[entry("alloc", 4096, 8192)])
    assert read.devices == ()
    assert read.host is not None
    assert (read.host.index, read.host.layout.reserved, len(read.host.trace)) == (-1, 8192, 1)


def test_a_profile_made_into_a_snapshot_is_read_as_what_it_is() -> None:
    profile = {
        "device_traces": [
            [{"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "frames": [], "category": "input"}], []
        ],
        "segments": [
            {"device": 0, "address": 4096, "total_size": 1024, "stream": 0,
             "blocks": [{"size": 512, "state": "active_allocated", "requested_size": 512, "frames": []},
                        {"size": 512, "state": "inactive"}]},
        ],
    }  # fmt: skip
    read = load(pickled(profile))
    assert read.schema == "torch.profiler, not a snapshot"
    assert read.device(0).layout.blocks.address.tolist() == [4096, 4608]
    assert "'category' in trace entries (1 time)" in said(read.notes)


def test_what_a_later_release_may_add_is_counted_and_survived() -> None:
    odd = entry("teleport", 0, 1, colour="red")
    piece = block(512, "active_borrowed")
    piece["owner"] = 1
    read = loaded([segment(0, [piece], kind="huge")], [[odd, odd]], version=3)
    assert read.device(0).trace.action.tolist() == [Action.OTHER] * 2
    assert read.device(0).layout.blocks.state.tolist() == [BlockState.OTHER]
    notes = said(read.notes)
    for known in (
        "'teleport' in the trace (2 times)",
        "'colour' in trace entries (2 times)",
        "'owner'",
        "'active_borrowed'",
        "'huge'",
        "'version'",
    ):
        assert known in notes


def test_both_names_of_the_pending_state_are_understood() -> None:
    for state in ("active_pending_free", "active_awaiting_free"):
        assert loaded([segment(0, [block(512, state)])]).device(0).layout.active == 512


def test_fields_of_frames_beyond_the_usual_are_kept_as_text() -> None:
    read = loaded([segment(0, [block(512, frames=[frame("f", fx_node_name="add", fx_node_op=3)])])])
    assert read.stacks.frames[0].extra == (("fx_node_name", "add"), ("fx_node_op", "3"))


def test_segments_come_by_device_and_address() -> None:
    read = loaded(
        [segment(8192, [block(512)]), segment(0, [block(512)], device=1), segment(4096, [block(1024)])], [[], []]
    )
    assert [device.index for device in read.devices] == [0, 1]
    assert read.device(0).layout.segments.address.tolist() == [4096, 8192]
    assert read.device(0).layout.blocks.size.tolist() == [1024, 512]
    assert read.device(0).layout.segments.first_block.tolist() == [0, 1, 2]


def test_equal_stacks_are_one_whatever_lists_they_stand_in() -> None:
    def stack() -> list[dict[str, Any]]:
        return [frame("f"), frame("g")]

    trace = [
        entry("alloc", 0, 512, frames=stack()),
        entry("alloc", 512, 512, frames=stack()),
        entry("alloc", 1024, 512),
    ]
    read = loaded([segment(0, [block(512, frames=stack()), block(512)])], [trace])
    assert read.device(0).trace.stack.tolist() == [0, 0, NO_STACK]
    assert read.device(0).layout.blocks.stack.tolist() == [0, NO_STACK]
    assert len(read.stacks) == 1


def test_texts_and_forward_stacks_are_kept_where_entries_have_them() -> None:
    trace = [entry("alloc", 0, 1), entry("alloc", 0, 1, user_metadata="warm-up", forward_frames=["a\n", "b\n"])]
    read = loaded([], [trace]).device(0).trace
    assert read.user_metadata is not None
    assert [read.texts[number] if number >= 0 else None for number in read.user_metadata] == [None, "warm-up"]
    assert read.forward_stacks == {1: ("a\n", "b\n")}


def test_a_trace_that_only_partly_tells_times_is_untimed_with_a_note() -> None:
    untimed = entry("alloc", 0, 1)
    del untimed["time_us"]
    read = loaded([], [[entry("alloc", 0, 1), untimed]])
    assert not read.device(0).trace.timed
    assert "1 entry without a time" in said(read.notes)


def test_the_dumps_own_key_is_the_context_if_it_is_plain() -> None:
    assert loaded(oomscope={"schema_version": 1, "steps": [{"name": "0"}]}).context == {
        "schema_version": 1,
        "steps": [{"name": "0"}],
    }
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    for odd in ([1], {"a": {1, 2}}, {1: "a"}, {"a": b"bytes"}, {"a": deep}):
        read = loaded(oomscope=odd)
        assert read.context is None
        assert "'oomscope'" in said(read.notes)


def test_an_empty_snapshot_is_a_snapshot() -> None:
    read: Snapshot = loaded()
    assert (read.devices, len(read.stacks), read.entries, read.notes) == ((), 0, 0, ())
