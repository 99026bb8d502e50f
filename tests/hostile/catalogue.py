"""Files made to harm: each is a few bytes that ask for code, memory, time or a broken page.

Every one of them must end in a report or in one clear sentence, within bounds of time and memory.
"""

from __future__ import annotations

import bz2
import copy
import gzip
import io
import json
import lzma
import pickle
import struct
from collections.abc import Iterator
from typing import Any

from tests.builders import block, entry, frame, segment, snapshot

A = 0x7F0000000000
MIB = 1 << 20
MARKUP = '"><script>alert(1)</script><img src=x onerror=alert(1)>]]>${{7*7}}\x1b[31m\u202e\0'
SURROGATES = "half \ud800 and \udfff"


def base() -> dict[str, Any]:
    """A small snapshot that is as it should be."""
    stack = [frame("forward", 3), frame("main", 9, "/workspace/train.py")]
    trace = [entry("segment_alloc", A, 20 * MIB, frames=stack)]
    trace += [entry("alloc", A + row * 2 * MIB, 2 * MIB, frames=stack, time_us=row) for row in range(8)]
    trace += [entry("free_requested", A, 2 * MIB, frames=stack), entry("free_completed", A, 2 * MIB, frames=stack)]
    trace.append(entry("oom", 5 * MIB, 64 * MIB, frames=stack))
    blocks = [block(2 * MIB, "inactive"), *(block(2 * MIB, frames=stack) for _ in range(7)), block(6 * MIB, "inactive")]
    return snapshot([segment(A, blocks, frames=stack)], [trace])


def short(text: bytes) -> bytes:
    """SHORT_BINUNICODE."""
    return b"\x8c" + bytes([len(text)]) + text


def top(key: bytes, value: bytes, protocol: int = 4) -> bytes:
    """A snapshot whose `key` is the instructions in `value`."""
    return b"\x80" + bytes([protocol]) + b"}" + b"(" + short(b"segments") + b"]" + short(key) + value + b"u."


def framed(body: bytes) -> bytes:
    """`body` as the one frame of a pickle of protocol 4."""
    return b"\x80\x04\x95" + struct.pack("<Q", len(body)) + body


def attacks(*, heavy: bool = True) -> Iterator[tuple[str, bytes]]:
    """Every attack on the reader itself, by name; the heavy ones take seconds. `documents` are those on the rest."""
    yield from _code()
    yield from _memory()
    yield from _depth(1_000_000 if heavy else 200_000)
    yield from _hashes()
    if heavy:
        yield from _compressed()
    yield from _text_formats()


def _code() -> Iterator[tuple[str, bytes]]:
    call = b"(S'touch /tmp/oomscope-was-here'\ntR."
    yield "GLOBAL", b"cos\nsystem\n" + call
    yield "GLOBAL in a snapshot", top(b"device_traces", b"cos\nsystem\n" + short(b"true") + b"\x85R", 2)
    yield "STACK_GLOBAL", b"\x80\x04" + short(b"os") + short(b"system") + b"\x93" + short(b"true") + b"\x85R."
    yield "INST", b"(S'true'\nios\nsystem\n."
    yield "OBJ", b"(cos\nsystem\nS'true'\no."
    yield "NEWOBJ", b"\x80\x02cbuiltins\nobject\n)\x81."
    yield "NEWOBJ_EX", b"\x80\x04" + short(b"builtins") + short(b"object") + b"\x93)}\x92."
    yield "BUILD", b"\x80\x02}}b."
    for name, code in (("EXT1", b"\x82\x01"), ("EXT2", b"\x83\x01\x01"), ("EXT4", b"\x84\x01\x01\x01\x01")):
        yield name, b"\x80\x02" + code + b"."
    yield "PERSID", b"Pfile:///etc/passwd\n."
    yield "BINPERSID", b"\x80\x02U\x04fileQ."
    yield "BINPERSID with None, as the reader itself asks", framed(top(b"device_traces", b"]\x94NQa")[2:])
    yield "NEXT_BUFFER", b"\x80\x05\x97."
    yield "READONLY_BUFFER", b"\x80\x05\x96\x01\0\0\0\0\0\0\0a\x98."
    yield "REDUCE of a text", b"\x80\x02U\x01a)R."


