"""A file that was cut off gives all that is before the cut, and says what is missing."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import random
import zlib
from pathlib import Path
from typing import Any

import pytest

from oomscope.commands.common.errors import DONE, FAILED, run
from oomscope.errors import SnapshotError
from oomscope.model import Snapshot
from oomscope.reading import load
from tests.builders import block, entry, frame, segment, snapshot
from tests.reading.comparing import assert_same
from tests.reading.cut_files import WRITERS, assert_prefix, ends_of_entries, entries_before
from tests.said import said
from tests.shared import needs_shared, raw

A = 0x7F0000000000
FRAMES = [frame("forward", line) for line in range(5)]
EXACT = [name for name in WRITERS if name.startswith(("protocol", "torch")) and name != "protocol 0"]


def document(entries: int = 1100, **top: Any) -> dict[str, Any]:
    stacks = [FRAMES[:2], FRAMES[2:], FRAMES]
    blocks = [block(512, frames=stacks[row % 3]) for row in range(4)] + [block(512, "inactive")]
    trace = [entry("alloc", A + row * 512, 512, time_us=row, frames=stacks[row % 3]) for row in range(entries)]
    segments = [segment(A + (row << 30), [dict(item) for item in blocks], frames=FRAMES) for row in range(3)]
    return snapshot(segments, [trace, [dict(item) for item in trace[:3]]], release="2.12", **top)


def cut(data: bytes, size: int) -> Snapshot | None:
    """What is read of the first `size` bytes, None where that is nothing."""
    try:
        return load(io.BytesIO(data[:size]))
    except SnapshotError as error:
        told = str(error)
    assert "cut off" in told or size < 20, told
    return None


@pytest.mark.parametrize("form", WRITERS)
def test_what_is_read_is_the_beginning_of_the_whole(form: str) -> None:
    data = WRITERS[form](document())
    whole = load(io.BytesIO(data))
    assert whole.cut is None
    ends = ends_of_entries(data) if form in EXACT else None
    chance, read = random.Random(form), 0
    for size in [*range(1, len(data), len(data) // 12), *(chance.randrange(len(data)) for _ in range(12))]:
        part = cut(data, size)
        if part is None:
            continue
        if part.cut is None:  # of an archive, only what tells that it is whole is missing
            assert_same(part, whole)
            continue
        assert_prefix(part, whole)
        read += part.entries
        if ends is not None:
            assert part.entries == entries_before(ends, size)
    assert read > 0 or form == "bzip2"  # which writes one block, whole or not at all


def assert_every_cut(data: bytes) -> None:
    """Each longer part of `data` gives no less, and the whole gives all."""
    whole = load(io.BytesIO(data))
    entries = 0
    for size in range(1, len(data)):
        part = cut(data, size)
        if part is not None:
            assert_prefix(part, whole)
            assert part.entries >= entries
            entries = part.entries
    assert entries == whole.entries


@pytest.mark.parametrize("protocol", range(6))
def test_every_byte_of_a_small_file(protocol: int) -> None:
    data = pickle.dumps(document(3), protocol)
    assert_every_cut(data)


@pytest.mark.thorough
def test_every_byte_of_small_json() -> None:
    data = json.dumps(document(3)).encode()
    assert_every_cut(data)


def test_json_in_the_middle_of_a_character() -> None:
    data = json.dumps(document(3, comment="größer"), ensure_ascii=False).encode()
    part = load(io.BytesIO(data[: data.index("ö".encode()) + 1]))
    assert part.entries == 6
    assert part.cut is not None


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_of_a_cut_archive_all_that_comes_out_is_read(pack: Any) -> None:
    plain = pickle.dumps(document(3000), 4)
    packed = pack(plain)
    for part in range(1, 8):
        data = packed[: len(packed) * part // 8]
        unpacker = lzma.LZMADecompressor() if pack is lzma.compress else zlib.decompressobj(31)
        contents = unpacker.decompress(data)
        expected, found = cut(plain, len(contents)), cut(data, len(data))
        assert (expected is None) == (found is None)
        if expected is not None and found is not None:
            assert_same(found, expected)


def test_bzip2_gives_its_whole_blocks() -> None:
    plain = pickle.dumps(document(40_000), 2)
    packed = bz2.compress(plain, 1)
    found = load(io.BytesIO(packed[: len(packed) * 2 // 3]))
    assert found.cut is not None
    assert found.cut.size % 100_000 > 0
    assert found.entries > 10_000


def test_zeros_where_the_rest_should_be_are_a_cut() -> None:
    """A file system leaves them behind where a machine went down."""
    data = pickle.dumps(document(), 4)
    half = len(data) // 2
    part = load(io.BytesIO(data[:half] + bytes(half)))
    assert part.entries == entries_before(ends_of_entries(data), half)
    assert_prefix(part, load(io.BytesIO(data)))


def test_traces_of_the_devices_before_are_whole() -> None:
    data = pickle.dumps(document(2), 4)
    ends = ends_of_entries(data)
    part = load(io.BytesIO(data[: ends[3]]))
    assert [len(device.trace) for device in part.devices] == [2, 2]
    assert [device.cut for device in part.devices] == [False, True]
    assert part.cut is not None
    assert (part.cut.part, part.cut.device) == ("device_traces", 1)


def test_what_stands_behind_the_traces_is_missed_by_name() -> None:
    data = pickle.dumps(document(2), 4)
    part = load(io.BytesIO(data[: data.index(b"max_split_size")]))
    assert part.cut is not None
    assert (part.cut.segments_whole, part.cut.traces_whole) == (True, True)
    assert not any(device.cut for device in part.devices)
    assert "Segments and traces are whole" in said(part.notes)


def test_whole_segments_before_a_cut_among_them() -> None:
    data = pickle.dumps(document(2), 4)
    second = data.index((A + (1 << 30)).to_bytes(6, "little"))
    third = data.index((A + (2 << 30)).to_bytes(6, "little"))
    part = load(io.BytesIO(data[:third]))
    assert len(part.devices[0].layout.segments) == 2
    assert "All sums of memory are lower bounds" in said(part.notes)
    with pytest.raises(SnapshotError, match=r"cut off after .* before the end of its first segment"):
        load(io.BytesIO(data[: second - 60]))


def test_a_cut_file_of_another_kind_is_refused() -> None:
    for other in ({"model": [1] * 100, "b": 2}, [1] * 100, "text", {"a": {"segments": [1]}}):
        data = pickle.dumps(other, 4)
        with pytest.raises(SnapshotError, match=r"cut off|not a memory snapshot"):
            load(io.BytesIO(data[:-3]))


def test_a_bare_list_of_segments_cut_off() -> None:
    data = pickle.dumps(document()["segments"], 4)
    part = load(io.BytesIO(data[:-30]))
    assert len(part.devices[0].layout.segments) == 2
    assert part.cut is not None
    assert part.cut.part == "segments"


def test_commands_warn_once_and_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "oom.pickle"
    data = pickle.dumps(document(), 4)
    path.write_bytes(data[: len(data) * 2 // 3])
    for arguments in (["summary"], ["report", "-f", "md"], ["report", "-f", "json"]):
        assert run([arguments[0], str(path), *arguments[1:]]) == DONE
        out, err = capsys.readouterr()
        assert err.count("\n") == 1
        assert err.startswith("Warning: ")
        assert "cut off after" in err
    recording = json.loads(out)["snapshot"]["recording"]
    assert recording["cut"] is True
    assert any(code["code"] == "reading.cut" for code in recording["note_codes"])
    assert run(["whatif", str(path)]) == FAILED
    assert "cut off" in capsys.readouterr().err.splitlines()[0]


@needs_shared
@pytest.mark.parametrize("name", ["train_ok.expandable", "ring_wrapped", "compiled"])
def test_real_files(name: str) -> None:
    data, chance = raw(name), random.Random(name)
    whole, ends = load(io.BytesIO(data)), ends_of_entries(data)
    for _ in range(12):
        size = chance.randrange(len(data) // 20, len(data))
        part = cut(data, size)
        if part is not None:
            assert_prefix(part, whole)
            assert part.entries == entries_before(ends, size)
