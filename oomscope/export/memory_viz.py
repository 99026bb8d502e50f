"""A snapshot in the plain containers that torch writes, for memory_viz and every other tool that reads those.

It is slim: each frame and each stack stands in it once, and only what viewers and oomscope read is there. Pinned host
memory, frames of the forward pass and further fields of frames are not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from oomscope.export.pickled import PickleWriter
from oomscope.model import Action, BlockState, Device, Segments, Snapshot, StackTable, Trace

_UNSIGNED = (1 << 64) - 1
_STATES = {
    BlockState.INACTIVE: "inactive",
    BlockState.ACTIVE_ALLOCATED: "active_allocated",
    BlockState.ACTIVE_PENDING_FREE: "active_pending_free",
}
_TRACES = "device_traces"
_BATCH = 1000
_PART = 50_000
_TEXTS = {"compile_context": (2, 8), "user_metadata": (2, 10)}
"""Fields of entries by the first release that wrote them: by such marks a reader knows the release."""


def to_pickle(snapshot: Snapshot) -> bytes:
    """`snapshot` as ``torch.cuda.memory._dump_snapshot`` would write it."""
    return b"".join(pickled(snapshot))


def pickled(snapshot: Snapshot) -> Iterator[bytes]:
    """The same in pieces of a thousand entries."""
    frames = _frames(snapshot.stacks)
    return PickleWriter().document(_without_entries(snapshot, frames), _TRACES, _traces(snapshot, frames))


def to_json(snapshot: Snapshot) -> str:
    """The same containers as JSON, which `oomscope.load` reads back."""
    return b"".join(as_json(snapshot)).decode()


def as_json(snapshot: Snapshot) -> Iterator[bytes]:
    """The same in pieces of a thousand entries."""
    frames = _frames(snapshot.stacks)
    texts = {id(stack): json.dumps(stack) for stack in frames}
    opened = "{"
    for key, value in _without_entries(snapshot, frames).items():
        yield f"{opened}{json.dumps(key)}: ".encode()
        opened = ", "
        if key != _TRACES:
            yield json.dumps(value).encode()
            continue
        for number, entries in enumerate(_traces(snapshot, frames)):
            yield b", [" if number else b"[["
            between = ""
            while batch := list(islice(entries, _BATCH)):
                yield (between + ", ".join(_entry_text(entry, texts) for entry in batch)).encode()
                between = ", "
            yield b"]"
        yield b"]"
    yield b"}\n"


def _entry_text(entry: dict[str, Any], stacks: dict[int, str]) -> str:
    """An entry as JSON; a stack is turned into text once, however many entries share it."""
    stack = stacks[id(entry.pop("frames"))]
    return f'{json.dumps(entry)[:-1]}, "frames": {stack}}}'


def as_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    """`snapshot` as a dict of ``segments``, ``device_traces``, ``allocator_settings`` and ``external_annotations``.

    A stack stands in it once, however many entries share it, as in torch's own files.
    """
    frames = _frames(snapshot.stacks)
    plain = _without_entries(snapshot, frames)
    return {**plain, _TRACES: [list(entries) for entries in _traces(snapshot, frames)]}


def _without_entries(snapshot: Snapshot, frames: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """All of a snapshot but its traces, for which there is an empty list."""
    release = _release(snapshot)
    plain: dict[str, Any] = {
        "segments": [segment for device in snapshot.devices for segment in _segments(device, snapshot, frames)],
        _TRACES: [],
    }
    if snapshot.settings is not None:
        plain["allocator_settings"] = dict(snapshot.settings)
    if snapshot.annotations or release >= (2, 5):
        plain["external_annotations"] = [annotation._asdict() for annotation in snapshot.annotations]
    if release >= (2, 14):
        plain |= {"host_segments": [], "host_traces": []}
    if snapshot.ring_entries is not None:
        plain["trace_alloc_max_entries"] = snapshot.ring_entries
    return plain if snapshot.context is None else {**plain, "oomscope": snapshot.context}


def _traces(snapshot: Snapshot, frames: list[list[dict[str, Any]]]) -> Iterator[Iterator[dict[str, Any]]]:
    """The entries of each device from 0 on; none for those that the snapshot does not know."""
    known = {device.index: device.trace for device in snapshot.devices}
    for index in range(1 + max(known, default=0)):
        yield _entries(known[index], snapshot, frames) if index in known else iter(())


def _release(snapshot: Snapshot) -> tuple[int, int]:
    """The first release that writes the layout of `snapshot`; the newest marks count where none is known."""
    found = re.match(r"(\d+)\.(\d+)", snapshot.schema)
    return (int(found[1]), int(found[2])) if found else (2, 10)


def _frames(stacks: StackTable) -> list[list[dict[str, Any]]]:
    """Each stack as torch writes it; the last one, which `NO_STACK` names, is empty."""
    single = [{"filename": frame.filename, "line": frame.line, "name": frame.name} for frame in stacks.frames]
    members, offsets = stacks.members.tolist(), stacks.offsets.tolist()
    listed = [[single[member] for member in members[offsets[at] : offsets[at + 1]]] for at in range(len(stacks))]
    return [*listed, []]


def _segments(device: Device, snapshot: Snapshot, frames: list[list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    segments: Segments = device.layout.segments
    blocks = list(_blocks(device, frames))
    first = segments.first_block.tolist()
    for row in range(len(segments)):
        mine = blocks[first[row] : first[row + 1]]
        active = [block for block in mine if block["state"] != "inactive"]
        yield {
            "device": device.index,
            "address": int(segments.address[row]) & _UNSIGNED,
            "total_size": int(segments.total_size[row]),
            "allocated_size": sum(block["size"] for block in mine if block["state"] == "active_allocated"),
            "active_size": sum(block["size"] for block in active),
            "requested_size": sum(max(block["requested_size"], 0) for block in active),
            "stream": int(segments.stream[row]),
            "segment_type": "large" if segments.is_large[row] else "small",
            "segment_pool_id": snapshot.pools[int(segments.pool[row])],
            "is_expandable": bool(segments.is_expandable[row]),
            "frames": frames[int(segments.stack[row])],
            "blocks": mine,
        }


def _blocks(device: Device, frames: list[list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    blocks = device.layout.blocks
    columns = (blocks.address, blocks.size, blocks.requested_size, blocks.state, blocks.stack)
    for address, size, requested, state, stack in zip(*(column.tolist() for column in columns), strict=True):
        yield {
            "address": address & _UNSIGNED,
            "size": size,
            "requested_size": requested,
            "state": _STATES.get(state, "unknown"),
            "frames": frames[stack],
        }


def _entries(trace: Trace, snapshot: Snapshot, frames: list[list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    names = {int(action): action.name.lower() for action in Action}
    columns = (trace.action, trace.address, trace.size, trace.stream, trace.time_us, trace.stack, trace.pool)
    texts = _texts(trace)
    last, release = len(trace) - 1, _release(snapshot)
    for row, (action, address, size, stream, time, stack, pool) in enumerate(_rows(columns)):
        entry: dict[str, Any] = {"action": names[action]}
        entry["device_free" if action == Action.OOM else "addr"] = address & _UNSIGNED
        entry |= {"size": size, "stream": stream, "frames": frames[stack]}
        if trace.timed:
            entry["time_us"] = time
        if pool >= 0:
            entry["pool_id"] = snapshot.pools[pool]
        if row in texts:
            entry |= texts[row]
        if row == last:
            entry = {**{key: "" for key, first in _TEXTS.items() if release >= first}, **entry}
        yield entry


def _rows(columns: tuple[npt.NDArray[np.integer], ...]) -> Iterator[tuple[int, ...]]:
    """Rows as Python's numbers, which are many times as large as the columns, a part at a time."""
    for begin in range(0, len(columns[0]), _PART):
        yield from zip(*(column[begin : begin + _PART].tolist() for column in columns), strict=True)


def _texts(trace: Trace) -> dict[int, dict[str, str]]:
    """What the few entries that say something say."""
    found: dict[int, dict[str, str]] = {}
    for name in _TEXTS:
        column = getattr(trace, name)
        for row in [] if column is None else (column >= 0).nonzero()[0].tolist():
            found.setdefault(row, {})[name] = trace.texts[int(column[row])]
    return found
