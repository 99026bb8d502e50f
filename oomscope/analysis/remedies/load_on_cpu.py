"""Load a checkpoint on the CPU, where it was loaded onto the card beside the model that it fills."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "load_on_cpu"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where the request failed in a load, beside tensors of the same sizes."""
    found = circumstances.needs.loading
    if found is not None:
        values = {"place": found.place, "bytes": found.bytes}
        yield Advice(SLUG, values, found.bytes, enough_by_sum(circumstances, found.bytes), at=found.place)
