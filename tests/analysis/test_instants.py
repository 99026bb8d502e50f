"""Failed requests and the instant that a report is about."""

from __future__ import annotations

import pytest

from oomscope.analysis import Findings, analyze
from oomscope.analysis.verdict.failed_requests import MOST_JUDGED
from oomscope.errors import RequestError
from oomscope.model import Snapshot
from oomscope.wording.instants import failures_text
from tests import builders
from tests.builders import block, entry, frame, loaded, segment

MIB = 1 << 20
GIB = 1 << 30
T = 1_700_000_000_000_000
A, B = 0x7F00_0000_0000, 0x7F80_0000_0000


def trace(base: int, *tail: builders.Dict, begin: int = 0) -> list[builders.Dict]:
    """A segment, two blocks, one of them freed again, and `tail`; entries 10 µs apart."""
    entries = [
        entry("segment_alloc", base, 20 * MIB),
        entry("alloc", base, 2 * MIB, frames=[frame("kept")]),
        entry("alloc", base + 2 * MIB, 5 * MIB, frames=[frame("dropped")]),
        entry("free_requested", base + 2 * MIB, 5 * MIB),
        entry("free_completed", base + 2 * MIB, 5 * MIB),
        *tail,
    ]
    for at, one in enumerate(entries):
        one["time_us"] = T + begin + 10 * at
    return entries


def layout(base: int, device: int = 0, held: int = 2 * MIB) -> builders.Dict:
    return segment(base, [block(held), block(20 * MIB - held, "inactive")], device=device)


def oom(size: int = GIB, free: int = 0) -> builders.Dict:
    return entry("oom", free, size, frames=[frame("asks")])


def later(base: int, size: int = 512) -> builders.Dict:
    return entry("alloc", base + 2 * MIB, size)


def found(snapshot: Snapshot, **more: object) -> Findings:
    return analyze(snapshot, whatif=False, **more)  # type: ignore[arg-type]


def one_device(*tail: builders.Dict, held: int = 2 * MIB) -> Snapshot:
    return loaded([layout(A, held=held)], [trace(A, *tail)])


def test_without_a_failure_the_report_is_about_the_peak() -> None:
    at = found(one_device()).at
    assert (at.kind, at.device, at.entry, at.time_us) == ("peak", 0, 2, T + 20)


def test_a_failure_is_what_the_report_is_about() -> None:
    findings = found(one_device(oom()))
    assert (findings.at.kind, findings.at.entry) == ("oom", 5)
    failed = findings.devices[0].oom
    assert failed is not None
    assert (failed.requested, failed.alloc_size, failed.device_free, failed.recovered) == (GIB, GIB, 0, False)
    assert failed.site is not None
    assert failed.site.function == "asks"
    assert failed.totals.allocated == 2 * MIB


def test_frees_after_a_failure_are_the_unwinding_of_an_exception_and_no_recovery() -> None:
    snapshot = loaded(
        [segment(A, [block(20 * MIB, "inactive")])],
        [trace(A, oom(), entry("free_requested", A, 2 * MIB), entry("free_completed", A, 2 * MIB))],
    )
    failed = found(snapshot).devices[0].oom
    assert failed is not None
    assert not failed.recovered
    assert failed.totals.allocated == 2 * MIB, "the state at that very instant, not at the end"


def test_a_program_that_goes_on_allocating_has_recovered() -> None:
    snapshot = loaded(
        [segment(A, [block(2 * MIB), block(512), block(18 * MIB - 512, "inactive")])], [trace(A, oom(), later(A))]
    )
    device = found(snapshot).devices[0]
    assert device.oom is not None
    assert device.oom.recovered
    assert any(unknown.code == "verdict.unknown.recovered" for unknown in device.oom.verdict.cannot_know)