def _memory() -> Iterator[tuple[str, bytes]]:
    yield "LONG_BINPUT with a huge index", b"\x80\x02}r\xff\xff\xff\x7f."
    yield "LONG_BINPUT in a snapshot", top(b"device_traces", b"]r\xff\xff\xff\x7f")
    yield "LONG_BINPUT in a frame", framed(top(b"device_traces", b"]r\xff\xff\xff\x7f")[2:])
    yield "PUT with a huge index", b"(dp2147483647\n."
    yield "PUT with an absurd index", b"(dp99999999999999999\n."
    sizes = {"a gigabyte": 1 << 30, "a terabyte": 1 << 40, "2**63 - 1": (1 << 63) - 1, "2**64 - 1": (1 << 64) - 1}
    for words, size in sizes.items():
        for name, code in (("BINUNICODE8", 0x8D), ("BINBYTES8", 0x8E), ("BYTEARRAY8", 0x96), ("FRAME", 0x95)):
            yield f"{name} of {words}", b"\x80\x05" + bytes([code]) + struct.pack("<Q", size) + b"abc"
    for name, code in (("BINUNICODE", b"X"), ("BINBYTES", b"B"), ("BINSTRING", b"T"), ("LONG4", b"\x8b")):
        yield f"{name} of 2 GB", b"\x80\x03" + code + b"\xff\xff\xff\x7f" + b"abc"
    yield "BINSTRING of a negative length", b"\x80\x02T\xff\xff\xff\xffabc."
    yield "LONG4 of a negative length", b"\x80\x02\x8b\xff\xff\xff\xffabc."
    yield "two million lists", b"\x80\x04" + b"(" + b"]" * 2_000_000 + b"l."
    yield "two million dicts in a snapshot", top(b"device_traces", b"](" + b"}" * 2_000_000 + b"e")
    yield "a hundred thousand empty entries", top(b"device_traces", b"](](" + b"}" * 100_000 + b"ee")


def _depth(deep: int) -> Iterator[tuple[str, bytes]]:
    yield "lists in lists", b"\x80\x04" + b"]" * deep + b"a" * (deep - 1) + b"."
    yield "tuples in tuples", b"\x80\x04)" + b"\x85" * deep + b"."
    yield (
        "deep tuples in an entry",
        top(b"device_traces", b"]](}" + short(b"action") + b")" + b"\x85" * deep + b"seae"[:3]),
    )
    yield "deep tuples as a key", b"\x80\x04})" + b"\x85" * deep + b"K\x01s."
    yield "deep tuples as a key in a snapshot", top(b"oomscope", b"})" + b"\x85" * deep + b"K\x01s")
    yield "deep tuples in a set", b"\x80\x04\x8f()" + b"\x85" * deep + b"\x90."
    yield "deep frozensets", b"\x80\x04(" + b"(" * 100_000 + b"\x91" * 100_000 + b"t."
    yield "deep lists as metadata", top(b"oomscope", b"}" + short(b"metadata") + b"]" * deep + b"a" * (deep - 1) + b"s")
    yield "deep JSON lists", b"[" * deep
    yield "deep JSON dicts", b'{"segments": [], "device_traces": ' + b'{"a":' * deep
    yield "a list that holds itself", b"\x80\x04]\x94h\x00a."
    yield "an entry that holds itself", top(b"device_traces", b"]](}\x94(" + short(b"action") + b"h\x00uea"[:4] + b"ea")
    yield "context that holds itself", top(b"oomscope", b"}\x94" + short(b"metadata") + b"h\x00s")
    yield "segments that hold themselves", b"\x80\x04}\x94(" + short(b"segments") + b"]\x94h\x00ah\x01au."
    doubled = b"]\x94" + b"".join(b"](" + bytes([104, row]) + bytes([104, row]) + b"e\x94" for row in range(60))
    yield "lists that double sixty times", top(b"oomscope", b"}" + short(b"metadata") + b"(" + doubled + b"ls")
    pairs = b"K\x01\x94" + b"".join(b"h" + bytes([row]) + b"h" + bytes([row]) + b"\x86\x94" for row in range(60))
    yield "tuples that double sixty times, as a key", b"\x80\x04}(" + pairs + b"1}h\x3cK\x01s."
    yield (
        "tuples that double sixty times, in an entry",
        (
            b"\x80\x04}("
            + short(b"segments")
            + b"]("
            + pairs
            + b"1"
            + short(b"device_traces")
            + b"]](}"
            + short(b"action")
            + b"h\x3csea"[:4]
            + b"eu."
        ),
    )


def _hashes() -> Iterator[tuple[str, bytes]]:
    prime = (1 << 61) - 1
    many = b"".join(pickle.dumps(prime * row, 2)[2:-1] + b"K\x00" for row in range(1, 60_000))
    yield "sixty thousand keys of one hash", b"\x80\x02}(" + many + b"u."
    yield "sixty thousand keys of one hash as metadata", top(b"oomscope", b"}(" + many + b"u")
    wide = b"(" + b"K\x01" * 100_000 + b"t\x94"
    yield "a wide tuple as a key, again and again", b"\x80\x04" + wide + b"}(" + b"h\x00K\x01" * 30_000 + b"u."
    number = b"\x8b" + struct.pack("<I", 1_000_000) + b"\x7f" * 1_000_000
    yield "an integer of a megabyte", b"\x80\x02" + number + b"."
    yield "an integer of a megabyte as a size", top(b"device_traces", b"]](}" + short(b"size") + number + b"sea")
    yield "an integer of a megabyte as a key", b"\x80\x04" + number + b"\x94}(" + b"h\x00K\x01" * 30_000 + b"u."
    yield "an integer of five thousand digits", b"I" + b"9" * 5000 + b"\n."
    yield "a long of a hundred thousand digits", b"L" + b"9" * 100_000 + b"L\n."


