"""Capacity: what is live is needed, and is too much."""

from __future__ import annotations

from oomscope.analysis.verdict import clauses
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.piled import LEAST_PASSES
from oomscope.analysis.verdict.records import Suspect
from oomscope.analysis.verdict.shortage import MARGIN, Shortage, Tested
from oomscope.analysis.verdict.suspects import OF_THE_PASS
from oomscope.model import Note, note

SLUG = "capacity"
DECIDING = ("request", "active", "limit")
REMEDIES = (
    "raise_cap", "limit_calls_in_progress", "bound_what_is_kept", "smaller_batch", "checkpoint_activations",
    "chunk_loss", "fused_attention", "shard_optimizer_state", "fused_optimizer", "drop_gradients",
    "shard_parameters", "load_once", "bound_cache", "allocator_setting",
)  # fmt: skip
LOOKS_LIKE = ("list_that_was_filled_over_passes", "kept_exception", "neighbour_on_the_card")

WORTH_NAMING = 0.05
"""Of the allocated bytes; a driver with less is left out of the headline."""

MUCH_KEPT = 0.2
"""Of the allocated bytes; an object that is no part of the model and keeps so much is named beside the drivers."""

MOST_KEPT = 0.5
"""Of the allocated bytes; where one object that is no part of the model keeps more, it is the headline."""


def withheld(case: Shortage) -> int:
    """Nothing alone kept the request from memory: this is what is left when no other cause qualifies."""
    del case
    return 0


def confidence(circumstances: Circumstances, tested: Tested) -> str:
    """High where the limit and what fills the card are known, and nothing that was free would have been enough."""
    if not tested.certain or (tested.together and not tested.qualifying) or circumstances.card_unknown:
        return "medium"
    case = circumstances.shortage
    if case.free.largest >= case.size:
        return "low"  # by these numbers it should have been served: something is not known
    if circumstances.may_be_kept:
        return "medium"  # the exception of an earlier failure may keep it
    low = case.limit.low
    if case.spare(circumstances.may_be_done_with, low) >= MARGIN * low:
        return "medium"  # without what this pass may not need, there would have been room
    if circumstances.piled.holder is not None or circumstances.growth or circumstances.piled.debris:
        return "medium"  # something has piled up, though not enough of it to be the cause alone
    return "high"


def headline(circumstances: Circumstances, tested: Tested) -> tuple[Note, ...]:
    """What the memory is, what the request lacks, and how far the loop had come."""
    del tested
    request, case = circumstances.request, circumstances.shortage
    spare = case.spare(request.free.usable, request.limit.low)
    lacks = note("causes.capacity.short", bytes=-spare, size=request.size)
    left = note("causes.capacity.close" if spare else "causes.capacity.nothing_left", bytes=spare, size=request.size)
    return (
        *_filled_by(circumstances),
        lacks if spare < 0 else left,
        *clauses.optimizer_begins(circumstances),
        *clauses.calls_in_progress(circumstances),
        *clauses.failing_pass(circumstances),
        *clauses.cap(circumstances),
    )


def _filled_by(circumstances: Circumstances) -> tuple[Note, ...]:
    allocated = circumstances.request.totals.allocated
    keeper = next((one for one in circumstances.suspects if one.share >= MUCH_KEPT and _is_worth_naming(one)), None)
    kept: tuple[Note, ...] = ()
    if keeper is not None:
        kept = (note("causes.capacity.keeper", holder=keeper.holder, retained=keeper.retained, live=allocated),)
        if keeper.share >= MOST_KEPT:
            return kept
    largest = [one for one in circumstances.drivers if one.bytes > WORTH_NAMING * max(allocated, 1)][:3]
    if not largest:
        return (note("causes.capacity.allocated", bytes=allocated), *kept)
    parts = tuple((one.slug, one.bytes) for one in largest)
    return (note("causes.capacity.drivers", parts=parts, live=allocated), *kept)


def _is_worth_naming(suspect: Suspect) -> bool:
    return suspect.kind not in OF_THE_PASS or suspect.passes >= LEAST_PASSES


def holds(circumstances: Circumstances, tested: Tested) -> bool:
    """Always: it claims nothing but the sums."""
    del circumstances, tested
    return True
