"""Growth: what finished passes of a loop leave behind rises and never comes back."""

from __future__ import annotations

import re

from oomscope.analysis.passes.records import Growth
from oomscope.analysis.verdict import clauses
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.hooks import HOOKS
from oomscope.analysis.verdict.models_held import kept_models
from oomscope.analysis.verdict.piled import MOSTLY
from oomscope.analysis.verdict.records import Suspect
from oomscope.analysis.verdict.shortage import MARGIN, Shortage, Tested
from oomscope.model import Note, note

SLUG = "growth"
DECIDING = ("request", "without", "limit")
REMEDIES = (
    "accumulate_predictions", "drop_optimizer", "copy_view", "forget_exception", "cancel_deferred_call",
    "collect_garbage", "release_models", "detach_what_is_kept", "bound_what_is_kept", "raise_cap", "smaller_batch",
)  # fmt: skip
NEARLY_ALL = 0.9
"""Of what an object keeps; where passes of the loop made less, their number would be told of the wrong bytes."""

FEW_PASSES = 10
"""So many may be all that the program meant to make."""
AMPLE = 0.1
"""Of the limit, left over if the free memory were one piece."""

EARLIER = "what finished passes left behind"
"""What could go of an object that the pass underway fills as well."""
OTHERS = "the older ones"
"""The same of hooks: the newest may be in use."""

_CLOSURE = re.compile(r"^ \(closure\) ")
LOOKS_LIKE = ("layers_of_one_forward", "gradient_accumulation", "unrolled_recurrence", "calls_in_progress", "window")


def withheld(case: Shortage) -> int:
    """What finished passes left behind."""
    return case.grown


def doubt(circumstances: Circumstances, tested: Tested) -> Note | None:
    """None where what rises beyond doubt would have been enough by itself."""
    low, piled = circumstances.request.limit.low, circumstances.piled
    if circumstances.shortage.spare(circumstances.wasted, low) >= MARGIN * low:
        return note("doubts.rounding", bytes=circumstances.wasted)
    if piled.holder is None and piled.grown < MOSTLY * circumstances.request.totals.allocated:
        return note("doubts.being_filled")
    if piled.passes <= FEW_PASSES and _would_fit_in_one_piece(circumstances):
        joins = circumstances.rising.joins if circumstances.rising is not None and not piled.passes else 0
        return note("doubts.long_enough", passes=piled.passes, joins=joins)
    is_error = piled.holder is not None and piled.holder.kind == "exception"  # no work makes errors for itself
    if piled.passes <= FEW_PASSES and circumstances.went_as_far_before and not is_error:
        return note("doubts.went_as_far")  # such as the layers that every forward goes through
    if not circumstances.leaks_for_sure:
        return note("doubts.meant_to_grow")
    if _keeps_several_a_pass(circumstances):
        return note("doubts.models_in_use")
    if circumstances.shortage.spare(piled.steady, low) < MARGIN * low:
        return note("doubts.not_steady")
    return None if tested.certain else note("doubts.limit")


def _would_fit_in_one_piece(circumstances: Circumstances) -> bool:
    """Whether the free memory, were it one piece, would have served the request with much to spare."""
    case, low = circumstances.shortage, circumstances.request.limit.low
    return case.free.largest < case.size and case.spare(case.free.usable, low) >= AMPLE * low


def _keeps_several_a_pass(circumstances: Circumstances) -> bool:
    """Whether an object keeps more models than passes have gone by: a population, of which some go on."""
    holder = circumstances.piled.holder
    if holder is None or holder.kind != "collection":
        return False
    kept = {one.holder: models for one, models in kept_models(circumstances.study)}
    return kept.get(holder.holder, 0) > holder.passes + 1


def headline(circumstances: Circumstances, tested: Tested) -> tuple[Note, ...]:
    """What grows, by how much, and who keeps it."""
    piled, growth = circumstances.piled, circumstances.growth
    if piled.holder is not None:
        first = _by_holder(circumstances, piled.holder)
    elif piled.models is not None:
        loop = circumstances.study.loops.location(piled.models.run)
        code = "causes.growth.models" if piled.models.trained else "causes.growth.parameters"
        first = note(code, bytes=piled.models.bytes, passes=piled.models.passes, loop=loop)
    elif circumstances.rising is not None and circumstances.rising.grown >= piled.grown:
        rising = circumstances.rising
        place = circumstances.request.caller or circumstances.request.site
        first = note(
            "causes.growth.rising", place=place, bytes=rising.live, joins=rising.joins, per_join=rising.per_join
        )
    else:
        first = _by_site(growth)
    held = () if piled.holder is not None else clauses.also_held(circumstances, piled.grown)
    if not held and piled.holder is None and piled.models is None:
        held = clauses.state_of(circumstances, piled.grown)
    held = (*held, *_beside(circumstances))
    without = _told_without(circumstances, tested.qualifying[0].bytes)
    of_this_pass = piled.holder is not None and first.values.get("this") and piled.holder.retained > without
    it = OTHERS if first.code == "causes.growth.hooks" else EARLIER if of_this_pass else "it"
    it = "them" if piled.beside else it
    spared = clauses.without(circumstances, without, it)
    return (first, *held, spared, *clauses.in_pieces(circumstances))


