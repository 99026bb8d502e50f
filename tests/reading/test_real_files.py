"""Files that torch wrote, against what torch knew and against a plain walk through the pickle."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from oomscope.model import Action, BlockState, Device, Snapshot
from oomscope.reading import load
from tests.reading.comparing import assert_same
from tests.reading.ways import plain, streamed
from tests.said import said
from tests.shared import captures, needs_shared, packed, public, raw, shared_snapshot, truth, unpacked

pytestmark = needs_shared

PUBLIC_LAYOUTS = {
    "Charran78__DocuBox__dump_snapshot.pickle": "2.5-2.8",
    "Da1sypetals__SnapViewer__assets__memory.pickle": "2.8",
    "JasperSolt__EoR_NN__snapshot.pickle": "2.2",
    "LfieLike__SketchKV2__my_snapshot.pickle": "2.3-2.4",
    "MAGMA27__assignment2-systems__memory_snapshot.pickle": "2.10-2.11",
    "Muduard__LayoutEditing__memory_snapshot.pkl": "2.1+, segments only",
    "NiuHuangxiaozi__assignment2-systems__cs336_systems__profile_memory__forward_memory_snapshot_100.pickle": "2.5-2.7",
    "NiuHuangxiaozi__assignment2-systems__cs336_systems__profile_memory__forward_memory_snapshot_150.pickle": "2.5-2.7",
    "Wedsonlin__assignment2-systems__results__medium_128_training_memory_snapshot.pickle": "2.10-2.11",
    "Yiyi-philosophy__LLM-inference__oom_snapshot.pickle": "2.0",
    "ZijianDu__Attention__memory.pickle": "2.1-2.2",
    "codeasier__MemSnapDump__tests__test_data__snapshot_1768383987920985470.pkl": "2.1",
    "codeasier__MemSnapDump__tests__test_data__snapshot_expandable.pkl": "2.1",
    "cranberrii__ftcourse__memory_snapshot.pickle": "2.1",
    "drisspg__transformer_nuggets__test__data__mini_snapshot.pickle": "2.10-2.11",
    "kkaitlyn111__cs336-a2-systems__memory_files__memory_ctx128_fullstep_.pickle": "2.5-2.7",
    "notHanmin__assignment2-systems__memory_snapshot.pickle": "2.5-2.7",
}


def the_device(snapshot: Snapshot) -> Device:
    return max(snapshot.devices, key=lambda device: device.layout.reserved)


@pytest.mark.parametrize("name", captures())
def test_the_layout_sums_to_what_torch_counted_byte_for_byte(name: str) -> None:
    snapshot, stats = shared_snapshot(name), truth(name)["stats"]
    layout = the_device(snapshot).layout
    requested = layout.blocks.requested_size[layout.blocks.is_active].sum()
    assert layout.reserved == stats["reserved_bytes.all.current"]
    assert layout.allocated == stats["allocated_bytes.all.current"]
    assert layout.active == stats["active_bytes.all.current"]
    assert requested == stats["requested_bytes.all.current"]
    assert snapshot.notes == ()


@pytest.mark.parametrize("name", [*captures(), *public()])
def test_both_ways_of_reading_give_the_same_columns(name: str) -> None:
    assert_same(streamed(raw(name)), plain(raw(name)))


@pytest.mark.parametrize("name", [*captures(), *public()])
def test_every_entry_block_and_stack_is_the_one_in_the_pickle(name: str) -> None:
    document = pickle.loads(raw(name))
    snapshot = shared_snapshot(name)
    segments = document["segments"] if isinstance(document, dict) else document
    traces = document["device_traces"] if isinstance(document, dict) else []
    for device in snapshot.devices:
        check_trace(snapshot, device, traces[device.index] if traces else [])
        own = sorted((s for s in segments if s["device"] == device.index), key=lambda s: s["address"])
        check_layout(snapshot, device, own)


def names(frames: list[dict[str, Any]] | None) -> list[tuple[str, int, str]]:
    return [(frame["filename"], frame["line"], frame["name"]) for frame in frames or []]


def check_trace(snapshot: Snapshot, device: Device, entries: list[dict[str, Any]]) -> None:
    trace = device.trace
    assert [Action(action).name.lower() for action in trace.action] == [entry["action"] for entry in entries]
    assert trace.address.tolist() == [entry.get("addr", entry.get("device_free")) for entry in entries]
    assert trace.size.tolist() == [entry["size"] for entry in entries]
    assert trace.stream.tolist() == [entry["stream"] for entry in entries]
    assert trace.time_us.tolist() == [entry.get("time_us", 0) for entry in entries]
    for stack, entry in zip(trace.stack, entries, strict=True):
        assert [frame[:3] for frame in snapshot.stacks[stack]] == names(entry.get("frames"))


def check_layout(snapshot: Snapshot, device: Device, segments: list[dict[str, Any]]) -> None:
    rows, columns = device.layout.segments, device.layout.blocks
    assert rows.address.tolist() == [segment["address"] for segment in segments]
    assert rows.total_size.tolist() == [segment["total_size"] for segment in segments]
    assert rows.is_large.tolist() == [segment["segment_type"] == "large" for segment in segments]
    blocks = [block for segment in segments for block in segment["blocks"]]
    assert columns.size.tolist() == [block["size"] for block in blocks]
    assert [BlockState(state).name.lower() for state in columns.state] == [block["state"] for block in blocks]
    assert np.diff(rows.first_block).tolist() == [len(segment["blocks"]) for segment in segments]
    for row, block in enumerate(blocks):
        if "history" in block:
            block = {"address": block["history"][0]["addr"], **block, "frames": block["history"][0].get("frames")}
        if columns.state[row] != BlockState.INACTIVE:
            assert columns.address[row] == block["address"]
            assert [frame[:3] for frame in snapshot.stacks[columns.stack[row]]] == names(block["frames"])


@pytest.mark.parametrize("name", [name for name in public() if name.removeprefix("public/") in PUBLIC_LAYOUTS])
def test_the_layout_of_public_files_is_recognised(name: str) -> None:
    assert shared_snapshot(name).schema == PUBLIC_LAYOUTS[name.removeprefix("public/")]


def test_a_made_up_file_is_read_and_its_contradictions_are_named() -> None:
    snapshot = shared_snapshot("public/Da1sypetals__SnapViewer__assets__memory.pickle")
    notes = said(snapshot.notes)
    for key in ("total_size", "allocated_size", "active_size", "requested_size"):
        assert f"5 of 5 segments of device 0: {key} contradicts the blocks" in notes
    assert snapshot.device(0).layout.reserved == 250 << 20


def test_compressed_files_are_read_as_they_are() -> None:
    assert_same(load(packed("ddp.rank1")), load(unpacked("ddp.rank1")))


def test_two_ranks_keep_their_device_numbers() -> None:
    assert [device.index for device in shared_snapshot("ddp.rank1").devices] == [1]


def test_graph_pools_are_numbered() -> None:
    snapshot = shared_snapshot("oom_cuda_graphs")
    assert snapshot.pools[0] == (0, 0)
    assert sorted(snapshot.pools) == [(number, 0) for number in range(8)]


def test_compile_contexts_are_kept() -> None:
    trace = shared_snapshot("compiled").device(0).trace
    assert trace.compile_context is not None
    assert trace.user_metadata is None
    assert {trace.texts[number] for number in set(trace.compile_context.tolist()) - {-1}} == set(trace.texts)
    assert any("Torch-Compiled Region" in text for text in trace.texts)


def test_annotations_are_in_the_order_of_the_file() -> None:
    written = pickle.loads(raw("train_ok"))["external_annotations"]
    assert [tuple(annotation) for annotation in shared_snapshot("train_ok").annotations] == [
        (item["stage"], item["name"], item["device"], item["time_us"]) for item in written
    ]
