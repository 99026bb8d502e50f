"""Let go of the models that finished passes made, before the next one makes its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from oomscope.analysis.attribution.held_blocks import holders_in_blocks
from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "release_models"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where whole models, or parameters of each pass, have piled up and no object is known to keep them."""
    models = circumstances.piled.models
    if models is None or circumstances.piled.holder is not None:
        return
    loop = circumstances.study.loops.location(models.run)
    slug, values = SLUG if models.trained else f"{SLUG}.parameters", {"loop": loop, "bytes": models.bytes}
    keeper = _keeper(circumstances, models.bytes) if models.trained else None
    if keeper is not None:
        slug, values = f"{SLUG}.held", {"holder": keeper, **values}
    yield Advice(slug, values, models.bytes, enough_by_sum(circumstances, models.bytes), at=loop)


def _keeper(circumstances: Circumstances, bytes_: int) -> str | None:
    """The collection whose items, each with a model of its own, keep most of `bytes_`; None where none is known."""
    kept: Counter[str] = Counter()
    for one in holders_in_blocks(circumstances.study):
        name, item, _ = (one.holder or "").partition("[*]")
        if item:
            kept[name] += one.bytes or 0
    return next((name for name, held in kept.most_common(1) if 2 * held >= bytes_), None)
