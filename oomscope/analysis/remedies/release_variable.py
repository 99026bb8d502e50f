"""Let go of a variable that is not read again, or of the gradients of what was frozen."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oomscope.analysis.passes.left_from_before import call_begin
from oomscope.analysis.remedies.effect import enough_by_sum, served_if_freed
from oomscope.analysis.remedies.work_before import work_before
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice, Suspect
from oomscope.analysis.verdict.suspects import held_rows
from oomscope.analysis.verdict.unread import CACHE, FROZEN, FROZEN_OF, GRAPH, SUSPENDED, frozen_module, said_reads

SLUG = "release_variable"
_CODES = {SUSPENDED: "suspended", GRAPH: "graph", CACHE: "cache"}


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where such variables keep what was made before the work underway; each by itself."""
    for one in circumstances.piled.debris:
        if one.unread is not None and one.kind != "exception":
            enough = _is_enough(circumstances, one)
            if one.kind in FROZEN_OF:
                values = {"module": frozen_module(one), "bytes": one.retained}
                slug = f"{SLUG}.{'frozen' if one.kind == FROZEN else one.kind}"
                yield Advice(slug, values, one.retained, enough, at=one.at)
                continue
            if one.kind in _CODES:
                code = f"{SLUG}.{_CODES[one.kind]}"
                values = {"holder": one.holder, "bytes": one.retained, "place": one.at}
                yield Advice(code, values, one.retained, enough, at=one.at)
                continue
            work, stored = work_before(circumstances, one), next(iter(one.stores), None)
            values = {"holder": one.holder, "bytes": one.retained, "before": work}
            values |= {"reads": said_reads(one), "stored": stored, "graph": one.kind == "graph"}
            values |= {"others": one.others, "proven": one.unread == "proven"}
            code = f"{SLUG}.parts" if one.reads else f"{SLUG}.hooks" if 2 * one.by_hooks >= one.retained else SLUG
            # Where only a block is known before which it can go, the line that stores it is the one to look at.
            at = one.at if work is None or (stored is not None and work.kind == "block") else work.at
            yield Advice(code, values, one.retained, enough, at=at)


def _is_enough(circumstances: Circumstances, suspect: Suspect) -> bool | None:
    """By sum, and where holes leave that open, by replay: it goes before the call underway begins."""
    enough = enough_by_sum(circumstances, suspect.retained)
    if enough is not None:
        return enough
    study, entry = circumstances.study, circumstances.request.entry
    rows = np.zeros(len(study.history.size), np.bool_)
    rows[held_rows(study, entry, suspect.holder)] = True
    return served_if_freed(circumstances, rows, before=[call_begin(study, entry)])
