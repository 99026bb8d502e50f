"""A curve in one line of text."""

from __future__ import annotations

import numpy as np

from oomscope.model import IntArray

_BARS = " ▁▂▃▄▅▆▇█"


def sparkline(curve: IntArray, top: int, width: int) -> str:
    """The most of `curve` in each of `width` equal stretches, as bars of eighths of `top`.

    A stretch that holds anything at all shows at least the lowest bar.
    """
    if len(curve) == 0 or top <= 0:
        return ""
    width = min(width, len(curve))
    starts = np.arange(width) * len(curve) // width
    highest = np.maximum.reduceat(curve, starts)
    eighths = np.clip(np.ceil(highest * 8 / top), 0, 8).astype(int)
    return "".join(_BARS[eighth] for eighth in eighths)


def marks(entries: IntArray, length: int, width: int, mark: str) -> str:
    """A line of `width` with `mark` wherever one of `entries` (of a curve of `length`) falls."""
    width = min(width, length)
    line = [" "] * width
    for entry in entries:
        line[min(int(entry) * width // max(length, 1), width - 1)] = mark
    return "".join(line).rstrip()
