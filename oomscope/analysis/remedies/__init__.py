"""What would help, and what would not. A remedy is one file, and one entry in `oomscope.wording.remedies`.

Each module has `SLUG` and ``propose(circumstances)``, which yields at most a few pieces of `Advice`: the line or the
object, what it saves, and whether it alone is enough. A cause names the remedies against it (`REMEDIES`), best first.
"""

from __future__ import annotations

from types import MappingProxyType

from oomscope.analysis.remedies import (
    accumulate_predictions,
    allocator_setting,
    backward_each_pass,
    bound_batch,
    bound_cache,
    bound_what_is_kept,
    bucket_lengths,
    cancel_deferred_call,
    checkpoint_activations,
    chunk_loss,
    collect_garbage,
    copy_view,
    detach_what_is_kept,
    drop_gradients,
    drop_last_pass,
    drop_optimizer,
    forget_exception,
    free_the_card,
    fused_attention,
    fused_optimizer,
    let_pool_go,
    limit_calls_in_progress,
    load_on_cpu,
    load_once,
    move_idle_model,
    move_pins,
    narrow_dtype,
    one_stream,
    raise_cap,
    release_checkpoint,
    release_closure,
    release_ended_training,
    release_history,
    release_models,
    release_results,
    release_variable,
    retry_request,
    shard_optimizer_state,
    shard_parameters,
    share_graph_pool,
    smaller_batch,
    split_request,
    undo_change,
)
from oomscope.analysis.remedies.by_ledger import completed
from oomscope.analysis.remedies.refuted import refuted
from oomscope.analysis.remedies.remedy import Remedy
from oomscope.analysis.verdict.causes import CAUSE_MODULES
from oomscope.analysis.verdict.causes.capacity import fills_an_object
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

_ALL: tuple[Remedy, ...] = (
    accumulate_predictions, allocator_setting, backward_each_pass, bound_batch, bound_cache,
    bound_what_is_kept, bucket_lengths, cancel_deferred_call, checkpoint_activations, chunk_loss,
    collect_garbage, copy_view, detach_what_is_kept, drop_gradients, drop_last_pass, drop_optimizer,
    forget_exception, free_the_card, fused_attention, fused_optimizer, let_pool_go, limit_calls_in_progress,
    load_on_cpu, load_once, move_idle_model, move_pins, narrow_dtype, one_stream, raise_cap, release_checkpoint,
    release_closure, release_ended_training, release_history, release_models, release_results,
    release_variable, retry_request, shard_optimizer_state, shard_parameters, share_graph_pool, smaller_batch,
    split_request, undo_change,
)  # fmt: skip

REMEDY_MODULES = MappingProxyType({remedy.SLUG: remedy for remedy in _ALL})

_DELAYS = MappingProxyType({"growth": ("raise_cap", "smaller_batch"), "retained": ("raise_cap",)})
"""What lets a request through and leaves a cause as it is: told behind all that removes the cause."""

LEAST_OF_MISSING = 0.5
"""Of the bytes that the request lacked: what advice has to save that is not certain to be enough."""
MOST_ADVICE = 6
"""A reader who is told ten things does none."""


def advise(circumstances: Circumstances, cause: str) -> tuple[Advice, ...]:
    """Advice on a failed request: what is known to be enough first, then as the cause orders it; refuted last.

    What only delays the failure comes behind what may remove its cause, however sure it is that this request would fit,
    but before what is known not to be enough alone. Of what is left over, the object that keeps most comes first.
    """
    # Where each pass makes an object keep more than the last, no cap is high enough.
    delays = ("raise_cap",) if cause == "capacity" and fills_an_object(circumstances) else _DELAYS.get(cause, ())
    found = [advice for slug in CAUSE_MODULES[cause].REMEDIES for advice in REMEDY_MODULES[slug].propose(circumstances)]
    found = [completed(circumstances, advice) for advice in found]
    found = [advice for advice in found if not _is_too_little(circumstances, advice)]
    named = circumstances.piled.debris[0].holder if cause == "retained" and circumstances.piled.debris else None
    found.sort(key=lambda one: (*_place(one, delays, cause), named not in (None, one.values.get("holder"))))
    return (*found[:MOST_ADVICE], *refuted(circumstances, cause, {advice.slug for advice in found}))


def _place(advice: Advice, delays: tuple[str, ...], cause: str) -> tuple[bool, ...]:
    # Where the program needs too much, a setting that could not be replayed is the last thing to try.
    untried = advice.slug == "allocator_setting.untried" and cause == "capacity"
    return advice.enough is False, advice.slug.partition(".")[0] in delays, advice.enough is not True, untried


def _is_too_little(circumstances: Circumstances, advice: Advice) -> bool:
    """Whether it may help only if holes join, and saves little of what is missing without them."""
    case = circumstances.shortage
    missing = -case.spare(0, case.limit.low)
    return advice.enough is None and 0 < (advice.saves_bytes or 0) < LEAST_OF_MISSING * missing