def _beside(circumstances: Circumstances) -> tuple[Note, ...]:
    """What the same passes have filled as well."""
    if not (others := circumstances.piled.beside):
        return ()
    more = sum(one.earlier_bytes for one in others[1:])
    values = {"others": len(others) - 1, "more": more} if more else {}
    return (note("causes.growth.beside", holder=others[0].holder, retained=others[0].earlier_bytes, **values),)


def _by_holder(circumstances: Circumstances, holder: Suspect) -> Note:
    """The object that keeps what grows. Exceptions come now and then, and not with every pass."""
    live, kept = circumstances.request.totals.allocated, {"holder": holder.holder, "retained": holder.retained}
    if holder.kind == "exception":
        return note("causes.growth.exceptions", live=live, **kept)
    if holder.kind == "cycle":
        way = holder.holder.removeprefix("reference cycle: ")
        per_pass = circumstances.piled.per_pass
        return note("causes.growth.cycle", live=live, cycle=way, passes=holder.passes, per_pass=per_pass, **kept)
    if holder.kind == "hooks":
        module, kept_in = HOOKS.split(holder.holder, maxsplit=1)
        each = "each of" if module.endswith("[*]") else None
        part = _CLOSURE.sub("", kept_in).removeprefix(".").removeprefix("__self__.") or None
        values = {"module": module, "part": part, "hooks": holder.passes + 1, "each": each}
        return note("causes.growth.hooks", live=live, **values, **kept)
    passes = holder.passes if holder.finished_bytes >= NEARLY_ALL * holder.earlier_bytes else None
    return note(
        "causes.growth.holder" if holder.shows is None else "causes.growth.views",
        live=live,
        part=holder.part,
        tensors=holder.tensors,
        its_graph="its autograd graph" if holder.kind == "graph" else None,
        passes=passes,
        this=" and this one" if passes and holder.retained > holder.earlier_bytes else "",
        per_pass=circumstances.piled.per_pass,
        **kept,
    )


def _told_without(circumstances: Circumstances, grown: int) -> int:
    """The bytes that the headline promises: of the objects that it names, if they are enough alone."""
    holder, low = circumstances.piled.holder, circumstances.request.limit.low
    if circumstances.piled.beside:
        return grown
    if holder is not None and circumstances.shortage.spare(holder.earlier_bytes, low) >= MARGIN * low:
        return holder.earlier_bytes
    return grown


def _by_site(growth: tuple[Growth, ...]) -> Note:
    first = growth[0]
    place = first.caller or first.site
    if first.kind == "reallocation":
        return note("causes.growth.reallocation", place=place, bytes=first.live_bytes, per_pass=first.bytes_per_step)
    if first.kind == "time":
        return note("causes.growth.time", place=place, bytes=first.live_bytes)
    alike = [one for one in growth if one.kind == "generations" and one.within_step == first.within_step]
    passes = first.generations - 1  # the newest generation is not left over yet
    per_pass, bytes_ = sum(one.bytes_per_step for one in alike), sum(one.spared_bytes for one in alike)
    values = {"bytes": bytes_, "passes": passes, "loop": first.loop, "place": place}
    every = round(bytes_ / passes / per_pass) if passes and per_pass else 1
    if every > 1:
        return note("causes.growth.every", each=bytes_ // passes, every=every, **values)
    return note("causes.growth.passes", per_pass=per_pass, **values)


def holds(circumstances: Circumstances, tested: Tested) -> bool:
    """No more has piled up than is allocated, and something that can be named keeps it."""
    del tested
    piled = circumstances.piled
    named = bool(piled.holder or piled.models or circumstances.rising or circumstances.growth)
    # What a series has grown by counts in the tensor that is there and in the request for the next.
    most = circumstances.request.totals.active + (circumstances.request.size if circumstances.rising else 0)
    return named and 0 < piled.grown <= most
