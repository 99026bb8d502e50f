"""What the ledger of remedies knows of a piece of advice: what it saves at this peak, whether it serves the request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from oomscope.analysis.remedies import (
    checkpoint_activations,
    chunk_loss,
    drop_gradients,
    fused_attention,
    fused_optimizer,
    shard_optimizer_state,
    shard_parameters,
)
from oomscope.analysis.remedies.effect import replayable
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

EDITS_OF: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        checkpoint_activations.SLUG: ("checkpoint",),
        chunk_loss.SLUG: ("fused_loss",),
        drop_gradients.SLUG: ("set_to_none",),
        fused_attention.SLUG: ("sdpa",),
        fused_optimizer.SLUG: ("fused_optimizer",),
        shard_optimizer_state.SLUG: ("adam_8bit", "sgd"),
        shard_parameters.SLUG: ("fsdp", "bf16"),
    }
)
"""The remedies of the ledger that a piece of advice names, the one that its saving is of first."""


def completed(circumstances: Circumstances, advice: Advice) -> Advice:
    """`advice` with what the ledger knows in place of what is unknown; as it is where nothing can be replayed."""
    slugs = EDITS_OF.get(advice.slug)
    if slugs is None or (advice.saves_bytes is not None and advice.enough is not None):
        return advice
    if replayable(circumstances) is None:
        return advice
    # The ledger and the plan that it rests on are a quarter of the package: loaded where one of them is replayed.
    from oomscope.analysis.ledger import effect_on

    entry = circumstances.request.entry
    effects = [effect_on(circumstances.study, slug, entry) for slug in slugs]
    if effects[0] is None:
        return advice
    serves = effects[0].serves
    if serves is False and any(effect is None or effect.serves is not False for effect in effects[1:]):
        serves = None  # another one that the advice names may do
    return replace(
        advice,
        saves_bytes=effects[0].saves_bytes if advice.saves_bytes is None else advice.saves_bytes,
        enough=serves if advice.enough is None else advice.enough,
    )
