"""Bound, empty or move to the CPU what a list, a dict or a tensor keeps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oomscope.analysis.passes.records import Growth
from oomscope.analysis.remedies.effect import enough_by_sum, served_if_freed
from oomscope.analysis.remedies.kept_rows import kept_rows
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice
from oomscope.model import BoolArray

SLUG = "bound_what_is_kept"

WORTH_BOUNDING = 0.2
"""Of the allocated bytes; what an object that does not grow has to keep at least to be worth a change."""
MOST_PLACES = 2


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where an object, or a line, keeps what could go."""
    piled = circumstances.piled
    if piled.holder is not None:
        if not piled.holder.keeps_graph:
            yield _holder(circumstances, piled.holder.holder, piled.holder.earlier_bytes, kept_rows(circumstances))
        return
    if circumstances.growth:
        graph = "retained_graph" in {driver.slug for driver in circumstances.drivers[:3]}
        rows = [one for one in circumstances.growth if not (graph and one.kind == "generations")]
        for one in rows[:MOST_PLACES]:
            yield _place(circumstances, one)
        return
    for keeper in circumstances.suspects[:1]:
        if keeper.share >= WORTH_BOUNDING and keeper.kind not in ("graph", "call", "in_flight", "tensor"):
            yield _holder(circumstances, keeper.holder, keeper.retained, None)


def _holder(circumstances: Circumstances, holder: str, saves: int, rows: BoolArray | None) -> Advice:
    enough = served_if_freed(circumstances, rows) if rows is not None and np.any(rows) else None
    return Advice(
        f"{SLUG}.holder",
        {"holder": holder, "bytes": saves},
        saves,
        enough_by_sum(circumstances, saves) if enough is None else enough,
    )


def _place(circumstances: Circumstances, one: Growth) -> Advice:
    place = one.caller or one.site
    code = f"{SLUG}.reallocated" if one.kind == "reallocation" else SLUG
    values = {"place": place, "passes": one.generations, "bytes": one.spared_bytes}
    return Advice(code, values, one.spared_bytes, enough_by_sum(circumstances, one.spared_bytes), at=place)
