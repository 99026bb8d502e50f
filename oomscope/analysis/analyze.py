"""Everything a report shows about a snapshot, found in one call."""

from __future__ import annotations

from dataclasses import replace

from oomscope.analysis.attribution.names_and_holders import holders, named_tensors
from oomscope.analysis.attribution.records import Holder
from oomscope.analysis.attribution.site_uses import site_uses
from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.instants import choose_instant, entry_at
from oomscope.analysis.labels.drivers import categories_at
from oomscope.analysis.labels.model_cost import make_bill
from oomscope.analysis.memory.fragmentation import fragmentation
from oomscope.analysis.memory.pinned_memory import pinned_memory
from oomscope.analysis.memory.pins import find_pins
from oomscope.analysis.memory.usage import peak, reconcile, totals_at, usage
from oomscope.analysis.passes.growth import find_growth
from oomscope.analysis.passes.records import Steps
from oomscope.analysis.passes.rounds import find_passes
from oomscope.analysis.progress import Listener, silent
from oomscope.analysis.recording_quality import recording_quality
from oomscope.analysis.records import CATEGORIES, PHASES
from oomscope.analysis.said.naming import said_at
from oomscope.analysis.said.pools import pool_figures
from oomscope.analysis.said.uses import named_uses
from oomscope.analysis.study import DeviceStudy, SnapshotStudy
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.failed_requests import FailedRequest, failed_requests, the_one_that_matters
from oomscope.analysis.verdict.judge import judge
from oomscope.analysis.verdict.limits import outside_bytes
from oomscope.analysis.verdict.records import Oom
from oomscope.analysis.verdict.refused import find_refused
from oomscope.analysis.verdict.suspects import held_rows
from oomscope.analysis.verdict.unread import FROZEN_OF
from oomscope.analysis.whatif import WhatIf, report_whatif
from oomscope.errors import ReplayError, RequestError
from oomscope.model import IntArray, Snapshot


def analyze(
    snapshot: Snapshot,
    *,
    at: str | int = "auto",
    device: int | None = None,
    whatif: bool = True,
    whatif_seconds: float | None = None,
    progress: Listener = silent,
) -> Findings:
    """Explain `snapshot`.

    Args:
        snapshot: as `oomscope.load` gives it.
        at: the instant that the attribution is about: ``auto`` (the OOM that matters, else the peak, else the end),
            ``oom``, ``peak``, ``end``, or the number of a trace entry.
        device: CUDA index of the device that `at` is about; chosen by `at` if None.
        whatif: whether to replay the recorded run under other allocator settings (takes seconds on long traces).
        whatif_seconds: how much is replayed after the first two settings, a second standing for a million steps on
            every machine; what is left out is said to be. None: as much as suits the length of the trace.
        progress: told now and then what is done, and how far it is.

    Raises:
        RequestError: the snapshot has no such device, instant or entry.
    """
    whole = SnapshotStudy(snapshot)
    if device is not None:
        whole.device(device)
    requests = {}
    for number, study in enumerate(whole.devices):
        progress("history", number / len(whole.devices))
        requests[study.index] = failed_requests(study)
    chosen = choose_instant([(study.history, requests[study.index]) for study in whole.devices], at, device)
    entries = {study.index: entry_at(study.history, chosen) for study in whole.devices}
    recording = recording_quality(snapshot, whole.histories, whole.sites, whole.history_kind, entries)
    replays = {
        study.index: _replay(study, whatif_seconds, progress)
        for study in whole.devices
        if whatif and study.index == chosen.device
    }
    found = []
    for number, study in enumerate(whole.devices):
        progress("findings", number / len(whole.devices))
        found.append(_find(study, requests[study.index], entries[study.index], replays.get(study.index)))
    return Findings(
        snapshot=snapshot,
        recording=recording,
        at=chosen,
        devices=tuple(found),
        whatif=tuple(replay for replay in replays.values() if replay is not None),
        pinned=pinned_memory(whole, chosen),
        refused=find_refused(snapshot, whole.histories),
    )


def _replay(study: DeviceStudy, seconds: float | None, progress: Listener) -> WhatIf | None:
    """The recorded run under other settings; None where there is nothing to replay."""
    if study.history.entries < 2 or study.is_cut:
        return None
    try:
        answer = report_whatif(study, seconds=seconds, progress=progress)
    except (ReplayError, RequestError):
        return None
    return answer if study.part is None else _as_recorded(answer, study.part.first)


def _as_recorded(answer: WhatIf, first: int) -> WhatIf:
    """`answer` about a window, with the entry that its reason names counted as in the whole recording."""
    check = answer.self_check
    if check.reason is None or check.reason.values.get("entry") is None:
        return answer
    reason = replace(check.reason, values={**check.reason.values, "entry": check.reason.values["entry"] + first})
    return replace(answer, self_check=replace(check, reason=reason))


def _find(study: DeviceStudy, requests: tuple[FailedRequest, ...], entry: int, replay: WhatIf | None) -> DeviceFindings:
    snapshot, history = study.snapshot, study.history
    layout = history.layout_at(entry)
    growth = find_growth(study, entry)
    categories = categories_at(study, entry, growth)
    fragments = fragmentation(layout, history.config, snapshot.pools)
    ooms = tuple(_judged(study, request, replay) for request in requests)
    failed = the_one_that_matters(ooms)
    return DeviceFindings(
        device=study.index,
        study=study,
        at_entry=entry,
        usage=usage(history.layout),
        at=totals_at(history, entry),
        peak=peak(history),
        reconciliation=reconcile(history, None if replay is None else replay.self_check.agrees),
        fragmentation=fragments,
        sites=site_uses(study, entry, categories),
        categories=study.live_by(categories, CATEGORIES, entry),
        categories_source=study.categories_source,
        phases=study.live_by(study.phases, PHASES, entry),
        names=named_tensors(snapshot, study.index),
        holders=holders(study, _unread(study, failed)),
        pins=find_pins(study, entry, layout),
        growth=growth,
        steps=study.steps,
        passes=None if failed is None else _passes(study, failed),
        oom=failed,
        ooms=ooms,
        bill=make_bill(study, entry),
        device_total=snapshot.recorded.device(study.index).total,
        outside=outside_bytes(snapshot, history),
        named=named_uses(history, study.ranges, entry),
        pools=pool_figures(snapshot, study.index, fragments),
    )


def _passes(study: DeviceStudy, oom: Oom) -> Steps | None:
    return find_passes(study, oom.entry, oom.verdict.failing_pass, oom.verdict.told_passes)


def _unread(study: DeviceStudy, oom: Oom | None) -> list[tuple[Holder, IntArray]]:
    """The variables that the verdict says are not read again, as holders, each with the lifetimes that it keeps."""
    if oom is None:
        return []
    found = [one for one in oom.verdict.suspects if one.unread is not None and one.kind not in FROZEN_OF]
    return [
        (Holder(one.holder, one.kind, one.reaches, one.retained, one.tensors), held_rows(study, oom.entry, one.holder))
        for one in found
    ]


def _judged(study: DeviceStudy, request: FailedRequest, replay: WhatIf | None) -> Oom:
    entry = request.entry
    verdict = judge(Circumstances(study, request, replay))
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
        said=said_at(study.snapshot, study.history, study.ranges, entry),
    )