def test_the_last_failure_that_was_not_recovered_from_matters() -> None:
    snapshot = loaded(
        [segment(A, [block(2 * MIB), block(512), block(18 * MIB - 512, "inactive")])],
        [trace(A, oom(5 * GIB), later(A), oom(2 * GIB), oom(3 * GIB))],
    )
    device = found(snapshot).devices[0]
    assert [(one.requested // GIB, one.recovered) for one in device.ooms] == [(5, True), (2, False), (3, False)]
    assert device.oom is device.ooms[-1]


@pytest.mark.parametrize(
    ("pool", "named", "usable", "walled"),
    [
        ((0, 0), {}, 30, 20),  # something of the default pool is on that stream
        ((1, 0), {}, 30, 20),  # only the graph's pool is: the request is part of its capture
        ((1, 0), {"pool_id": (0, 0)}, 0, 50),  # torch 2.12 says it
        ((2, 0), {}, 30, 20),
    ],
)
def test_a_request_in_a_capture_may_use_the_holes_of_its_own_pool(
    pool: tuple[int, int], named: dict[str, object], usable: int, walled: int
) -> None:
    def half(base: int, size: int, **more: object) -> builders.Dict:
        return segment(base, [block(size * MIB), block(size * MIB, "inactive")], **more)  # type: ignore[arg-type]

    sizes = {A: 10, B: 20, B + GIB: 30}
    trace_ = [entry("segment_alloc", base, 2 * size * MIB, stream=9 * (base > A)) for base, size in sizes.items()]
    trace_ += [entry("alloc", base, size * MIB, stream=9 * (base > A)) for base, size in sizes.items()]
    snapshot = loaded(
        [half(A, 10), half(B, 20, stream=9, pool=(3, 0)), half(B + GIB, 30, stream=9, pool=pool)],
        [[*trace_, entry("oom", 0, GIB, stream=9, **named)]],
    )
    failed = found(snapshot).devices[0].oom
    assert failed is not None
    assert (failed.free.usable, failed.free.walled) == (usable * MIB, walled * MIB)


def test_of_many_failures_the_last_are_judged() -> None:
    device = found(one_device(*[oom(GIB + 512 * at) for at in range(50)])).devices[0]
    assert len(device.ooms) == MOST_JUDGED
    assert device.oom is not None
    assert device.oom.requested == GIB + 512 * 49
    assert failures_text(device) == f"the last {MOST_JUDGED} of 50 failed requests"


def test_where_all_failures_are_judged_their_number_is_told() -> None:
    device = found(one_device(oom(), oom())).devices[0]
    assert failures_text(device) == "2 failed requests"


def test_a_failure_of_device_1_is_found_and_device_0_is_shown_at_the_same_time() -> None:
    snapshot = loaded([layout(A), layout(B, device=1)], [trace(A), trace(B, oom(), begin=-35)])
    findings = found(snapshot)
    assert (findings.at.kind, findings.at.device, findings.at.entry) == ("oom", 1, 5)
    assert findings.device(0).oom is None
    assert findings.device(0).at_entry == 1, "what device 0 had done by then"
    assert found(snapshot, device=0).at.kind == "peak"


def test_a_failure_that_ended_the_run_goes_before_a_later_one_that_did_not() -> None:
    snapshot = loaded(
        [layout(A), segment(B, [block(2 * MIB), block(512), block(18 * MIB - 512, "inactive")], device=1)],
        [trace(A, oom()), trace(B, oom(), later(B), begin=500)],
    )
    assert found(snapshot).at.device == 0


@pytest.mark.parametrize(
    ("at", "entry_", "allocated"), [("end", 4, 2), ("peak", 2, 7), (0, 0, 0), ("1", 1, 2), (-1, -1, 0)]
)
def test_any_instant_can_be_asked_for(at: str | int, entry_: int, allocated: int) -> None:
    findings = found(one_device(), at=at)
    assert findings.at.entry == entry_
    assert findings.devices[0].at.allocated == allocated * MIB
    assert sum(site.bytes for site in findings.devices[0].sites) == allocated * MIB


@pytest.mark.parametrize(
    ("at", "message"), [("oom", "No OOM"), (5, "not in the trace"), (-2, "not in"), ("noon", "is no instant")]
)
def test_instants_that_are_not_there_are_refused(at: str | int, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        found(one_device(), at=at)


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(RequestError, match="it has 0"):
        found(one_device(), device=3)


def test_a_snapshot_without_a_trace_is_about_its_end() -> None:
    findings = found(loaded([layout(A)]))
    assert (findings.at.kind, findings.at.entry) == ("end", -1)
    assert findings.devices[0].peak is None
    assert findings.devices[0].at.allocated == 2 * MIB
