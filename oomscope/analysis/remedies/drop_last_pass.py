"""Let go of what the pass before made: its variables keep it until the next pass assigns them anew."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.passes.finished import training_entries
from oomscope.analysis.passes.loop_that_matters import loop_that_matters
from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "drop_last_pass"

WORTH_ADVISING = 0.25
"""Of the allocated bytes; most programs keep an output and a loss, and need not care."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where two passes are alive at once."""
    left = circumstances.left_by_last_pass
    if left <= WORTH_ADVISING * max(circumstances.request.totals.allocated, 1):
        return
    holder = circumstances.keeper_of_last_pass
    code = f"{SLUG}.graph" if holder is not None and holder.kind == "graph" else SLUG
    values: dict[str, object] = {"bytes": left, "holder": None if holder is None else holder.holder}
    if code != SLUG:
        values["backward"] = _backward(circumstances)
    yield Advice(code, values, left, enough_by_sum(circumstances, left), at=None if holder is None else holder.at)


def _backward(circumstances: Circumstances) -> str:
    """Whether the loop trains: ``within``; ``none`` where training came before it alone; else ``unknown``."""
    study, entry = circumstances.study, circumstances.request.entry
    run, telling = loop_that_matters(study, entry), training_entries(study)
    before = telling[telling <= entry]
    if not len(before) or run is None:
        return "unknown"
    return "within" if before[-1] >= run.begin else "none"
