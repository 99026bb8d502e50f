"""What the fuzzer found, kept so that it stays found."""

from __future__ import annotations

import pickle
import time
import tracemalloc
from types import SimpleNamespace

import pytest

from oomscope.analysis.whatif.recorded_limit import _from_collections
from tests.builders import block, entry, segment, settings, snapshot
from tests.hostile.catalogue import A, base
from tests.hostile.outcomes import outcome

MIB, TIB, PIB = 1 << 20, 1 << 40, 1 << 50


def ascii_of(value: object) -> str:
    return ascii(value)[:20]


def test_segments_without_bytes_pin_nothing() -> None:
    held = [segment(A, []), segment(A, [block(0)])]
    assert outcome(pickle.dumps(snapshot(held))) == "report"


@pytest.mark.parametrize("divisions", [1 << 63, -1, 3, float("inf"), float("nan"), 10**1000], ids=ascii_of)
def test_settings_that_divide_by_anything(divisions: object) -> None:
    powers = {**settings()["roundup_power2_divisions"], "64": divisions}
    document = {**base(), "allocator_settings": settings(roundup_power2_divisions=powers)}
    assert outcome(pickle.dumps(document)) == "report"


def test_a_pebibyte_of_small_pages_is_not_walked_page_by_page() -> None:
    held = [segment(A, [block(PIB // 2, frames=[]), block(PIB // 2, "inactive")], kind="small", expandable=True)]
    start = time.process_time()
    assert outcome(pickle.dumps(snapshot(held))) == "report"
    assert time.process_time() - start < 5


def test_a_request_that_fails_in_a_trace_without_any_stack() -> None:
    trace = [entry("segment_unmap", A, 20 * MIB), entry("oom", A, 20 * MIB)]
    assert outcome(pickle.dumps(snapshot([], [trace]))) == "report"


def test_pages_that_segments_claim_to_have_take_no_memory() -> None:
    held = [segment(A, [block(TIB, frames=[]) for _ in range(8)], kind="small", expandable=True) for _ in range(3)]
    data = pickle.dumps(snapshot(held))
    outcome(data)
    tracemalloc.start()
    try:
        assert outcome(data) == "report"
        assert tracemalloc.get_traced_memory()[1] < 32 * MIB
    finally:
        tracemalloc.stop()


def test_settings_that_hold_themselves_are_redacted() -> None:
    around: dict[str, object] = {"max_split_size": 1}
    around["name of a stranger"] = [around]
    document = {**base(), "allocator_settings": {**settings(), "more": around}}
    assert outcome(pickle.dumps(document), redact=True) == "report"


@pytest.mark.parametrize("threshold", [5e-324, 1e-300], ids=ascii_of)
def test_a_threshold_of_almost_nothing_tells_no_cap(threshold: float) -> None:
    config = SimpleNamespace(garbage_collection_threshold=threshold)
    device = SimpleNamespace(curves=SimpleNamespace(reserved=[PIB]), config=config)
    assert _from_collections(device, [SimpleNamespace(begin=0, by_empty_cache=False)], None) is None


def test_a_stack_opens_no_tag_in_markdown() -> None:
    frames = [{"filename": "<script>alert(1)</script>", "line": 1, "name": "<module>"}]
    document = snapshot([segment(A, [block(MIB, frames=frames)])], [[entry("oom", A, MIB, frames=frames)]])
    assert outcome(pickle.dumps(document), formats=("md",)) == "report"
