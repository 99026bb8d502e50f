"""Usage, attribution and what does not add up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oomscope.allocator.limits import Limit
from oomscope.analysis import analyze
from oomscope.analysis.attribution.by_site import (
    ALL_OTHERS,
    BEFORE_RECORDING,
    EVICTED,
    NO_FRAMES,
    NO_FRAMES_BACKWARD,
    NO_STACK_KEPT,
    ONLY_TORCH,
)
from oomscope.analysis.attribution.names_and_holders import named_tensors
from oomscope.analysis.attribution.site_uses import MOST_ROWS
from oomscope.analysis.findings import DeviceFindings
from oomscope.errors import OomscopeError
from oomscope.model import Snapshot
from oomscope.reading import load
from tests import builders
from tests.builders import block, entry, frame, loaded, segment
from tests.history.programs import CONFIGS, LIMITS, OPERATIONS, Operation, run
from tests.said import said
from tests.shared import captures, needs_shared, public, shared_snapshot, truth

MIB = 1 << 20
A, B = 0x7F00_0000_0000, 0x7F80_0000_0000


def device(snapshot: Snapshot, **more: object) -> DeviceFindings:
    return analyze(snapshot, whatif=False, **more).devices[0]  # type: ignore[arg-type]


def assert_sums(found: DeviceFindings) -> None:
    allocated = found.at.allocated
    assert sum(site.bytes for site in found.sites) == allocated
    assert sum(found.categories.values()) == allocated
    assert sum(found.phases.values()) == allocated
    assert len(found.sites) <= MOST_ROWS
    sizes = [site.bytes for site in found.sites if site.label != ALL_OTHERS]
    assert sizes == sorted(sizes, reverse=True)
    for site in found.sites:
        assert site.blocks > 0
        assert (site.site is None) == (site.label is not None)
        assert sum(size for _, size, _ in site.stacks) <= site.bytes
    for pin in found.pins:
        assert 0 <= pin.alone_bytes <= pin.stranded_bytes <= found.fragmentation.stranded
        assert 0 < pin.smallest <= pin.largest <= pin.live_bytes


@needs_shared
@pytest.mark.parametrize("name", captures())
def test_usage_is_torchs_own_and_everything_sums_to_the_curve(name: str) -> None:
    stats = truth(name)["stats"]
    findings = analyze(shared_snapshot(name), whatif=False)
    assert findings.main is not None
    used = findings.main.usage
    for kind in ("reserved", "allocated", "active", "requested"):
        assert getattr(used, kind) == stats[f"{kind}_bytes.all.current"], kind
    assert used.inactive == used.reserved - used.active
    assert used.pending_free == used.active - used.allocated
    for found in findings.devices:
        assert found.reconciliation.unaccounted_bytes == 0
        assert_sums(found)


@needs_shared
@pytest.mark.parametrize("name", ["train_ok", "oom_leak_total_loss", "late_start", "ring_wrapped", "ddp.rank1"])
def test_what_is_live_at_any_entry_sums_to_the_curve(name: str) -> None:
    snapshot = shared_snapshot(name)
    last = max(len(one.trace) for one in snapshot.devices) - 1
    for at in np.random.default_rng(2).integers(-1, last + 1, 4).tolist():
        for found in analyze(snapshot, at=at, whatif=False).devices:
            assert_sums(found)


@needs_shared
@pytest.mark.parametrize("name", public())
def test_other_peoples_files_are_explained_or_their_contradictions_named(name: str) -> None:
    for found in analyze(shared_snapshot(name), whatif=False).devices:
        assert_sums(found)
        assert (found.reconciliation.unaccounted_bytes == 0) or found.reconciliation.notes


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(OPERATIONS, CONFIGS, LIMITS, st.sampled_from(["auto", "end", "peak", 0, -1]))
def test_any_program_can_be_explained(operations: list[Operation], conf: str, limit: Limit, at: str | int) -> None:
    found = device(run(operations, conf, limit)[0].snapshot(), at=at)
    assert_sums(found)
    assert found.reconciliation.unaccounted_bytes == 0
    for failed in found.ooms:
        assert failed.totals.reserved <= failed.limit.low


def labels(snapshot: Snapshot) -> dict[str | None, int]:
    return {site.label: site.bytes for site in device(snapshot, at="end").sites}


def small(*blocks: builders.Dict) -> builders.Dict:
    used = sum(item["size"] for item in blocks)
    return segment(A, [*blocks, block(2 * MIB - used, "inactive")], kind="small")


def test_blocks_without_a_site_are_grouped_by_the_reason() -> None:
    inside = [frame("step", 1, "/venv/lib/python3.12/site-packages/torch/optim/adamw.py")]
    own = [frame("mine")]
    trace = [
        entry("alloc", A, 512, frames=own),
        entry("alloc", A + 512, 1024, frames=inside),
        entry("alloc", A + 1536, 1536),
    ]
    found = labels(loaded([small(block(512), block(1024), block(1536), block(2048))], [trace]))
    assert found[None] == 512
    assert found[ONLY_TORCH] == 1024
    assert found[BEFORE_RECORDING] == 2048
    assert found.get(NO_FRAMES, 0) + found.get(NO_FRAMES_BACKWARD, 0) == 1536


def test_without_any_recording_the_reason_is_that_none_was_kept() -> None:
    assert labels(loaded([small(block(512))])) == {NO_STACK_KEPT: 512}


def test_what_a_ring_lost_is_called_overwritten() -> None:
    trace = [entry("alloc", A + 512, 512, frames=[frame("mine")]), entry("snapshot", 0, 0)]
    context = {"recording": {"max_entries": 2}}
    found = labels(loaded([small(block(1024 - 512), block(512))], [trace], oomscope=context))
    assert found[EVICTED] == 512


def test_many_sites_end_in_one_row_for_all_others() -> None:
    blocks = [block(512 * (1 + at), frames=[frame("f", at)]) for at in range(150)]
    found = device(loaded([segment(A, blocks)]))
    assert len(found.sites) == MOST_ROWS
    assert (found.sites[-1].label, found.sites[-1].blocks) == (ALL_OTHERS, 51)
    assert_sums(found)


def test_the_stack_of_a_site_is_the_one_with_most_bytes() -> None:
    blocks = [
        block(512, frames=[frame("f", 1), frame("rare", 2)]),
        block(512, frames=[frame("f", 1), frame("often", 3)]),
        block(512, frames=[frame("f", 1), frame("often", 3)]),
    ]
    (site,) = device(loaded([segment(A, blocks)])).sites
    assert site.stack[1].endswith("often")
    assert [(size, count) for _, size, count in site.stacks] == [(1024, 2), (512, 1)]


def test_contradictions_are_counted_and_named() -> None:
    def notes(segments: list[builders.Dict], trace: list[builders.Dict]) -> tuple[int, str]:
        found = device(loaded(segments, [trace])).reconciliation
        return found.unaccounted_bytes, said(found.notes)

    gone = [entry("segment_alloc", A, 2 * MIB), entry("alloc", A, 700), entry("snapshot", 0, 0)]
    assert notes([small()], gone)[0] == 1024
    assert "not in the final segments" in notes([small()], gone)[1]
    never = [entry("segment_free", B, 5 * MIB), entry("segment_alloc", A, 50 * MIB), entry("alloc", A, 512)]
    unaccounted, text = notes([small(block(512))], never)
    assert unaccounted > 0
    assert "below 0" in text
    twice = [entry("segment_alloc", A, 2 * MIB), entry("alloc", A, 5), entry("alloc", A, 5)]
    assert "still in use" in notes([small(block(512))], twice)[1]
    stranger = [entry("alloc", B, 512), entry("free_requested", B, 512), entry("free_completed", B, 512)]
    assert "outside all segments" in notes([small(block(512))], stranger)[1]


def test_unknown_requests_make_requested_bytes_unknown_and_not_zero() -> None:
    document = builders.snapshot([segment(A, [block(512)])], release="1.13")
    document[0]["blocks"][0].pop("history")
    found = device(load(builders.pickled(document)))
    assert (found.usage.requested, found.usage.allocated) == (None, 512)
    assert (found.fragmentation.rounding, found.fragmentation.unsplit) == (None, None)


def test_names_of_tensors_are_read_and_what_is_malformed_is_left_out() -> None:
    tensors = [
        {"device": 0, "bytes": 512, "name": "w", "category": "parameter", "dtype": "float32", "shape": [1, 2]},
        {"device": 0, "bytes": 1024, "name": None, "category": "odd", "shape": "x", "holders": ["train: a[1]"]},
        {"device": 1, "bytes": 5}, {"device": 0, "bytes": -1}, {"device": 0}, 7, None,
    ]  # fmt: skip
    found = named_tensors(loaded([small(block(512))], oomscope={"tensors": tensors}), 0)
    assert [(one.name, one.category, one.bytes, one.shape, one.holders) for one in found] == [
        ("", "unknown", 1024, None, ("train: a[1]",)),
        ("w", "parameter", 512, (1, 2), ()),
    ]
    assert named_tensors(loaded([small(block(512))], oomscope={"tensors": "none"}), 0) == ()


@pytest.mark.parametrize(
    "context",
    [
        {"devices": [{"device": 0, "total": "x", "free": None, "cap": -5, "processes": [None, 5, {"pid": 3}]}]},
        {"devices": [{"device": 0, "total": 1, "free": 1 << 50, "cap": 1, "processes": {"a": 1}}]},
        {"steps": [None, {"name": 1}], "marks": 5, "tensors": [{}], "recording": []},
        {"exception": 1, "request": "no", "devices": {}, "stacks": []},
    ],
)
def test_a_strangers_context_never_stops_the_analysis(context: dict[str, object]) -> None:
    trace = [entry("segment_alloc", A, 2 * MIB), entry("alloc", A, 512), entry("oom", 5, 1 << 30)]
    try:
        found = device(loaded([small(block(512))], [trace], oomscope=context))
    except OomscopeError:
        return
    assert found.oom is not None
    assert_sums(found)
