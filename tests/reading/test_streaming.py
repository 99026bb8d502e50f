"""The trace taken as it is unpickled is the trace, for anything that `pickle.dump` may write."""

from __future__ import annotations

import io
import pickle
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oomscope.errors import UnsafePickleError
from oomscope.reading import load
from oomscope.reading.streaming import UnexpectedError
from tests.builders import block, entry, frame, segment, snapshot
from tests.reading.comparing import assert_same, rows
from tests.reading.ways import plain, streamed

FRAMES = [frame(name, line) for name in ("forward", "step", "device_traces") for line in (1, 2)]


def many(count: int, start: int = 0) -> list[dict[str, Any]]:
    stacks = [[FRAMES[row % 6], FRAMES[-1]] for row in range(7)]
    return [entry("alloc", (start + row) * 512, 512, time_us=row, frames=stacks[row % 7]) for row in range(count)]


@pytest.mark.parametrize(
    "counts", [(0,), (1,), (2,), (999,), (1000,), (1001,), (3000,), (0, 0), (0, 2500), (1001, 1, 0, 1000, 0)]
)
@pytest.mark.parametrize("protocol", [4, 5])
def test_traces_of_all_lengths_and_devices(counts: tuple[int, ...], protocol: int) -> None:
    data = pickle.dumps(snapshot([], [many(count) for count in counts]), protocol)
    read = streamed(data)
    assert_same(read, plain(data))
    assert [device.index for device in read.devices] == [index for index, count in enumerate(counts) if count]


def pure_python(document: Any, frame_size: int) -> bytes:
    """Pickled with frames so small that their boundaries fall everywhere."""
    file = io.BytesIO()
    pickler = pickle._Pickler(file, 4)
    pickler.framer._FRAME_SIZE_TARGET = frame_size
    pickler.framer._FRAME_SIZE_MIN = 0
    pickler.dump(document)
    return file.getvalue()


@pytest.mark.parametrize("frame_size", range(1, 120, 3))
def test_boundaries_of_frames_fall_where_they_like(frame_size: int) -> None:
    shared = [FRAMES[0]]
    document = snapshot(
        [segment(0, [block(512, frames=shared)])],
        [[], [entry("alloc", 0, 512, frames=shared)], many(3), [], many(2)],
    )
    data = pure_python(document, frame_size)
    assert_same(load(io.BytesIO(data)), plain(data))


entries = st.builds(
    lambda action, address, size, frames, extra: entry(action, address, size, frames=frames, **extra),
    st.sampled_from(["alloc", "free_requested", "free_completed", "segment_map", "oom", "snapshot", "new_action"]),
    st.integers(-(1 << 63), (1 << 64) - 1),
    st.integers(0, 1 << 40),
    st.none() | st.lists(st.sampled_from(FRAMES), max_size=4),
    st.dictionaries(
        st.sampled_from(["compile_context", "user_metadata", "note"]), st.sampled_from(["", "N/A", "a", "]\x94(}\x94("])
    ),
)
traces = st.lists(st.lists(entries, max_size=6), max_size=4)


def shuffled(document: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    return {key: document[key] for key in keys}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    traces,
    st.lists(st.lists(st.sampled_from(FRAMES), max_size=3), max_size=4),
    st.permutations(["segments", "device_traces", "allocator_settings", "external_annotations"]),
    st.sampled_from(["2.0", "2.2", "2.8", "2.10", "2.12"]),
    st.integers(1, 300),
)
def test_both_ways_agree_and_keep_what_was_written(
    written: list[list[dict[str, Any]]], stacks: list[list[dict[str, Any]]], keys: list[str], release: str, size: int
) -> None:
    blocks = [block(512, frames=stack) for stack in stacks]
    document = snapshot([segment(0, blocks)] if blocks else [], written, release=release)
    document = shuffled(document, [key for key in keys if key in document])
    # The same objects where torch shares them: a trace's stack is a block's.
    for trace in written:
        for item, stack in zip(trace, stacks, strict=False):
            item["frames"] = stack
    for data in (pickle.dumps(document, 4), pure_python(document, size)):
        read = load(io.BytesIO(data))
        assert_same(read, plain(data))
    for index, trace in enumerate(written):
        if trace:
            expected = [(item["size"], tuple(f["name"] for f in item.get("frames") or [])) for item in trace]
            assert [(row[2], row[4]) for row in rows(read, index)] == expected


def test_one_dict_in_many_places_is_many_entries() -> None:
    data = pickle.dumps(snapshot([], [[entry("alloc", 0, 512, frames=[FRAMES[0]])] * 2500]))
    with pytest.raises(UnexpectedError):
        streamed(data)
    read = load(io.BytesIO(data))
    assert_same(read, plain(data))
    assert read.entries == 2500


def test_one_list_as_the_trace_of_two_devices() -> None:
    trace = many(1500)
    document = snapshot([], [])
    document["device_traces"] = [trace, trace]
    data = pickle.dumps(document)
    assert_same(load(io.BytesIO(data)), plain(data))


