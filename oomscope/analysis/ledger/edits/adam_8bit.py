"""Adam with states of 8 bits in blocks that share a scale; states of small parameters stay as they are."""

from __future__ import annotations

from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.states import per_parameter

SLUG = "adam_8bit"
SMALLEST = 4096 * 4
"""Bytes of float32 from which a state is quantized, as bitsandbytes has it (min_8bit_size)."""
SHARE = (1 + 4 / 256) / 4
"""One byte and, for each 256 elements, a scale of four, in place of four bytes each."""
TWO_STATES = 1.5


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """States a quarter as large, and the fused kernel makes no temporaries."""
    if per_parameter(run) < TWO_STATES:
        return None
    draft = run.draft.without(run.optimizer_temporaries)
    return Edited(draft.scaled(SHARE, run.states & (run.size >= SMALLEST)), doubt=0.05)
