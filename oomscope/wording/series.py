"""What is said about the steps of a whole run."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.passes.series import UNKNOWN, Series
from oomscope.units import format_bytes, format_count, plural

_UNITS = ((86_400_000_000, "days"), (3_600_000_000, "h"), (60_000_000, "min"))


def unit_of(microseconds: int) -> tuple[int, str]:
    """The unit that suits a span of time, in microseconds and by its name: two of it at least."""
    return next((one for one in _UNITS if microseconds >= 2 * one[0]), (1_000_000, "s"))


def run_length(microseconds: int) -> str:
    """A span of time in the unit that suits it: ``13.2 days``, ``5.0 h``, ``42.0 min``, ``8.0 s``."""
    unit, name = unit_of(microseconds)
    return f"{microseconds / unit:.1f} {name}"


def series_text(series: Series) -> str:
    """The figure in words: how long, from where to where, what the rows stand for."""
    allocated = series.allocated
    spent = max(0, int(series.end_us[-1]) - int(series.begin_us.min()))
    parts = [
        f"{plural(int(series.count.sum()), 'step')} in {run_length(spent)}. Allocated at the end of a step: "
        f"{format_bytes(int(allocated[0]))} at first, {format_bytes(int(allocated[-1]))} at last, at most "
        f"{format_bytes(int(allocated.max()))}."
    ]
    retries = series.retries[series.retries != UNKNOWN]
    if retries.any():
        parts.append(f"The allocator freed its cache and tried again {plural(int(retries.sum()), 'time')}.")
    most = int(series.count.max())
    if most > 1:
        parts.append(f"Rows of older steps stand for up to {format_count(most)} steps each.")
    known = int(np.count_nonzero(series.peak != UNKNOWN))
    if known < len(series):
        parts.append(f"The peak is known for {format_count(known)} of {plural(len(series), 'row')}.")
    return " ".join(parts)
