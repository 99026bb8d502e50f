"""Why a request failed: the cause, how sure, and the numbers that prove it."""

from __future__ import annotations

from dataclasses import replace

from oomscope.analysis.remedies import advise
from oomscope.analysis.remedies.replays import citation
from oomscope.analysis.verdict.causes import CAUSE_MODULES
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.decide import decide
from oomscope.analysis.verdict.evidence import gather_evidence
from oomscope.analysis.verdict.records import Verdict
from oomscope.analysis.verdict.shortage import Tested
from oomscope.model import Note, note


def judge(circumstances: Circumstances) -> Verdict:
    """The verdict on a failed request."""
    request = circumstances.request
    first = decide(circumstances.shortage)
    tested = _that_holds(circumstances, first)
    cause = CAUSE_MODULES[tested.cause]
    doubt = _doubt(circumstances, first, tested)
    return Verdict(
        cause=tested.cause,
        confidence=confidence_with(doubt),
        doubt=doubt,
        headline=cause.headline(circumstances, tested),
        replay=citation(circumstances.whatif, request, tested.cause),
        qualifying=tested.qualifying,
        evidence=gather_evidence(circumstances.shortage, tested, request.totals.active, cause),
        contributing=_contributing(circumstances, tested),
        drivers=circumstances.drivers,
        advice=advise(circumstances, tested.cause),
        cannot_know=_cannot_know(circumstances, tested),
        suspects=circumstances.suspects,
        asked=circumstances.asked,
        failing_pass=circumstances.failing_pass,
        in_progress=circumstances.in_progress,
    )


_GRAVE = ("doubts.served", "doubts.cut")
"""With these the numbers do not explain the failure, or half of them are missing."""


def confidence_with(doubt: Note | None) -> str:
    """``high`` where nothing speaks for another cause, ``low`` where the numbers do not add up, else ``medium``."""
    if doubt is None:
        return "high"
    return "low" if doubt.code in _GRAVE else "medium"


def _doubt(circumstances: Circumstances, first: Tested, tested: Tested) -> Note | None:
    """What keeps the verdict from high confidence."""
    if circumstances.study.is_cut:
        return note("doubts.cut")
    found = CAUSE_MODULES[tested.cause].doubt(circumstances, tested)
    if found is None and tested.cause != first.cause:
        return note("doubts.claim")
    return found


def _that_holds(circumstances: Circumstances, tested: Tested) -> Tested:
    """The first cause whose headline its own numbers bear out; ``capacity`` claims nothing but sums."""
    while not CAUSE_MODULES[tested.cause].holds(circumstances, tested):
        others = tested.qualifying[1:]
        cause = others[0].cause if others else "capacity"
        tested = replace(tested, cause=cause, qualifying=others)
    return tested


def _contributing(circumstances: Circumstances, tested: Tested) -> tuple[str, ...]:
    """Facts that are true of this OOM and are not its cause by themselves."""
    found = ["memory_fraction_cap"] if circumstances.shortage.cap_binds else []
    found += [one.cause for one in tested.qualifying[1:]]
    if circumstances.request.free.pending:
        found.append("pending_free")
    return tuple(found)


def _cannot_know(circumstances: Circumstances, tested: Tested) -> tuple[Note, ...]:
    request, limit = circumstances.request, circumstances.request.limit
    unknown = []
    if circumstances.total is None:
        unknown.append(note("verdict.unknown.card"))
    if limit.source == "bracket":
        unknown.append(note("verdict.unknown.cap", free=request.device_free or 0, low=limit.low, high=limit.high))
    if not circumstances.names_known:
        unknown.append(note("verdict.unknown.holder"))
    if request.recovered:
        unknown.append(note("verdict.unknown.recovered"))
    if circumstances.uncertain_bytes:
        unknown.append(note("verdict.unknown.sizes", bytes=circumstances.uncertain_bytes))
    if circumstances.study.is_cut:
        unknown.append(note("verdict.unknown.cut", entry=circumstances.study.history.recorded))
    if tested.together and not tested.qualifying:
        unknown.append(note("verdict.unknown.together"))
    return tuple(unknown)
