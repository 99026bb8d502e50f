"""The numbers that prove a verdict, those that decide it first."""

from __future__ import annotations

from oomscope.analysis.records import Evidence
from oomscope.analysis.verdict.counterfactuals import Case, Tested

_DECIDING = {
    "oversized_request": ("request", "limit", "reserved"),
    "growth": ("request", "without", "limit"),
    "private_pools": ("request", "walled", "usable"),
    "other_stream": ("request", "other_streams", "pending", "usable"),
    "outside_allocator": ("request", "outside", "total"),
    "fragmentation": ("request", "usable", "largest"),
    "capacity": ("request", "active", "limit"),
}
"""Which three a reader needs to believe each cause."""


def gather_evidence(case: Case, tested: Tested, active: int) -> tuple[Evidence, ...]:
    """What speaks for the cause, the deciding numbers first. `active`: bytes in use when the request failed."""
    facts = _facts(case, tested, active)
    first = [facts.pop(key) for key in _DECIDING[tested.cause] if key in facts]
    others = [Evidence(_without(one.cause), one.spare) for one in tested.qualifying[1:]]
    higher = [
        Evidence(f"{_without(one.cause)}, if the cap is as high as it can be", one.spare) for one in tested.only_higher
    ]
    return (*first, *facts.values(), *others, *higher)


def _facts(case: Case, tested: Tested, active: int) -> dict[str, Evidence]:
    free, limit = case.free, case.limit
    bound = {"recorded": "This process could reserve", "device": "With what the device had free, it could reserve"}
    # With expandable segments a piece can grow, so that it may be larger than all that is free.
    grows = free.largest > free.usable
    largest = (
        "The largest piece, with the pages that could be mapped behind it" if grows else "The largest piece of that"
    )
    facts = {
        "request": Evidence("Asked for, in one piece", case.size),
        "reserved": Evidence("Reserved by PyTorch when it failed", case.reserved),
        "active": Evidence("In use when it failed", active),
        "limit": Evidence(bound.get(limit.source, "The limit is at least this: so much was held"), limit.low),
        "usable": Evidence("Free where the request may look: same pool, stream and size class", free.usable),
        "largest": Evidence(largest, free.largest),
    }
    if tested.qualifying and tested.cause != "oversized_request":
        facts["without"] = Evidence(_without(tested.qualifying[0].cause), tested.qualifying[0].spare)
    elif not tested.qualifying:
        spare = free.usable + limit.low - case.reserved - case.size
        facts["one_piece"] = Evidence("Left over had all usable free bytes been one piece", spare)
    extra = {
        "walled": ("Free inside private pools, where it may not go", free.walled),
        "other_streams": ("Free, but of other streams", free.other_streams),
        "pending": ("Given back, but waiting for another stream", free.pending),
        "other_class": ("Free in the other size class", free.other_class),
        "outside": ("On the card, but not PyTorch's", case.outside),
        "total": ("The whole card", case.total),
    }
    facts |= {key: Evidence(text, count) for key, (text, count) in extra.items() if count}
    if limit.source == "bracket" and limit.high is not None and limit.high > limit.low:
        facts["refused"] = Evidence("The limit is below this: so much was refused", limit.high + 1)
    return facts


def _without(cause: str) -> str:
    return f"Left over without {cause.replace('_', ' ')}"
