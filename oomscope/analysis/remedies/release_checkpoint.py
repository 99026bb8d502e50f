"""Let go of a checkpoint once it has been copied from, or load it on the CPU."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.passes.loaded_copies import LoadedCopies
from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.remedies.work_before import work_since_rows
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "release_checkpoint"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where the trace shows that a checkpoint was loaded onto the card and copied from."""
    left = circumstances.piled.left
    if isinstance(left, LoadedCopies):
        values = {"place": left.place, "bytes": left.bytes, "before": work_since_rows(circumstances, left.rows)}
        yield Advice(SLUG, values, left.bytes, enough_by_sum(circumstances, left.bytes), at=left.place)
