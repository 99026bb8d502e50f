"""A key-value cache with a smaller budget."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.shrink_driver import shrink
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "bound_cache"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where a cache of keys and values holds much; its budget is the program's choice."""
    yield from shrink(circumstances, SLUG, "kv_cache", None)
