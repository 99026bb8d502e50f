"""What a piece of advice does, in a few words: what it saves, and whether it is enough."""

from __future__ import annotations

from collections.abc import Sequence

from oomscope.analysis.records import Advice
from oomscope.units import format_bytes

_ENOUGH = {True: "enough alone", False: "not enough alone", None: "not known to be enough alone"}


def effect(advice: Advice) -> str:
    """``saves 9.77 GiB, enough alone``."""
    saves = "" if advice.saves_bytes is None else f"saves {format_bytes(advice.saves_bytes)}, "
    return f"{saves}{_ENOUGH[advice.enough]}"


def others(advice: Sequence[Advice]) -> str:
    """What there is beside the first piece of advice: ``3 more; 2 things that would not have helped``."""
    more = sum(not one.refuted for one in advice) - 1
    refuted = sum(one.refuted for one in advice)
    parts = [f"{more} more"] if more > 0 else []
    if refuted:
        parts.append(f"{refuted} {'thing' if refuted == 1 else 'things'} that would not have helped")
    return "; ".join(parts)
