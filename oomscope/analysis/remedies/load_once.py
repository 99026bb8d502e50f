"""A second copy of the model: loaded on the CPU, or shared."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.shrink_driver import shrink
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "load_once"

ALL = 1.0
"""A copy that lies on the CPU takes nothing of the card."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where the model is there twice."""
    yield from shrink(circumstances, SLUG, "duplicate_model", ALL)
