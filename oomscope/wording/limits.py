"""The limit of a process in words."""

from __future__ import annotations

from oomscope.analysis.verdict.records import ProcessLimit
from oomscope.units import format_bytes


def limit_amount(limit: ProcessLimit) -> str:
    """``8.00 GiB``; where it is a cap known only within bounds, ``≈ 8.00 GiB`` or ``7.11 GiB to 8.31 GiB``."""
    low = format_bytes(limit.low)
    if limit.source != "bracket":
        return low
    high = format_bytes(limit.high)
    return f"≈ {low}" if low == high else f"{low} to {high}"


def limit_text(limit: ProcessLimit) -> str:
    """The limit and where it is known from: ``Cap ≈ 12.0 GiB (inferred)``."""
    amount = limit_amount(limit)
    if limit.source == "recorded":
        return f"Limit {amount} (recorded)"
    if limit.source == "device":
        return f"Limit {amount} (what the device could give)"
    return f"Cap {amount} (inferred)"
