"""The file to attach to a ticket: small, complete, and its snapshot opens wherever torch's own does."""

from __future__ import annotations

import io
import pickle
import pickletools
import zipfile
from functools import cache
from typing import Any

import numpy as np
import pytest

from oomscope.analysis import Findings, analyze
from oomscope.commands.common.bundle import bundle
from oomscope.export import memory_viz
from oomscope.model import Snapshot
from oomscope.reading import load
from oomscope.redaction.snapshot import redact
from oomscope.rendering.json_report import as_document
from tests.builders import block, entry, frame, loaded, segment, snapshot
from tests.samples import SAMPLES, sample, sample_findings

# What the unpickler of MemoryViz.js understands.
VIEWER = {
    "APPEND", "APPENDS", "BINGET", "BINFLOAT", "BININT", "BININT1", "BININT2", "BINPUT", "BINUNICODE", "DICT",
    "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "FRAME", "LIST", "LONG1", "LONG_BINGET", "LONG_BINPUT", "MARK",
    "MEMOIZE", "NEWFALSE", "NEWTRUE", "NONE", "PROTO", "SETITEM", "SETITEMS", "SHORT_BINUNICODE", "STOP", "TUPLE",
    "TUPLE1", "TUPLE2", "TUPLE3",
}  # fmt: skip
# Fits the reports and about a third of the largest sample's trace.
SMALL = 200_000


@cache
def members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def slim(made: Snapshot) -> Snapshot:
    return load(io.BytesIO(memory_viz.to_pickle(made)))


def document(findings: Findings) -> dict[str, Any]:
    made = as_document(findings)
    # What was odd about a file is about that file; all else has to be the same.
    made["snapshot"]["recording"].pop("notes")
    return made


@pytest.mark.parametrize("redacted", [False, True], ids=["plain", "redacted"])
@pytest.mark.parametrize("name", SAMPLES)
def test_the_slim_snapshot_gives_the_same_findings(name: str, redacted: bool):
    original = redact(sample(name))[0] if redacted else sample(name)
    assert document(analyze(slim(original), whatif=False)) == document(analyze(original, whatif=False))


def test_other_settings_give_the_same_answers_on_it():
    original = sample("oom_fragmentation")
    answers = [as_document(analyze(made, whatif=True, whatif_seconds=0)) for made in (original, slim(original))]
    assert answers[0]["whatif"] == answers[1]["whatif"] != []


@pytest.mark.parametrize("release", ["2.1", "2.2", "2.4", "2.7", "2.8", "2.9", "2.10", "2.12", "2.14"])
def test_it_tells_the_release_that_wrote_the_original(release: str):
    made = [segment(0x7F0000000000, [block(1 << 20)])], [[entry("alloc", 0x7F0000000000, 1 << 20, frames=[frame()])]]
    original = load(io.BytesIO(pickle.dumps(snapshot(*made, release=release))))
    assert slim(original).schema == original.schema


def test_marks_of_the_ring_and_texts_of_entries_stay():
    trace = [entry("alloc", 0x7F0000000000 + at, 512, user_metadata=f"m{at % 2}") for at in range(3)]
    original = loaded([], [trace], trace_alloc_max_entries=3)
    made = slim(original)
    assert made.ring_entries == 3
    column = made.devices[0].trace.user_metadata
    assert column is not None
    assert [made.devices[0].trace.texts[number] for number in column] == ["m0", "m1", "m0"]


@pytest.mark.parametrize("name", SAMPLES)
def test_the_viewers_unpickler_knows_every_instruction(name: str):
    content = memory_viz.to_pickle(sample(name))
    for opcode, argument, _ in pickletools.genops(content):
        assert opcode.name in VIEWER
        assert opcode.name != "PROTO" or argument == 4
        assert opcode.name != "LONG1" or -(2**63) <= argument < 2**63


@pytest.mark.parametrize("name", SAMPLES)
def test_each_frame_and_stack_is_stored_once(name: str):
    plain = pickle.loads(memory_viz.to_pickle(sample(name)))
    stacks = [item["frames"] for trace in plain["device_traces"] for item in trace]
    stacks += [item["frames"] for part in plain["segments"] for item in (part, *part["blocks"])]
    texts = {str(stack) for stack in stacks}
    assert len({id(stack) for stack in stacks}) == len(texts)
    frames = [one for stack in {id(stack): stack for stack in stacks}.values() for one in stack]
    assert len({id(one) for one in frames}) == len({str(one) for one in frames})


@pytest.mark.torch
@pytest.mark.parametrize("name", SAMPLES)
def test_torchs_own_tools_read_it(name: str):
    viewer = pytest.importorskip("torch.cuda._memory_viz")
    plain = pickle.loads(memory_viz.to_pickle(sample(name)))
    assert viewer.segsum(plain)
    assert viewer.trace(plain)
    assert "<html" in viewer.trace_plot(plain).lower()
    assert "<html" in viewer.segment_plot(plain).lower()


def test_a_whole_trace_is_said_to_be_whole():
    made = members(bundle(sample_findings("train_ok")))
    assert list(made) == ["README.txt", "report.html", "report.md", "report.json", "snapshot.pickle"]
    assert b"contains the whole trace, 8,953 trace entries" in made["README.txt"]


def test_lines_of_source_are_said_to_be_in_it():
    source = {"filename": "train.py", "line": 2, "first": 1, "text": ["a", "b", "c"]}
    original = loaded(
        [segment(0x7F0000000000, [block(1 << 20)])], oomscope={"sources": [source, {**source, "line": 3}]}
    )
    readme = members(bundle(analyze(original, whatif=False)))["README.txt"].decode()
    assert "They carry 2 lines of the program's source" in readme
    redacted = members(bundle(analyze(redact(original)[0], whatif=False)))
    assert "source" not in redacted["README.txt"].decode()


def test_where_the_trace_is_too_long_the_newest_entries_are_kept_and_the_rest_counted():
    findings = sample_findings("oom_leak_total_loss")
    content = bundle(findings, most_bytes=SMALL)
    assert 0.7 * SMALL < len(content) <= SMALL
    made = members(content)
    kept = load(io.BytesIO(made["snapshot.pickle"]))
    whole, part = findings.snapshot.devices[0].trace, kept.devices[0].trace
    assert 0 < len(part) < len(whole)
    assert np.array_equal(part.time_us, whole.time_us[-len(part) :])
    assert f"Its oldest {len(whole) - len(part):,} of {len(whole):,} trace entries were dropped" in str(
        made["README.txt"], "utf-8"
    )
    short = analyze(kept, whatif=False)
    assert short.recording.history == "wrapped"
    assert short.main is not None
    assert findings.main is not None
    assert short.main.usage == findings.main.usage
    assert short.main.reconciliation.unaccounted_bytes == 0
    assert short.main.oom is not None


def test_where_not_even_the_state_fits_the_reports_are_there_alone():
    made = members(bundle(sample_findings("train_ok"), most_bytes=40_000))
    assert "snapshot.pickle" not in made
    assert b"The snapshot itself is not included" in made["README.txt"]


def test_the_same_findings_give_the_same_file():
    assert bundle(sample_findings("train_ok")) == bundle(sample_findings("train_ok"))
