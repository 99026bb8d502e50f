"""Bytes by category over time, as other tools export them: curves without blocks, stacks or reserved memory."""

from __future__ import annotations

import numpy as np

from oomscope.frozen import frozen
from oomscope.model.arrays import IntArray

PROFILER, PROFILER_RAW, MOSAIC = "profiler", "profiler_raw", "mosaic"


@frozen(eq=False)
class CategoryTimeline:
    """What one export holds. Points are in their order in time.

    Attributes:
        source: what wrote it: `PROFILER` (`export_memory_timeline` as JSON), `PROFILER_RAW` (as ``.raw.json.gz``) or
            `MOSAIC` (the page of its ``get_memory_profile``).
        categories: what the columns are called; the profiler's in torch's order, mosaic's as the file names them.
        bytes: int64[points, categories].
        time_us: int64[points], counted from the first; None where the file has none that can be read.
        off_by: how far each value may be from the true one, for it was rounded.
    """

    source: str
    categories: tuple[str, ...]
    bytes: IntArray
    time_us: IntArray | None
    off_by: int = 0

    def __len__(self) -> int:
        return len(self.bytes)

    @property
    def total(self) -> IntArray:
        """int64[points]: all categories together."""
        total: IntArray = self.bytes.sum(axis=1, dtype=np.int64)
        return total
