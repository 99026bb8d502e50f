"""bf16 autocast: products and convolutions work in 16 bits, on copies of the weights that last until backward."""

from __future__ import annotations

from oomscope.analysis.ledger.casts import is_mixed, is_of_unknown_width
from oomscope.analysis.ledger.cross_entropy import in_half, with_copies
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.precision import cast_copies, halves
from oomscope.analysis.ledger.run import Run

SLUG = "autocast"


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """What is computed in half precision is half as large; copies of the weights are there through each step."""
    if is_mixed(run) or is_of_unknown_width(run):
        return None
    found = halves(run)
    if (found.likely == 1).all():
        return None
    everything = run.size > 0
    drafts = [
        with_copies(run, cast_copies(run, run.draft.scaled(in_half(run, factor), everything)))
        for factor in (found.likely, found.least, found.most)
    ]
    return Edited(drafts[0], tuple(drafts[1:]), doubt=0.05)