def _compressed() -> Iterator[tuple[str, bytes]]:
    lists = b"\x80\x04(" + b"]" * (200 << 20) + b"l."
    nothing = b"\x80\x04" + b"N0" * (500 << 20) + b"N."
    yield "xz of 200 MB of lists", lzma.compress(lists, preset=0)
    yield "bzip2 of 1 GB of nothing", bz2.compress(bz2.compress(nothing[: 256 << 20], 1) * 4, 1)
    zeros = gzip.compress(bytes(64 << 20), 1)
    yield "gzip of zeros", zeros
    yield "xz of 1 GB of blanks before JSON", lzma.compress(b" " * (1 << 30) + b"{}", preset=0)
    yield "xz of JSON lists", lzma.compress(b'{"segments": [' + b"[]," * (64 << 20) + b"[]]}", preset=0)
    twice = b"\x80\x04N."
    for _ in range(6):
        twice = gzip.compress(twice)
    yield "gzip six times over", twice


def _text_formats() -> Iterator[tuple[str, bytes]]:
    yield (
        "JSON with a number of a thousand digits",
        b'{"segments": [], "device_traces": [[{"size": ' + b"9" * 1000 + b"}]]}",
    )
    yield (
        "JSON with a number of ten thousand digits",
        b'{"segments": [], "device_traces": [[{"size": ' + b"9" * 10_000 + b"}]]}",
    )
    yield "JSON with NaN", b'{"segments": [{"total_size": NaN, "address": Infinity}], "device_traces": []}'
    yield "JSON with a key twice", b'{"segments": [], "segments": 3, "device_traces": [], "device_traces": [[]]}'
    yield "JSON with half a character", b'{"segments": [], "device_traces": [[{"action": "\\ud800", "size": 1}]]}'
    yield "JSON of a text", json.dumps("x" * 1_000_000).encode()
    yield "HTML with markup", b"<title>" + MARKUP.encode() + b"</title>"
    yield (
        "HTML with a bomb",
        b'<html>"base64": "' + __import__("base64").b64encode(b"\x80\x02}r\xff\xff\xff\x7f.") + b'"',
    )
    yield "HTML of quotes", b"<html>" + b'"base64":' * 200_000


def documents() -> Iterator[tuple[str, Any]]:
    """Snapshots with odd contents in the places that are read."""
    keys = ("action", "addr", "size", "stream", "time_us", "frames", "compile_context", "user_metadata")
    numbers = (-1, -(1 << 63), (1 << 63) - 1, (1 << 64) - 1, 1 << 64, 10**1000, 1.5, float("nan"), float("inf"))
    texts = ("", MARKUP, SURROGATES, "x" * 100_000, "\n" * 1000)
    others = (None, True, b"\xff", [], {}, (), {"a": 1}, [[[]]], {1}, [None])
    for key in keys:
        for value in (*numbers, *texts, *others):
            document = base()
            document["device_traces"][0][4][key] = value
            yield f"entry {key} = {name_of(value)}", document
    for key in (
        "address",
        "total_size",
        "stream",
        "segment_type",
        "segment_pool_id",
        "is_expandable",
        "blocks",
        "device",
    ):
        for value in (*numbers, *texts, *others):
            document = base()
            document["segments"][0][key] = value
            yield f"segment {key} = {name_of(value)}", document
    for key in ("address", "size", "requested_size", "state", "frames"):
        for value in (*numbers, *texts, *others):
            document = base()
            document["segments"][0]["blocks"][2][key] = value
            yield f"block {key} = {name_of(value)}", document
    for key in ("filename", "name", "line"):
        for value in (*numbers, *texts, *others):
            document = base()
            document["device_traces"][0][4]["frames"][0][key] = value
            yield f"frame {key} = {name_of(value)}", document
    for key in ("segments", "device_traces", "allocator_settings", "external_annotations", "oomscope", "host_traces"):
        for value in (*numbers, *texts, *others):
            yield f"top {key} = {name_of(value)}", {**base(), key: value}
    yield from _strange_histories()
    yield from lying_contexts()


