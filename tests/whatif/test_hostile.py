"""Traces that no allocator wrote: whatever they say, the answer is a refusal or an answer, never a crash."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oomscope.analysis.whatif import whatif
from oomscope.errors import OomscopeError, ReplayError
from oomscope.model import Snapshot
from oomscope.rendering.whatif import to_json, to_markdown, to_text
from tests import builders
from tests.whatif.recorder import Recorder
from tests.whatif.subjects import subject_of

MIB = 1 << 20
BASE = 0x7F00_0000_0000

ADDRESSES = st.integers(0, 12).map(lambda at: BASE + at * 7 * MIB) | st.sampled_from([0, BASE + 512, (1 << 47) - 512])
SIZES = st.sampled_from([0, 1, 512, 5000, 2 * MIB, 20 * MIB, 60 * MIB, 1 << 40])
ACTIONS = st.sampled_from(
    [
        "alloc", "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
        "segment_unmap", "oom", "snapshot", "of_the_future",
    ]
)  # fmt: skip
ENTRIES = st.lists(st.tuples(ACTIONS, ADDRESSES, SIZES, st.sampled_from([0, 9])), max_size=40)
BLOCKS = st.lists(
    st.tuples(st.sampled_from([512, 2 * MIB, 13 * MIB]), st.sampled_from(["active_allocated", "inactive"])), min_size=1,
    max_size=4,
)  # fmt: skip
SEGMENTS = st.lists(
    st.tuples(st.integers(0, 6), BLOCKS, st.booleans(), st.sampled_from(["small", "large"])), max_size=4
)


def snapshot(segments: list, entries: list, **settings: object) -> Snapshot:
    made = [
        builders.segment(
            BASE + at * 60 * MIB,
            [builders.block(size, state) for size, state in blocks],
            expandable=expandable,
            kind=kind,
        )
        for at, blocks, expandable, kind in {segment[0]: segment for segment in segments}.values()
    ]
    trace = [builders.entry(action, address, size, stream=stream) for action, address, size, stream in entries]
    return builders.loaded(made, [trace], allocator_settings=builders.settings(**settings))


@given(SEGMENTS, ENTRIES, st.booleans(), st.sampled_from([-1, 64 * MIB]), st.sampled_from([0.0, 0.4]))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_trace_gets_an_answer(
    segments: list, entries: list, expandable: bool, max_split_size: int, threshold: float
) -> None:
    made = snapshot(
        segments,
        entries,
        expandable_segments=expandable,
        max_split_size=max_split_size,
        garbage_collection_threshold=threshold,
    )
    if not made.devices:
        return
    try:
        answer = whatif(made, 0, settings=["expandable_segments:True", "max_split_size_mb:32"], orders=2)
    except OomscopeError:
        return
    for render in (to_text, to_markdown, to_json):
        assert render(answer)


def test_addresses_that_no_cuda_device_gives_are_refused() -> None:
    recorder = Recorder()
    recorder.malloc(0, 5 * MIB)
    for entry in recorder.entries:
        entry["addr"] |= 1 << 63
    with pytest.raises(ReplayError, match="no CUDA device"):
        subject_of(recorder.snapshot())
