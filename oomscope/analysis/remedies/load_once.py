"""A second copy of the model: loaded on the CPU, or shared."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.records import Advice
from oomscope.analysis.remedies.by_driver import shrink
from oomscope.analysis.verdict.circumstances import Circumstances

SLUG = "load_once"

ALL = 1.0
"""A copy that lies on the CPU takes nothing of the card."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where the model is there twice."""
    yield from shrink(circumstances, SLUG, "duplicate_model", ALL)
