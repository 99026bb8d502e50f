"""Gradients set to None after the step: they are not needed in the next forward."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.shrink_driver import shrink
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "drop_gradients"

ALL = 1.0
"""Backward makes them anew."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where a forward runs beside the gradients of the step before; backward and the step itself need them."""
    if circumstances.in_forward:
        yield from shrink(circumstances, SLUG, "gradients", ALL)
