"""An optimizer without temporaries as large as the parameters."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.shrink_driver import shrink
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "fused_optimizer"

ALL = 1.0
"""Fused kernels update in place."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where the temporaries of an optimizer's step hold much."""
    yield from shrink(circumstances, SLUG, "optimizer_temporaries", ALL)
