"""Live bytes under the names of the program, and what it had said of a request that failed."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from oomscope.analysis import analyze
from oomscope.analysis.said.range_max import range_max
from oomscope.analysis.said.records import Said
from oomscope.analysis.said.uses import MOST_NAMES
from oomscope.rendering.json_report import render_json
from oomscope.rendering.text.terminal import render_text
from tests.builders import block, entry, frame, loaded, segment
from tests.named.marked import MIB, PLAIN, Marked, found


def test_blocks_belong_to_the_innermost_range_and_to_the_texts_of_their_entry():
    program = Marked()
    program.alloc(MIB, PLAIN)
    with program.range("train 1"):
        program.texts = {"user_metadata": "batch 1", "compile_context": "Torch-Compiled Region: 0/0"}
        program.alloc(2 * MIB, PLAIN)
        with program.range("forward"):
            kept = program.alloc(4 * MIB, PLAIN)
            program.free(program.alloc(8 * MIB, PLAIN))
        program.texts = {}
    program.annotate(kept, "packed")
    _, device = found(program, at="end")
    named = {(use.kind, use.name): use for use in device.named}
    assert {key: (use.bytes, use.blocks) for key, use in named.items()} == {
        ("range", "train > forward"): (4 * MIB, 1),
        ("range", "train"): (2 * MIB, 1),
        ("metadata", "batch 1"): (6 * MIB, 2),
        ("compiled", "Torch-Compiled Region: 0/0"): (6 * MIB, 2),
        ("annotation", "packed"): (4 * MIB, 1),
    }
    inner = named["range", "train > forward"]
    assert (inner.times, inner.peak_allocated, inner.rise) == (1, 15 * MIB, 12 * MIB)


def test_an_annotation_is_the_block_that_was_at_its_address_then():
    program = Marked()
    first = program.alloc(2 * MIB, PLAIN)
    program.annotate(first, "early")
    program.free(first)
    program.next = first
    program.alloc(2 * MIB, PLAIN)
    _, device = found(program, at="end")
    assert [use for use in device.named if use.kind == "annotation"] == []


def test_what_was_said_of_a_request_stands_beside_its_verdict():
    program = Marked()
    with program.range("train"):
        program.mark("forward", "START")
        program.texts = {"user_metadata": "batch 9", "compile_context": "N/A"}
        program.oom(64 * MIB, PLAIN)
    findings, device = found(program)
    assert device.oom is not None
    assert device.oom.said == Said(("train", "forward"), "batch 9")
    assert "in the range “train > forward”, with the metadata “batch 9”" in render_text(findings, width=200)
    assert '"said": {"ranges": ["train", "forward"], "metadata": "batch 9"' in render_json(findings)


def test_pools_have_the_names_that_the_recording_gives_and_torchs_own_peak():
    segments = [
        segment(1 << 40, [block(4 * MIB), block(16 * MIB, "inactive")], pool=(0, 1)),
        segment(1 << 41, [block(2 * MIB)], pool=(3, 0)),
        segment(1 << 42, [block(20 * MIB)]),
    ]
    stats = {"reserved_bytes_by_private_pools.0_1.all.peak": 40 * MIB}
    context = {
        "schema_version": 1,
        "pools": [{"pool": [0, 1], "name": "serve: kv_pool"}, {"pool": "odd"}, {"pool": [1]}],
        "devices": [{"device": 0, "memory_stats": stats}],
    }
    snapshot = loaded(segments, [[entry("snapshot", 0, 0)]], oomscope=context)
    assert len(snapshot.recorded.pools) == 1

    pools = analyze(snapshot, whatif=False).devices[0].pools
    assert [(one.pool, one.kind, one.name, one.reserved, one.inactive, one.peak_reserved) for one in pools] == [
        ((0, 1), "mempool", "serve: kv_pool", 20 * MIB, 16 * MIB, 40 * MIB),
        ((3, 0), "graph", None, 2 * MIB, 0, None),
    ]


def test_hostile_names_are_cleaned_in_every_table():
    program = Marked()
    program.texts = {"user_metadata": "a\x1b[31mb\u202e<script>"}
    with program.range("x\x1b]0;t\x07\n| y"):
        program.alloc(4 * MIB, (frame("f", 1, "/w/a.py"),))
    findings, _ = found(program, at="end")
    text = render_text(findings)
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_the_highest_value_of_a_range_is_that_of_its_slice():
    generator = np.random.default_rng(0)
    values = generator.integers(0, 1 << 40, 5_000)
    begin = generator.integers(0, 5_000, 400)
    end = np.minimum(begin + generator.integers(0, 5_000, 400), 5_000)
    found = range_max(values, begin, end)
    slices = [values[first:last] for first, last in zip(begin.tolist(), end.tolist(), strict=True)]
    assert found.tolist() == [
        int(part.max()) if len(part) else int(values[first]) for part, first in zip(slices, begin.tolist(), strict=True)
    ]


def test_ranges_a_hundred_thousand_deep_take_no_time():
    program = Marked()
    for _ in range(2_000):
        program.free(program.alloc(MIB, PLAIN))
    marks = [
        {"stage": "START", "name": f"r{number}x", "device": 0, "time_us": program.time} for number in range(50_000)
    ]
    program.annotations = [dict(mark, time_us=1_700_000_000_000_000) for mark in marks]
    begin = perf_counter()
    _, device = found(program, at="end")
    assert perf_counter() - begin < 20
    assert len(device.named) <= MOST_NAMES
