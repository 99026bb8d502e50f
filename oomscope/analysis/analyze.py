"""Everything a report shows about a snapshot, found in one call."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oomscope.analysis.attribution.by_site import Attribution, attribute, site_uses
from oomscope.analysis.attribution.names_and_holders import holders, named_tensors, suspect
from oomscope.analysis.attribution.sites import SiteTable
from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.instants import choose_instant, entry_at
from oomscope.analysis.labels.categories import categorize
from oomscope.analysis.labels.drivers import find_drivers
from oomscope.analysis.labels.model_cost import make_bill
from oomscope.analysis.labels.phases import phase_of
from oomscope.analysis.labels.stack_roles import Role, StackRoles, find_roles
from oomscope.analysis.memory.fragmentation import fragmentation
from oomscope.analysis.memory.pins import find_pins
from oomscope.analysis.memory.usage import peak, reconcile, totals_at, usage
from oomscope.analysis.passes.growth import find_growth
from oomscope.analysis.passes.steps import find_steps
from oomscope.analysis.recording_quality import history_kind, recording_quality
from oomscope.analysis.records import CATEGORIES, PHASES, Growth, Oom, Steps
from oomscope.analysis.verdict.circumstances import Subject
from oomscope.analysis.verdict.failed_requests import FailedRequest, failed_requests, the_one_that_matters
from oomscope.analysis.verdict.judge import judge
from oomscope.analysis.verdict.limits import outside_bytes
from oomscope.analysis.whatif import REPORT_SECONDS, WhatIf, report_whatif
from oomscope.errors import ReplayError, RequestError
from oomscope.history import DeviceHistory, device_history, recorded_config
from oomscope.model import RecordedDevice, Snapshot, UInt8Array


@dataclass(frozen=True, slots=True, eq=False)
class _Examined:
    """One device, with what is found once and used at every instant."""

    history: DeviceHistory
    requests: tuple[FailedRequest, ...]
    roles: StackRoles
    phases: UInt8Array
    steps: Steps
    categories: UInt8Array
    categories_source: str
    attribution: Attribution


def analyze(
    snapshot: Snapshot,
    *,
    at: str | int = "auto",
    device: int | None = None,
    whatif: bool = True,
    whatif_seconds: float = REPORT_SECONDS,
) -> Findings:
    """Explain `snapshot`.

    Args:
        snapshot: as `oomscope.load` gives it.
        at: the instant that the attribution is about: ``auto`` (the OOM that matters, else the peak, else the end),
            ``oom``, ``peak``, ``end``, or the number of a trace entry.
        device: CUDA index of the device that `at` is about; chosen by `at` if None.
        whatif: whether to replay the recorded run under other allocator settings (takes seconds on long traces).
        whatif_seconds: how long the settings after the first two may take; what is left out is said to be.

    Raises:
        RequestError: the snapshot has no such device, instant or entry.
    """
    config = recorded_config(snapshot)
    if device is not None and all(device != known.index for known in snapshot.devices):
        known_devices = ", ".join(str(known.index) for known in snapshot.devices) or "none"
        raise RequestError(f"The snapshot holds nothing about device {device}; it has {known_devices}.")
    sites = SiteTable(snapshot.stacks)
    histories = tuple(device_history(one, config) for one in snapshot.devices)
    kind = history_kind(snapshot, histories)
    examined = [_examine(snapshot, history, sites, kind) for history in histories]
    chosen = choose_instant([(one.history, one.requests) for one in examined], at, device)
    entries = {one.history.index: entry_at(one.history, chosen) for one in examined}
    recording = recording_quality(snapshot, histories, sites, kind, entries)
    replays = {
        one.history.index: _replay(snapshot, one, whatif_seconds)
        for one in examined
        if whatif and one.history.index == chosen.device
    }
    return Findings(
        snapshot=snapshot,
        recording=recording,
        at=chosen,
        devices=tuple(
            _find(snapshot, one, sites, entries[one.history.index], replays.get(one.history.index)) for one in examined
        ),
        whatif=tuple(replay for replay in replays.values() if replay is not None),
    )


def _examine(snapshot: Snapshot, history: DeviceHistory, sites: SiteTable, kind: str) -> _Examined:
    roles = find_roles(snapshot.stacks)
    phases = phase_of(snapshot, history, roles)
    steps = find_steps(snapshot, history, phases)
    categories, source = categorize(snapshot, history, steps, phases)
    return _Examined(
        history=history,
        requests=failed_requests(snapshot, history, sites),
        roles=roles,
        phases=phases,
        steps=steps,
        categories=categories,
        categories_source=source,
        attribution=attribute(history, sites, phases, kind=kind),
    )


def _replay(snapshot: Snapshot, one: _Examined, seconds: float) -> WhatIf | None:
    """The recorded run under other settings; None where there is nothing to replay."""
    if one.history.entries < 2:
        return None
    try:
        return report_whatif(snapshot, one.history, steps=one.steps.boundaries, budget_s=seconds)
    except (ReplayError, RequestError):
        return None


def _find(snapshot: Snapshot, one: _Examined, sites: SiteTable, entry: int, replay: WhatIf | None) -> DeviceFindings:
    history = one.history
    layout = history.layout_at(entry)
    ooms = tuple(_judged(snapshot, one, sites, request, replay) for request in one.requests)
    growth = _growth_at(snapshot, one, sites, entry)
    return DeviceFindings(
        device=history.index,
        history=history,
        at_entry=entry,
        usage=usage(history.layout),
        at=totals_at(history, entry),
        peak=peak(history),
        reconciliation=reconcile(history),
        fragmentation=fragmentation(layout, history.config, snapshot.pools),
        sites=site_uses(history, one.attribution, sites, snapshot.stacks, one.categories, entry),
        categories=_live_by(one.categories, CATEGORIES, history, entry),
        categories_source=one.categories_source,
        category_of=one.categories,
        phases=_live_by(one.phases, PHASES, history, entry),
        phase_of=one.phases,
        names=named_tensors(snapshot, history.index),
        holders=holders(snapshot, history.index),
        pins=find_pins(history, one.attribution, sites, entry, layout),
        growth=growth,
        steps=one.steps,
        oom=the_one_that_matters(ooms),
        ooms=ooms,
        bill=make_bill(snapshot, history, one.categories, entry),
        device_total=snapshot.recorded.device(history.index).total,
        outside=outside_bytes(snapshot, history),
    )


def _judged(snapshot: Snapshot, one: _Examined, sites: SiteTable, request: FailedRequest, replay: WhatIf | None) -> Oom:
    history, entry = one.history, request.entry
    growth = _growth_at(snapshot, one, sites, entry)
    verdict = judge(
        _subject(snapshot, one, request, replay),
        request,
        growth=growth,
        drivers=find_drivers(snapshot, history, one.phases, one.categories, entry, growth=growth, sites=sites),
        pins=find_pins(history, one.attribution, sites, entry, request.layout),
    )
    return Oom(
        entry=entry,
        time_us=request.time_us,
        requested=request.size,
        alloc_size=request.alloc_size,
        device_free=request.device_free,
        stream=request.stream,
        recovered=request.recovered,
        site=request.site,
        caller=request.caller,
        stack=request.stack,
        limit=request.limit,
        totals=request.totals,
        free=request.free,
        verdict=verdict,
    )


def _growth_at(snapshot: Snapshot, one: _Examined, sites: SiteTable, entry: int) -> tuple[Growth, ...]:
    return find_growth(snapshot, one.history, one.steps, one.phases, one.categories, entry, sites=sites)


def _subject(snapshot: Snapshot, one: _Examined, request: FailedRequest, replay: WhatIf | None) -> Subject:
    history = one.history
    recorded = snapshot.recorded.device(history.index)
    lifetimes = history.lifetimes
    stack = history.trace.stack[request.entry]
    alike = lifetimes.requested[lifetimes.stack == stack] if stack >= 0 else np.zeros(0, np.int64)
    live = lifetimes.active_at(request.entry)
    return Subject(
        device=history.index,
        config=history.config,
        categories=_live_by(one.categories, CATEGORIES, history, request.entry),
        phases=_live_by(one.phases, PHASES, history, request.entry),
        total=recorded.total,
        cap=recorded.cap,
        outside=outside_bytes(snapshot, history, device_free=request.device_free, reserved=request.totals.reserved),
        outside_names=_processes(recorded),
        uncertain_bytes=int(history.slack[live].sum()),
        names_known=bool(named_tensors(snapshot, history.index)),
        varied_sizes=len(np.unique(alike)),
        holder=suspect(holders(snapshot, history.index)),
        in_forward=stack >= 0 and one.roles.role[stack] == Role.FORWARD,
        whatif=replay,
    )


def _processes(recorded: RecordedDevice) -> tuple[tuple[str, int], ...]:
    """Other processes on the card, largest first."""
    others = [
        (process.name or f"process {'?' if process.pid is None else process.pid}", process.bytes or 0)
        for process in recorded.other_processes()
    ]
    return tuple(sorted(others, key=lambda other: -other[1]))


def _live_by(kind: UInt8Array, names: tuple[str, ...], history: DeviceHistory, entry: int) -> dict[str, int]:
    """Allocated bytes once `entry` has happened, by `kind`; sums to the allocated bytes then."""
    live = history.lifetimes.allocated_at(entry)
    total = np.zeros(len(names), np.int64)
    np.add.at(total, kind[live], history.size[live])
    return dict(zip(names, total.tolist(), strict=True))
