"""Shares, for drawing and for reading."""

from __future__ import annotations


def percent(part: int, whole: int) -> str:
    """A share as an attribute of SVG takes it, without its sign."""
    return f"{100 * part / whole:.3f}".rstrip("0").rstrip(".") if whole else "0"


def share(part: int, whole: int) -> str:
    """A share for reading: ``12.3 %``, ``< 0.1 %``."""
    if not whole or not part:
        return "0 %"
    value = 100 * part / whole
    return "< 0.1 %" if 0 < value < 0.1 else f"{value:.1f} %" if value < 99.95 else f"{value:.0f} %"
