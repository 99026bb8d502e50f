"""Let go of the models that finished passes made, before the next one makes its own."""

from __future__ import annotations

from collections.abc import Iterator

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
    yield Advice(slug, values, models.bytes, enough_by_sum(circumstances, models.bytes), at=loop)
