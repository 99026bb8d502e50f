"""What the fuzzer tries: strategies of hypothesis that make files, by kind.

Each makes a `Case`: the bytes to read, and a file that is as it should be, whose time says what the bytes may take.
"""

from __future__ import annotations

import json
import lzma
import pickle
import struct
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from oomscope.resources import folder
from tests.builders import block, entry, frame, segment, snapshot
from tests.hostile.catalogue import CONTEXT, MARKUP, SURROGATES, A, base, short
from tests.reading.cut_files import WRITERS

MIB = 1 << 20
SMALL = 400_000
"""Real captures of up to so many bytes, unpacked, are changed: larger ones cost too much time a case."""


class Asked(NamedTuple):
    """What is done with a file."""

    form: str
    whatif: bool
    redact: bool


class Case(NamedTuple):
    """A file to try, and one of its kind that is as it should be."""

    data: bytes
    whole: bytes


asked = st.builds(Asked, st.sampled_from(["html", "md", "json", "text"]), st.booleans(), st.booleans())

# Bytes

BASES = [
    writer(document)
    for document in (base(), {**base(), "oomscope": CONTEXT}, snapshot([], [[entry("alloc", A, 512)]]))
    for form, writer in WRITERS.items()
    if form not in ("bzip2", "xz")
]
PIECES = [
    b"",
    b"\0",
    b".",
    b"(",
    b"t",
    b"Q",
    b"NQ",
    b"]",
    b"}",
    b"e",
    b"u",
    b"s",
    b"a",
    b"0",
    b"1",
    b"2",
    b"\x85",
    b"\x86",
    b"\x94",
    b"h\x00",
    b"h\x05",
    b"j\x01\0\0\0",
    b"r\xff\xff\xff\x7f",
    b"\x8c\xff",
    b"X\xff\xff\xff\xff",
    b"\x95" + b"\xff" * 8,
    b"\x8d" + b"\xff" * 8,
    b"\x8a\xff",
    b"\x8b\xff\xff\xff\x7f",
    b"cos\nsystem\n",
    b"R",
    b"b",
    b"\x81",
    b"\x92",
    b"\x93",
    b"I1" + b"0" * 999 + b"\n",
    b"G" + struct.pack(">d", float("nan")),
    b'"',
    b"\\ud800",
    b"[" * 50,
    b'{"a":' * 50,
    b"NaN",
    b"1e999",
    short(b"segments"),
    short(b"device_traces") + b"]\x94]\x94(}\x94(",
    b"ue]\x94]\x94(}\x94(",
]
edits = st.tuples(
    st.sampled_from(["insert", "overwrite", "delete", "repeat", "flip", "cut", "swap"]),
    st.floats(0, 1, exclude_max=True),
    st.integers(0, 40),
    st.sampled_from(PIECES) | st.binary(max_size=12),
)


def edited(data: bytes, changes: list[Any]) -> bytes:
    """`data` after each of `changes`."""
    for kind, share, count, piece in changes:
        at = int(share * max(len(data), 1))
        head, tail = data[:at], data[at:]
        if kind == "insert":
            data = head + piece + tail
        elif kind == "overwrite":
            data = head + piece + tail[len(piece) :]
        elif kind == "delete":
            data = head + tail[count:]
        elif kind == "repeat":
            data = head + tail[:count] * 3 + tail
        elif kind == "flip":
            data = head + bytes([tail[0] ^ (1 << count % 8)]) + tail[1:] if tail else data
        elif kind == "swap":
            data = head[:-count] + tail[:count] + head[len(head) - count :] + tail[count:] if count else data
        else:
            data = head
    return data


changed_bytes = st.builds(
    lambda data, changes: Case(edited(data, changes), data),
    st.sampled_from(BASES),
    st.lists(edits, min_size=1, max_size=6),
)


@cache
def captures() -> tuple[bytes, ...]:
    """The small ones among the real captures, unpacked."""
    folders = (folder("sample_snapshots"), Path(__file__).parents[1] / "captures")
    unpacked = [lzma.decompress(path.read_bytes()) for place in folders for path in sorted(place.glob("*.xz"))]
    return tuple(data for data in unpacked if len(data) <= SMALL)


changed_captures = st.deferred(
    lambda: st.builds(
        lambda data, changes: Case(edited(data, changes), data),
        st.sampled_from(captures()),
        st.lists(edits, min_size=1, max_size=3),
    )
)

soups = st.builds(
    lambda beginning, pieces: Case(beginning + b"".join(pieces), BASES[0]),
    st.sampled_from([b"\x80\x02", b"\x80\x04", b"\x80\x05", b"(", b"}", b"]"]),
    st.lists(st.sampled_from(PIECES), max_size=60),
)

# Documents

ODD = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        -1,
        1,
        511,
        1 << 31,
        1 << 50,
        1 << 62,
        (1 << 63) - 1,
        1 << 63,
        (1 << 64) - 1,
        1 << 64,
        -(1 << 63),
        10**1000,
        0.5,
        float("nan"),
        float("inf"),
        "",
        "a",
        MARKUP,
        SURROGATES,
        "x" * 5000,
        b"\xff",
        [],
        {},
        (),
        (0, 1),
        [None],
        {"a": 1},
        {1: 2},
        "oom",
        "alloc",
        "free_completed",
        "segment_unmap",
        "inactive",
        "small",
        A,
        A + 512,
    ]
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where in `value` something can be changed."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return ([path] if path else []) + [deeper for key, item in items for deeper in paths(item, (*path, key))]


