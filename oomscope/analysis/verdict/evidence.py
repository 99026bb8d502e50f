"""The numbers that prove a verdict, those that decide it first."""

from __future__ import annotations

from oomscope.analysis.verdict.causes.cause import Cause
from oomscope.analysis.verdict.records import Evidence
from oomscope.analysis.verdict.shortage import Shortage, Tested


def gather_evidence(case: Shortage, tested: Tested, active: int, deciding: Cause) -> tuple[Evidence, ...]:
    """What speaks for the cause, the deciding numbers first.

    Args:
        case: the request in numbers.
        tested: what the counterfactuals gave.
        active: bytes in use when the request failed.
        deciding: the cause, whose `DECIDING` come first.
    """
    facts = _facts(case, tested, active)
    first = [facts.pop(slug) for slug in deciding.DECIDING if slug in facts]
    others = [Evidence("without", one.spare, {"cause": one.cause}) for one in tested.qualifying[1:]]
    higher = [Evidence("without_at_higher_cap", one.spare, {"cause": one.cause}) for one in tested.only_higher]
    return (*first, *facts.values(), *others, *higher)


def _facts(case: Shortage, tested: Tested, active: int) -> dict[str, Evidence]:
    free, limit = case.free, case.limit
    # With expandable segments a piece can grow, so that it may be larger than all that is free.
    grows = free.largest > free.usable
    limit_slug = {"recorded": "limit", "device": "limit_of_device"}.get(limit.source, "lower_bound")
    facts = {
        "request": Evidence("request", case.size),
        "reserved": Evidence("reserved", case.reserved),
        "active": Evidence("active", active),
        "limit": Evidence(limit_slug, limit.low),
        "usable": Evidence("usable", free.usable),
        "largest": Evidence("largest_with_pages" if grows else "largest", free.largest),
    }
    if tested.qualifying and tested.cause != "oversized_request":
        facts["without"] = Evidence("without", tested.qualifying[0].spare, {"cause": tested.qualifying[0].cause})
    elif not tested.qualifying:
        spare = case.spare(free.usable, limit.low)
        facts["one_piece"] = Evidence("left_in_one_piece" if spare >= 0 else "short_in_one_piece", abs(spare))
    extra = {
        "grown": case.grown,
        "retained": case.retained,
        "opened": case.opened,
        "walled": free.walled,
        "other_streams": free.other_streams,
        "pending": free.pending,
        "other_class": free.other_class,
        "outside": case.outside,
        "total": case.total,
        "cap": case.cap,
    }
    facts |= {slug: Evidence(slug, count) for slug, count in extra.items() if count}
    if limit.high > limit.low:
        facts["upper_bound"] = Evidence("upper_bound", limit.high + 1)
    return facts
