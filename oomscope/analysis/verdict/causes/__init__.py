"""Causes: the one thing without which a request would have succeeded. A cause is one file, and one entry in wording.

Each module has:

- `SLUG`;
- ``withheld(case)``: the bytes that it alone kept from the request, for the counterfactual;
- ``doubt(circumstances, tested)``: what keeps the verdict from high confidence, as a note; None only where no
  reading of the evidence gives another cause;
- ``headline(circumstances, tested)``: what to say, as notes;
- ``holds(circumstances, tested)``: whether the numbers of that headline bear it out; the next cause is taken if not;
- `DECIDING`: which numbers a reader needs to believe it, by the slugs of `oomscope.analysis.verdict.evidence`;
- `REMEDIES`: what helps, by the slugs of `oomscope.analysis.remedies`, best first;
- `LOOKS_LIKE`: what looks like it and is not, as codes for the documentation.
"""

from __future__ import annotations

from types import MappingProxyType

from oomscope.analysis.verdict.causes import (
    capacity,
    fragmentation,
    growth,
    other_stream,
    outside_allocator,
    oversized_request,
    private_pools,
    retained,
)
from oomscope.analysis.verdict.causes.cause import Cause

_ALL: tuple[Cause, ...] = (
    oversized_request, growth, retained, private_pools, other_stream, outside_allocator, fragmentation, capacity,
)  # fmt: skip

CAUSE_MODULES = MappingProxyType({cause.SLUG: cause for cause in _ALL})
"""By slug, in the order in which a cause is chosen among those that qualify."""

WALLS = (private_pools.SLUG, other_stream.SLUG)
"""Made by the program, not by chance: they need no margin."""
