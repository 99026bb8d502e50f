"""What the ledger of remedies knows of a piece of advice: what it saves at this peak, whether it serves the request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from oomscope.analysis.ledger import effect_on
from oomscope.analysis.ledger.edits import (
    adam_8bit,
    bf16,
    checkpoint,
    fsdp,
    fused_loss,
    fused_optimizer,
    sdpa,
    set_to_none,
    sgd,
)
from oomscope.analysis.remedies import (
    checkpoint_activations,
    chunk_loss,
    drop_gradients,
    fused_attention,
    shard_optimizer_state,
    shard_parameters,
)
from oomscope.analysis.remedies import fused_optimizer as use_fused_optimizer
from oomscope.analysis.remedies.effect import replayable
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

_EDITS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        checkpoint_activations.SLUG: (checkpoint.SLUG,),
        chunk_loss.SLUG: (fused_loss.SLUG,),
        drop_gradients.SLUG: (set_to_none.SLUG,),
        fused_attention.SLUG: (sdpa.SLUG,),
        use_fused_optimizer.SLUG: (fused_optimizer.SLUG,),
        shard_optimizer_state.SLUG: (adam_8bit.SLUG, sgd.SLUG),
        shard_parameters.SLUG: (fsdp.SLUG, bf16.SLUG),
    }
)
"""The remedies of the ledger that a piece of advice names, the one that its saving is of first."""


def completed(circumstances: Circumstances, advice: Advice) -> Advice:
    """`advice` with what the ledger knows in place of what is unknown; as it is where nothing can be replayed."""
    slugs = _EDITS.get(advice.slug)
    if slugs is None or (advice.saves_bytes is not None and advice.enough is not None):
        return advice
    if replayable(circumstances) is None:
        return advice
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