def test_texts_that_look_like_the_beginning_of_a_trace_are_left_alone() -> None:
    lookalike = pickle.dumps({"device_traces": [[{"a": 1, "b": 2}]]}, 4)[13:].decode("latin-1")
    document = snapshot([], [many(1200)])
    document = {
        "comment": lookalike,
        "more": b"ue]\x94(}\x94(",
        "device_traces": document.pop("device_traces"),
        **document,
    }
    data = pickle.dumps(document, 4)
    assert_same(load(io.BytesIO(data)), plain(data))


def test_a_list_of_segments_alone_has_nothing_to_take() -> None:
    data = pickle.dumps(snapshot([segment(0, [block(512)])], release="2.10")["segments"])
    assert_same(streamed(data), plain(data))


def trace_pickle(opening: bytes) -> bytes:
    """A pickle whose trace is opened by `opening`, framed, with one entry after it."""
    one = b"}\x94(\x8c\x06action\x94\x8c\x05alloc\x94\x8c\x04addr\x94K\x00\x8c\x04size\x94K\x01\x8c\x06stream\x94K\x00u"
    body = b"}\x94\x8c\x0ddevice_traces\x94]\x94" + opening + b"\x94(" + one + one + b"eas."
    return b"\x80\x04\x95" + len(body).to_bytes(8, "little") + body


def test_the_hand_made_pickle_is_sound() -> None:
    assert streamed(trace_pickle(b"]")).entries == 2


def test_a_file_that_asks_for_the_collector_itself_is_refused() -> None:
    for opening in (b"NQ", b"K\x00Q"):
        with pytest.raises(UnexpectedError):
            streamed(trace_pickle(opening))
        with pytest.raises(UnsafePickleError, match="nothing was run"):
            load(io.BytesIO(trace_pickle(opening)))


def test_a_file_that_asks_beside_its_own_trace_is_refused() -> None:
    good = trace_pickle(b"]")[11:]
    for place in (1, len(good) - 1):
        body = good[:place] + b"NQ0" + good[place:]
        data = b"\x80\x04\x95" + len(body).to_bytes(8, "little") + body
        with pytest.raises(UnsafePickleError, match="nothing was run"):
            load(io.BytesIO(data))


def test_a_file_that_fills_the_collector_with_attributes_changes_nothing() -> None:
    # BUILD on what stands where the trace should be: on a list it fails, on a collector it must fail as well.
    opening = b"]\x94N}\x94\x8c\x07builderK\x00s\x86b"
    body = trace_pickle(b"]")[11:].replace(b"]\x94(}", opening + b"(}", 1)
    data = b"\x80\x04\x95" + len(body).to_bytes(8, "little") + body
    with pytest.raises(UnexpectedError):
        streamed(data)
    with pytest.raises(UnsafePickleError, match="BUILD"):
        load(io.BytesIO(data))


def shared_texts(count: int) -> bytes:
    """Entries whose texts are one object, as after a snapshot was read, changed and written again."""
    rows = [entry("alloc", row * 512, 512, time_us=row, frames=[FRAMES[row % 6]]) for row in range(count)]
    for row, item in enumerate(rows):
        item["compile_context"] = "N/A" if row % 3 else rows[row // 2].get("compile_context", "N/A")
        item["user_metadata"] = ""
    return pickle.dumps(snapshot([], [rows]))


def test_texts_that_entries_share_are_texts() -> None:
    data = shared_texts(5000)
    assert_same(streamed(data), plain(data))


def test_entries_of_many_shapes_are_read_in_order() -> None:
    rows = [
        entry("alloc" if row % 5 else "free_requested", (1 << (row % 63)) + row, 1 << (row % 40), time_us=row * row)
        for row in range(6000)
    ]
    for row, item in enumerate(rows):
        if row % 7 == 0:
            item["note"] = row
        item["frames"] = [FRAMES[row % 6]] * (row % 4)
    data = pickle.dumps(snapshot([], [rows, rows[:3000:2]]))
    assert_same(load(io.BytesIO(data)), plain(data))


def test_a_stack_of_a_trace_is_that_of_a_block_that_comes_later() -> None:
    rows = [entry("alloc", row * 512, 512, time_us=row, frames=[FRAMES[row % 6], FRAMES[0]]) for row in range(3000)]
    blocks = [block(512, frames=rows[row]["frames"]) for row in (5, 1500, 2999)]
    document = snapshot([segment(0, blocks)], [rows])
    data = pickle.dumps(shuffled(document, ["device_traces", *(key for key in document if key != "device_traces")]))
    assert_same(streamed(data), plain(data))


def test_an_entry_that_is_referred_to_from_elsewhere_is_read_the_plain_way() -> None:
    rows = [entry("alloc", row * 512, 512, time_us=row, frames=[FRAMES[row % 6]]) for row in range(3000)]
    data = pickle.dumps({**snapshot([], [rows]), "favourite": rows[1500]})
    with pytest.raises(UnexpectedError):
        streamed(data)
    assert_same(load(io.BytesIO(data)), plain(data))
