"""Whether live bytes, one value a pass, rise in a straight line to this day."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oomscope.model import IntArray
from oomscope.model.arrays import FloatArray

LEAST_FIT = 0.8
"""R² of the line; batches of changing length scatter around theirs."""
NEAR_MOST = 0.98
"""Of the most ever held: what must still be there. What falls back by more is being given back."""
LEAST_RISE = 0.3
"""Of what is there now: what must have come since the first pass. A large constant that drifts is no leak."""

LEAST_PACE = 0.5
"""Of the mean gain: what the last third of the passes must still gain. What fills up, such as a buffer, slows down."""


class Rise(NamedTuple):
    """Bytes gained in a pass, and R² of the line."""

    slope: float
    fit: float


def straight_rise(curve: IntArray | FloatArray) -> Rise | None:
    """The line through `curve`, the bytes after each pass; None where they do not rise all along."""
    if len(curve) < 2 or np.ptp(curve) == 0:
        return None
    place = np.arange(len(curve), dtype=np.float64)
    slope = float(np.polyfit(place, curve, 1)[0])
    fit = float(np.corrcoef(place, curve)[0, 1]) ** 2
    if slope <= 0 or fit < LEAST_FIT or curve[-1] < NEAR_MOST * curve.max():
        return None
    third = max(len(curve) // 3, 1)
    if curve[-1] - curve[-1 - third] < LEAST_PACE * third * (curve[-1] - curve[0]) / (len(curve) - 1):
        return None
    return Rise(slope, fit) if slope * len(curve) >= LEAST_RISE * curve[-1] else None
