"""Nothing is kept from step to step at the lines where memory grows."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.ledger.draft import NEVER, SPACING
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.passes.growth import find_growth
from oomscope.analysis.passes.loop_that_matters import pass_begins
from oomscope.model import IntArray

SLUG = "bound_holder"


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """What growing lines leave behind ends with the pass that made it."""
    study = run.study
    # A program that ended has let go of what it kept: what counts is what there was at the peak.
    ends = (study.history.entries - 1, max(int(np.argmax(study.history.curves.allocated)) - 1, 0))
    found = ((at, [one for one in find_growth(study, at) if one.kind == "generations"]) for at in ends)
    at, growth = next((one for one in found if one[1]), (ends[0], []))
    begins = np.asarray(pass_begins(study, at), np.int64)
    if not growth or not len(begins):
        return None
    places = {(one.site, one.caller) for one in growth}
    sites, stack = study.sites, run.stack.astype(np.int32)
    pairs = np.stack([sites.sites(stack), sites.callers(stack)], axis=1)
    distinct, which = np.unique(pairs, axis=0, return_inverse=True)
    grows = [(sites.location(one), sites.location(two)) in places for one, two in distinct.tolist()]
    rows = np.flatnonzero(np.array(grows, np.bool_)[which.reshape(-1)] & (run.begin < NEVER) & ~run.draft.tried)
    moments = _moments(run, begins)
    following = np.append(moments, NEVER)[np.searchsorted(moments, run.begin[rows], side="right")]
    late = run.end[rows] > following
    return Edited(run.draft.lasting(rows[late], end=following[late]), doubt=0.1) if late.any() else None


def _moments(run: Run, entries: IntArray) -> IntArray:
    """The moments of trace entries."""
    found: IntArray = np.searchsorted(run.draft.program.entry, entries).astype(np.int64) * SPACING
    return found
