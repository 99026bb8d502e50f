"""Why a request failed: the cause, how sure, and the numbers that prove it."""

from __future__ import annotations

from dataclasses import replace

from oomscope.analysis.records import Driver, Growth, Pin, Verdict
from oomscope.analysis.remedies.advice import advise
from oomscope.analysis.remedies.replays import citation
from oomscope.analysis.verdict.circumstances import Subject
from oomscope.analysis.verdict.counterfactuals import MARGIN, Case, Tested, decide
from oomscope.analysis.verdict.evidence import gather_evidence
from oomscope.analysis.verdict.failed_requests import FailedRequest
from oomscope.analysis.verdict.headlines import headline
from oomscope.units import GIB, format_bytes

STEADY = 0.9
"""R² of live bytes over steps from which on growth is beyond doubt."""

SURE_OF_HOLES = 0.10
"""The share of the limit that must be left over to be sure of fragmentation. A program that fills its memory fails at
some request; one that fits into the holes with little to spare was followed by others that would not have."""

LARGEST_CARD = 288 * GIB
"""No single device of today holds more, whatever else may fill this one."""


def judge(
    subject: Subject,
    request: FailedRequest,
    *,
    growth: tuple[Growth, ...] = (),
    drivers: tuple[Driver, ...] = (),
    pins: tuple[Pin, ...] = (),
) -> Verdict:
    """The verdict on `request`.

    Args:
        subject: the device it failed on.
        request: the failed request.
        growth: what grew until then.
        drivers: what the live bytes were.
        pins: what kept the stranded bytes.
    """
    case = Case(
        size=request.size,
        reserved=request.totals.reserved,
        limit=request.limit,
        free=request.free,
        growth=growth,
        outside=subject.outside,
        total=subject.total,
        cap=subject.cap,
    )
    tested = decide(case)
    return Verdict(
        cause=tested.cause,
        confidence=_confidence(subject, request, case, tested),
        headline=headline(subject, request, tested, growth, drivers, pins),
        replay=citation(subject.whatif, request, tested.cause),
        qualifying=tested.qualifying,
        evidence=gather_evidence(case, tested, request.totals.active),
        contributing=_contributing(subject, request, tested),
        drivers=drivers,
        advice=advise(subject, request, tested.cause, growth, drivers, pins),
        cannot_know=_cannot_know(subject, request, tested),
    )


def _confidence(subject: Subject, request: FailedRequest, case: Case, tested: Tested) -> str:
    """High where no number that is missing could turn the cause into another."""
    if tested.cause == "oversized_request":
        return "high" if tested.certain or case.size > LARGEST_CARD else "medium"
    if tested.cause == "growth":
        steady = tuple(one for one in case.growth if one.fit >= STEADY and not one.within_step)
        return "high" if tested.certain and decide(replace(case, growth=steady)).cause == "growth" else "medium"
    if tested.cause == "capacity":
        if not tested.certain or (tested.together and not tested.qualifying):
            return "medium"
        return "medium" if _card_unknown(subject, request) else "high"
    if tested.cause == "fragmentation" and (
        _card_unknown(subject, request) or tested.qualifying[0].spare < SURE_OF_HOLES * request.limit.low
    ):
        return "medium"
    walls = {
        "private_pools": request.free.walled_piece,
        "other_stream": max(request.free.other_streams_piece, request.free.pending),
    }
    if walls.get(tested.cause, request.size) < request.size:
        return "medium"  # behind the wall lie holes that would not have served it either
    if subject.uncertain_bytes > MARGIN * request.limit.low:
        return "medium"
    return "high" if tested.certain and tested.qualifying[0].spare >= MARGIN * request.limit.low else "medium"


def _card_unknown(subject: Subject, request: FailedRequest) -> bool:
    """Whether something outside this allocator may have filled the card: a bare snapshot does not tell."""
    return request.limit.source == "device" and subject.outside is None


def _contributing(subject: Subject, request: FailedRequest, tested: Tested) -> tuple[str, ...]:
    """Facts that are true of this OOM and are not its cause by themselves."""
    limit, found = request.limit, []
    capped = limit.source == "bracket" or (
        limit.source == "recorded" and subject.cap is not None and limit.low == subject.cap
    )
    if capped:
        found.append("memory_fraction_cap")
    found += [one.cause for one in tested.qualifying[1:]]
    if request.free.pending:
        found.append("pending_free")
    return tuple(found)


def _cannot_know(subject: Subject, request: FailedRequest, tested: Tested) -> tuple[str, ...]:
    unknown = []
    if subject.total is None:
        unknown.append(
            "The snapshot holds neither the size of the card nor what else fills it (other processes, the CUDA "
            "context, NCCL); a recording by oomscope does."
        )
    if request.limit.source == "bracket":
        unknown.append(
            f"The process was capped (the device had {format_bytes(request.device_free or 0)} free), but the cap "
            f"itself is not recorded: it lies between {format_bytes(request.limit.low)} and "
            f"{format_bytes(request.limit.high or request.limit.low)}."
        )
    if not subject.names_known:
        unknown.append(
            "Which Python object keeps a tensor alive: a bare snapshot knows where it was made, not its holder."
        )
    if request.recovered:
        unknown.append("The program went on allocating after this failure, so it may have been caught on purpose.")
    if subject.uncertain_bytes:
        unknown.append(f"Up to {format_bytes(subject.uncertain_bytes)} of block sizes from before the recording.")
    if tested.together and not tested.qualifying:
        unknown.append("Several kinds of free bytes together would have been enough; no single one would have been.")
    return tuple(unknown)