def name_of(value: object) -> str:
    """A short name for a value of any size."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 100:
        return f"an integer of {value.bit_length()} bits"
    return ascii(value)[:40]


def _strange_histories() -> Iterator[tuple[str, Any]]:
    document = base()
    document["segments"] *= 2
    yield "the same segment twice", document
    document = base()
    document["segments"].append(segment(A + MIB, [block(4 * MIB)]))
    yield "overlapping segments", document
    document = base()
    document["device_traces"][0] = document["device_traces"][0][:3] * 500
    yield "the same addresses again and again", document
    document = base()
    document["device_traces"][0].reverse()
    yield "a trace backwards", document
    document = base()
    for item in document["device_traces"][0]:
        item["time_us"] = -item["time_us"] * 10**6
    yield "time running backwards", document
    document = base()
    document["device_traces"] = document["device_traces"] * 2000
    yield "two thousand devices", document
    document = base()
    document["device_traces"][0] = [entry("oom", row, 1 << 61) for row in range(500)]
    yield "five hundred failures", document
    document = base()
    for row, item in enumerate(document["device_traces"][0]):
        item[f"key {row}"] = row
    yield "a new key in every entry", document


def lying_contexts() -> Iterator[tuple[str, Any]]:
    """The dump's own key, with values that contradict the snapshot or have no sense."""
    odd = (None, True, -1, 1 << 70, 1.5, float("nan"), MARKUP, SURROGATES, [], [[]], {}, {"a": 1}, [{}], [{"a": [1]}])
    for key in CONTEXT:
        for value in odd:
            document = base()
            document["oomscope"] = {**copy.deepcopy(CONTEXT), key: value}
            yield f"context {key} = {name_of(value)}", document
            if isinstance(CONTEXT[key], dict):
                for inner in CONTEXT[key]:
                    document = base()
                    document["oomscope"] = {**copy.deepcopy(CONTEXT), key: {**CONTEXT[key], inner: value}}
                    yield f"context {key}.{inner} = {name_of(value)}", document
            if isinstance(CONTEXT[key], list) and CONTEXT[key]:
                for inner in CONTEXT[key][0]:
                    document = base()
                    document["oomscope"] = {**copy.deepcopy(CONTEXT), key: [{**CONTEXT[key][0], inner: value}]}
                    yield f"context {key}[].{inner} = {name_of(value)}", document


CONTEXT: dict[str, Any] = {
    "schema_version": 1,
    "version": "1.0",
    "created": "2026-11-20T20:23:24Z",
    "reason": "oom",
    "captured_at": "observer",
    "exception": {"type": "OutOfMemoryError", "message": "CUDA out of memory."},
    "request": {"device": 0, "alloc_size": 64 * MIB, "limit_or_total": 1 << 30, "device_free": 5 * MIB},
    "devices": [
        {
            "device": 0,
            "name": "NVIDIA H200",
            "uuid": "GPU-1",
            "total": 1 << 30,
            "free": 5 * MIB,
            "cap": None,
            "memory_stats": {"allocated_bytes.all.current": 14 * MIB},
            "processes": [{"pid": 1, "bytes": 20 * MIB, "name": "python", "this": True}],
        }
    ],
    "torch": "2.11.0+cu130",
    "cuda": "13.0",
    "driver": "580",
    "python": "3.12.3",
    "platform": "Linux",
    "allocator": {"backend": "native", "conf": ""},
    "process": {
        "host": "node",
        "pid": 1,
        "argv": ["train.py"],
        "rank": 0,
        "local_rank": 0,
        "world_size": 2,
        "environment": {"PYTORCH_ALLOC_CONF": ""},
    },
    "stacks": {
        "failing": [{"filename": "train.py", "line": 1, "name": "f"}],
        "main": [],
        "threads": [{"name": "t", "frames": []}],
    },
    "recording": {"started_us": 0, "max_entries": 100, "stacks": "python", "context": "all", "joined": False},
    "steps": [
        {
            "name": "0",
            "begin_us": 0,
            "end_us": 4,
            "peak_allocated": [0],
            "peak_reserved": [0],
            "allocated": [0],
            "reserved": [0],
            "retries": 0,
            "shape": {"batch": 8},
        }
    ],
    "sources": [{"filename": "train.py", "line": 9, "text": ["x = 1"]}],
    "marks": [{"name": "eval", "time_us": 3}],
    "metadata": {"a": 1},
    "tensors": [
        {
            "device": 0,
            "address": A + 2 * MIB,
            "bytes": 2 * MIB,
            "dtype": "float32",
            "shape": [1],
            "category": "parameter",
            "name": "model.0.weight",
            "holders": ["train: losses[812]"],
            "saved_for": None,
        }
    ],
    "holders": [{"device": 0, "name": "train: losses", "bytes": 2 * MIB, "tensors": 1}],
    "walk": {"seconds": 0.0, "complete": True},
}


def pickled(document: Any) -> io.BytesIO:
    """`document` as a file."""
    return io.BytesIO(pickle.dumps(document, 4))
