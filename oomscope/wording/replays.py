"""How a replay that serves a request is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oomscope.units import format_bytes, plural


def served(values: Mapping[str, Any]) -> str:
    """``this request fits, 1.20 GiB to spare, 0 retries``."""
    parts = ["this request fits"]
    if values.get("another_fails"):
        parts.append("though another one fails")
    elif values.get("spare") is not None:
        parts.append(f"{'at least ' if values.get('at_least') else ''}{format_bytes(values['spare'])} to spare")
    if values.get("retries") is not None:
        parts.append(plural(values["retries"], "retry", "retries"))
    return ", ".join(parts)
