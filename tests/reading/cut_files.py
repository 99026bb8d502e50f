"""Files cut off somewhere, and what a reader must then have of them."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import pickle
import pickletools
import struct
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import numpy as np

from oomscope.model import Device, Snapshot

COLUMNS = ("action", "address", "size", "stream", "time_us", "stack", "pool")


def ends_of_entries(data: bytes) -> list[int]:
    """Where in a pickle of protocol 1 and later each trace entry is complete, told by the instructions alone.

    An entry is what is put into a dict at once, and its first key is ``action``.
    """
    ends, marks, memo, last = [], [], {}, None
    for code, argument, place in pickletools.genops(data):
        name = code.name
        if name == "MARK":
            marks.append(None)
            continue
        if name == "MEMOIZE":
            memo[len(memo)] = last
            continue
        if name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = last
            continue
        if name == "FRAME":
            continue
        last = memo.get(argument) if "BINGET" in name else argument
        if name in ("SETITEMS", "APPENDS", "TUPLE", "LIST", "DICT"):
            if marks.pop() == "action" and name == "SETITEMS":
                ends.append(place + 1)
        elif marks and marks[-1] is None:
            marks[-1] = last if isinstance(last, str) else ""
    return ends


def entries_before(ends: list[int], size: int) -> int:
    """How many entries are complete in the first `size` bytes."""
    return bisect_right(ends, size)


def assert_prefix(part: Snapshot, whole: Snapshot) -> None:
    """What was read of a cut file is what stands at the beginning of the whole one."""
    assert part.cut is not None
    assert {device.index for device in part.devices} <= {device.index for device in whole.devices}
    for device in part.devices:
        assert_device_prefix(part, device, whole, whole.device(device.index))
    for key, value in (part.settings or {}).items():
        assert whole.settings is not None
        assert whole.settings[key] == value
    assert part.annotations == whole.annotations[: len(part.annotations)]


def assert_device_prefix(part: Snapshot, device: Device, whole: Snapshot, other: Device) -> None:
    """The same of one device."""
    assert part.cut is not None
    count = len(device.trace)
    for name in COLUMNS:
        if name == "time_us" and device.trace.timed != other.trace.timed:
            continue
        mine, theirs = getattr(device.trace, name), getattr(other.trace, name)[:count]
        if name == "stack":
            assert frames_of(part, mine) == frames_of(whole, theirs)
        elif name == "pool":
            assert [pool_of(part, number) for number in mine] == [pool_of(whole, number) for number in theirs]
        else:
            np.testing.assert_array_equal(mine, theirs, err_msg=name)
    assert count == len(other.trace) or device.cut
    if part.cut.segments_whole:
        assert segment_rows(part, device) == segment_rows(whole, other)
    else:
        assert set(segment_rows(part, device)) <= set(segment_rows(whole, other))


def frames_of(snapshot: Snapshot, stacks: Any) -> list[Any]:
    """The frames of each of `stacks`."""
    known = {number: tuple(snapshot.stacks[number]) for number in set(stacks.tolist())}
    return [known[number] for number in stacks.tolist()]


def pool_of(snapshot: Snapshot, number: int) -> Any:
    """The pool with a number; None where there is none."""
    return snapshot.pools[number] if number >= 0 else None


def segment_rows(snapshot: Snapshot, device: Device) -> list[tuple[Any, ...]]:
    """Each segment with its blocks, as values that can be compared."""
    segments, blocks = device.layout.segments, device.layout.blocks
    columns = ("address", "size", "requested_size", "state")
    values = list(
        zip(*(getattr(blocks, name).tolist() for name in columns), frames_of(snapshot, blocks.stack), strict=True)
    )
    rows = []
    for row in range(len(segments)):
        first, last = segments.first_block[row : row + 2]
        kind = (bool(segments.is_large[row]), bool(segments.is_expandable[row]), pool_of(snapshot, segments.pool[row]))
        rows.append(
            (
                int(segments.address[row]),
                int(segments.total_size[row]),
                int(segments.stream[row]),
                *kind,
                *values[first:last],
            )
        )
    return rows


def by_torch_cpp(document: Any) -> bytes:
    """A pickle as ``torch::jit::Pickler`` writes it: protocol 2, no batches, only texts remembered."""
    out, memo = [b"\x80\x02"], {}

    def write(value: Any) -> None:
        if isinstance(value, dict):
            out.append(b"}(")
            for key, item in value.items():
                write(key)
                write(item)
            out.append(b"u")
        elif isinstance(value, list):
            out.append(b"](")
            for item in value:
                write(item)
            out.append(b"e")
        elif isinstance(value, tuple):
            for item in value:
                write(item)
            out.append(b"\x86")
        elif isinstance(value, bool):
            out.append(b"\x88" if value else b"\x89")
        elif isinstance(value, int):
            small = -(1 << 31) <= value < 1 << 31
            out.append(
                b"J" + struct.pack("<i", value) if small else b"\x8a\x08" + struct.pack("<Q", value & (1 << 64) - 1)
            )
        elif isinstance(value, float):
            out.append(b"G" + struct.pack(">d", value))
        elif value is None:
            out.append(b"N")
        elif value in memo:
            out.append(b"j" + struct.pack("<I", memo[value]))
        else:
            text = value.encode()
            memo[value] = len(memo)
            out.append(b"X" + struct.pack("<I", len(text)) + text + b"r" + struct.pack("<I", memo[value]))

    write(document)
    return b"".join([*out, b"."])


def html(data: bytes) -> bytes:
    """The page of ``_memory_viz.py trace_plot`` around a pickle."""
    padded = data + bytes(-len(data) % 3)
    text = base64.b64encode(padded)
    return (
        b'<!DOCTYPE html><script>const local_files = [{"name": "snapshot.pickle", "base64": "' + text + b'"}]</script>'
    )


WRITERS: dict[str, Callable[[Any], bytes]] = {
    **{f"protocol {number}": lambda document, number=number: pickle.dumps(document, number) for number in range(6)},
    "torch's C++": by_torch_cpp,
    "JSON": lambda document: json.dumps(document).encode(),
    "HTML": lambda document: html(pickle.dumps(document, 4)),
    "gzip": lambda document: gzip.compress(pickle.dumps(document, 4), 1),
    "bzip2": lambda document: bz2.compress(pickle.dumps(document, 4), 1),
    "xz": lambda document: lzma.compress(pickle.dumps(document, 4), preset=0),
}
"""Every form in which a snapshot is handed on."""


def document_of(data: bytes) -> Any:
    """The plain containers in a pickle that we trust."""
    return pickle.load(io.BytesIO(data))
