"""bf16 autocast: products and convolutions work in 16 bits, on copies of the weights that last until backward."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.casts import is_mixed, is_of_unknown_width
from oomscope.analysis.ledger.draft import Draft
from oomscope.analysis.ledger.dtypes.cross_entropy import in_half, with_copies
from oomscope.analysis.ledger.dtypes.precision import Halves, halves
from oomscope.analysis.ledger.dtypes.weight_copies import cast_copies
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.graphs.held import held_until
from oomscope.analysis.ledger.run import Run
from oomscope.model.arrays import FloatArray

SLUG = "autocast"


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """What is computed in half precision is half as large; copies of the weights are there through each step.

    Where no layer makes a product, as in plain functions with ``F.linear``, nothing tells which results are some.
    """
    if is_mixed(run) or is_of_unknown_width(run) or not (run.marked(Mark.LINEAR) & run.during(FORWARD)).any():
        return None
    found = halves(run)
    if (found.likely == 1).all():
        return None
    drafts = [_draft(run, found, factor) for factor in (found.likely, found.least, found.most)]
    return Edited(drafts[0], tuple(drafts[1:]), doubt=0.05, own=found.own, halves=True)


def _draft(run: Run, found: Halves, factor: FloatArray) -> Draft:
    draft = cast_copies(run, run.draft.scaled(in_half(run, factor), run.size > 0))
    return _with_originals(run, found, with_copies(run, draft))


def _with_originals(run: Run, found: Halves, draft: Draft) -> Draft:
    """`draft` with what is copied, beside its copies, for as long as Python holds it."""
    rows = np.flatnonzero((found.originals > 0) & run.saved)
    ends = np.minimum(held_until(run)[rows], run.end[rows])
    sizes = np.round(found.originals[rows] * run.size[rows]).astype(np.int64)
    return draft.added(sizes, run.begin[rows], ends, rows)