def copied(value: Any) -> Any:
    """A deep copy that shares nothing, so that one change is one change."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


DOCUMENT = copied(
    {
        **base(),
        "oomscope": CONTEXT,
        "external_annotations": [
            {"stage": stage, "name": f"ProfilerStep#{row}", "device": 0, "time_us": row}
            for row in range(4)
            for stage in ("START", "END")
        ],
    }
)
PATHS = paths(DOCUMENT)


def changed(changes: list[tuple[str, tuple[Any, ...], Any]]) -> Any:
    """`DOCUMENT` with `changes` made; one whose place is gone is left out."""
    document = copied(DOCUMENT)
    for kind, path, odd in changes:
        parent = document
        try:
            for step in path[:-1]:
                parent = parent[step]
            if kind == "replace":
                parent[path[-1]] = copied(odd)
            elif kind == "delete":
                del parent[path[-1]]
            elif kind == "double":
                parent.insert(path[-1], copied(parent[path[-1]]))
            elif kind == "add":
                parent[path[-1]][str(odd)[:20]] = copied(odd)
        except (KeyError, IndexError, TypeError, AttributeError):
            continue
    return document


def written(document: Any, as_json: bool) -> bytes:
    """`document` as a file."""
    if as_json:
        return json.dumps(document, default=repr, skipkeys=True).encode()
    try:
        return pickle.dumps(document, 4)
    except UnicodeEncodeError:  # half a character, which pickle cannot write
        return pickle.dumps(document, 0)


WHOLE = {as_json: written(DOCUMENT, as_json) for as_json in (False, True)}

changed_documents = st.builds(
    lambda made, as_json: Case(written(changed(made), as_json), WHOLE[as_json]),
    st.lists(
        st.tuples(st.sampled_from(["replace", "replace", "delete", "double", "add"]), st.sampled_from(PATHS), ODD),
        min_size=1,
        max_size=8,
    ),
    st.booleans(),
)

# Histories that no allocator has

ACTIONS = (
    "alloc",
    "alloc",
    "alloc",
    "free_requested",
    "free_completed",
    "free",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "oom",
    "snapshot",
    "annotate",
    "new",
)
STACKS = [
    [
        frame(name, line, file),
        frame("main", 30 + line, "/workspace/train.py"),
        frame("<module>", 50, "/workspace/train.py"),
    ]
    for name, line, file in (
        ("forward", 3, "/workspace/model.py"),
        ("step", 9, "/venv/site-packages/torch/optim/adam.py"),
        ("backward", 4, "/venv/site-packages/torch/autograd/__init__.py"),
        ("collate", 7, "??"),
    )
]
sizes = st.sampled_from([0, 1, 512, 513, MIB, 2 * MIB, 20 * MIB, 1 << 40, 1 << 50])
addresses = st.integers(0, 24).map(lambda row: A + row * MIB // 2)
entries = st.builds(
    lambda action, address, size, stream, time_us, stack: entry(
        action, address, size, stream=stream, time_us=time_us, frames=stack
    ),
    st.sampled_from(ACTIONS),
    addresses,
    sizes,
    st.sampled_from([0, 0, 7, -1]),
    st.integers(-5, 10_000_000),
    st.none() | st.sampled_from(STACKS),
)
blocks = st.builds(
    lambda size, state, requested, stack: block(size, state, requested=requested, frames=stack),
    sizes,
    st.sampled_from(["active_allocated", "active_pending_free", "inactive", "odd"]),
    sizes,
    st.sampled_from(STACKS),
)
segments = st.builds(
    lambda address, held, stream, kind, pool, expandable, device: segment(
        address, held, stream=stream, kind=kind, pool=pool, expandable=expandable, device=device
    ),
    addresses,
    st.lists(blocks, max_size=5),
    st.sampled_from([0, 7]),
    st.sampled_from(["small", "large"]),
    st.sampled_from([(0, 0), (1, 0), (0, 3)]),
    st.booleans(),
    st.sampled_from([0, 0, 0, 1, -1, 5]),
)


def history(held: list[Any], traces: list[Any], share: float) -> Case:
    """A snapshot, cut off where `share` of it is less than all of it."""
    data = pickle.dumps(snapshot(held, traces, release="2.12"), 4)
    return Case(data[: int(len(data) * share)], data)


impossible_histories = st.builds(
    history,
    st.lists(segments, max_size=6),
    st.lists(st.lists(entries, max_size=60), max_size=3),
    st.floats(0.2, 1.6),
)

KINDS: dict[str, st.SearchStrategy[Case]] = {
    "bytes of containers changed": changed_bytes,
    "soups of instructions": soups,
    "documents changed": changed_documents,
    "histories that cannot be": impossible_histories,
    "real captures changed": changed_captures,
}
