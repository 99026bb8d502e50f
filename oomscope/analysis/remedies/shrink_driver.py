"""What several remedies share: each shrinks one driver."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

WORTH_ADVISING = 0.05
"""Of the allocated bytes; shrinking what is less changes nothing."""


def shrink(
    circumstances: Circumstances, slug: str, driver: str, saved: float | None, *, least: int = 0
) -> Iterator[Advice]:
    """Advice `slug` where `driver` holds enough.

    Args:
        circumstances: of the request.
        slug: of the advice.
        driver: whose bytes it makes fewer.
        saved: the share of them that it saves; None unknown.
        least: bytes that the driver will have, where they are still being made.
    """
    found = next((one for one in circumstances.drivers if one.slug == driver), None)
    if found is None or found.bytes <= WORTH_ADVISING * max(circumstances.request.totals.allocated, 1):
        return
    saves = None if saved is None else int(max(found.bytes, least) * saved)
    enough = None if saves is None else enough_by_sum(circumstances, saves)
    yield Advice(slug, {"bytes": found.bytes, "place": found.site}, saves, enough, at=found.site)
