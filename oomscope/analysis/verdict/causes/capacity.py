"""Capacity: what is live is needed, and is too much."""

from __future__ import annotations

from oomscope.analysis.verdict import clauses
from oomscope.analysis.verdict.causes.fragmentation import AS_MUCH_AGAIN, LASTING_PASSES
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.piled import LEAST_PASSES
from oomscope.analysis.verdict.records import Suspect
from oomscope.analysis.verdict.shortage import MARGIN, Shortage, Tested
from oomscope.analysis.verdict.suspects import OF_THE_PASS, is_of_other_work, own_rows
from oomscope.model import FrameKind, Note, frame_kind, note

SLUG = "capacity"
DECIDING = ("request", "active", "limit")
REMEDIES = (
    "drop_last_pass", "backward_each_pass", "limit_calls_in_progress", "move_idle_model", "undo_change", "bound_batch",
    "load_on_cpu", "narrow_dtype", "allocator_setting", "split_request", "raise_cap", "fused_optimizer",
    "fused_attention", "bound_what_is_kept", "smaller_batch", "checkpoint_activations", "chunk_loss",
    "shard_optimizer_state", "drop_gradients", "shard_parameters", "load_once", "bound_cache",
)  # fmt: skip
LOOKS_LIKE = ("list_that_was_filled_over_passes", "kept_exception", "neighbour_on_the_card")

WORTH_NAMING = 0.05
"""Of the allocated bytes; a driver with less is left out of the headline."""

MUCH_KEPT = 0.2
"""Of the allocated bytes; an object that is no part of the model and keeps so much is named beside the drivers."""

MOST_OF_ALL = 0.4
"""Of the allocated bytes: one tensor of that size is named by its variable."""

_UNDERWAY = "causes.capacity.underway"
_LARGER = (
    "causes.pass.longer", "causes.pass.keeps", "causes.pass.input", "causes.pass.staircase", "causes.pass.gathers",
    "causes.pass.larger_call",
)  # fmt: skip
"""What has changed since the passes that fitted comes first."""

MOST_KEPT = 0.5
"""Of the allocated bytes; where one object that is no part of the model keeps more, it is the headline."""


THE_SAME = 0.9
"""Of what calls at once hold; an object that keeps so much of it is told in telling of them."""


def withheld(case: Shortage) -> int:
    """Nothing alone kept the request from memory: this is what is left when no other cause qualifies."""
    del case
    return 0


def doubt(circumstances: Circumstances, tested: Tested) -> Note | None:
    """None where the limit and what fills the card are known, and nothing that was free would have been enough."""
    case, low = circumstances.shortage, circumstances.request.limit.low
    if (unclear := _unclear(circumstances, tested)) is not None:
        return unclear
    if case.free.largest >= case.size:
        return note("doubts.served")
    if circumstances.may_be_kept:
        return note("doubts.earlier_failure")
    idle = sum(one.bytes for one in circumstances.idle_models)
    for code, bytes_ in (
        ("doubts.not_needed", circumstances.may_be_done_with),
        ("doubts.idle_model", idle),
        ("doubts.other_models", circumstances.other_models),
        ("doubts.earlier_training", circumstances.left_by_trace),
        ("doubts.last_pass", _left_by_last_pass(circumstances)),
    ):
        if case.spare(bytes_, low) >= MARGIN * low:
            return note(code, bytes=bytes_)
    if circumstances.failing_pass is not None and circumstances.failing_pass.frees_less:
        return note("doubts.keeps_more")
    if _rising(circumstances) and not _told_why(circumstances):
        return note("doubts.rising")
    if circumstances.piled.holder is not None or circumstances.growth or circumstances.piled.debris:
        return note("doubts.piled")
    return None


def _left_by_last_pass(circumstances: Circumstances) -> int:
    """Bytes of the pass before that this one may not need: not of a loop that gathers, nor where names tell."""
    found = circumstances.failing_pass
    known = circumstances.names_known or found is None or found.gathers
    return 0 if known else circumstances.left_by_last_pass


def _unclear(circumstances: Circumstances, tested: Tested) -> Note | None:
    """What is not known of the limit, of the free memory or of the card."""
    limit, active = circumstances.request.limit, circumstances.request.totals.active
    if not tested.certain:
        return note("doubts.limit")
    # Where the rest of the pass is known, the free memory would not have been enough for that.
    rest = circumstances.needs.still_to_come or 0
    if tested.together and not tested.qualifying and rest <= limit.high - active:
        return note("doubts.together")
    return note("doubts.card") if circumstances.card_unknown else None


def headline(circumstances: Circumstances, tested: Tested) -> tuple[Note, ...]:
    """What is needed at once against the limit, what the memory is, and how far the loop had come.

    Calls at once that hold most of it come first, or an object that keeps most (with by how much more every pass), or
    the pass before where most is of that one, or how much larger this one is than those that fitted.
    """
    del tested
    first = circumstances.failing_pass is not None and circumstances.failing_pass.is_first
    kept, left, needs = _keeper(circumstances), _last_pass(circumstances), _needs(circumstances)
    calls = clauses.calls_in_progress(circumstances)
    idle = _idle(circumstances)
    mostly = [one for one in (*calls, *kept, *left, *idle) if one.values["share"] >= MOST_KEPT][:1]
    if mostly and mostly[0] in calls:
        kept = tuple(one for one in kept if one.values["share"] < THE_SAME * mostly[0].values["share"])
    passes = (*_larger_call(circumstances), *(() if first else clauses.failing_pass(circumstances)))
    larger = [one for one in passes if one.code in _LARGER]
    gathers = [one for one in passes if one.code == "causes.pass.gathers"]
    if gathers and mostly and mostly[0] in kept:
        return (*mostly, *gathers, needs)  # why it is kept; what else there is explains nothing
    outsized = () if larger or calls else _outsized(circumstances, kept)
    rising, fills = _rising(circumstances), fills_an_object(circumstances)
    return (
        *(outsized or mostly or larger),
        *(rising if fills else ()),
        needs,
        *_as_larger(circumstances),
        *(() if fills else rising),
        *(mostly if outsized else ()),
        *(_filled_by(circumstances, told=bool(mostly)) if needs.code != _UNDERWAY else _largest_tensor(circumstances)),
        *(one for one in (*kept, *left) if one not in mostly),
        *(one for one in idle if one not in mostly),
        *(() if fills else _left_over(circumstances, needs)),
        *clauses.optimizer_begins(circumstances),
        *(one for one in calls if one not in mostly),
        *(one for one in passes if mostly or one not in larger),
    )


def _needs(circumstances: Circumstances) -> Note:
    """What must be there at once, as far as the request shows it, against the limit."""
    request, failing = circumstances.request, circumstances.failing_pass
    needs, low = _at_once(circumstances), request.limit.low
    like_last = request.totals.active + (circumstances.needs.still_to_come or 0)
    code = "causes.capacity.needs" if needs > low else "causes.capacity.nearly"
    if needs <= low and _may_be_in_its_middle(circumstances):
        before, made = circumstances.needs.most, circumstances.needs.made_so_far
        return note(
            _UNDERWAY,
            made=made,
            size=request.size,
            phase=circumstances.asked.phase if failing is None else None,
            before=before if before is not None and before < made else None,
        )
    if needs <= low < like_last:
        code, needs = "causes.capacity.like_last", like_last
    capped = next(iter(clauses.cap(circumstances)), None)
    values = {
        "needs": needs,
        "limit": low,
        "over": max(needs - low, 0),
        "about": request.limit.source == "bracket",
        "free": None if capped is None else capped.values["free"],
        "completed": None if failing is None or not (failing.finished or failing.is_first) else failing.finished,
        "loop": None if failing is None or failing.finished else failing.loop,
        "function": None if circumstances.needs.last_call is None else circumstances.needs.last_call.function,
    }
    return note(code, **values)


def _outsized(circumstances: Circumstances, kept: tuple[Note, ...]) -> tuple[Note, ...]:
    """That the request was many times as large as all before it, and larger than what any one object keeps.

    Not where nobody knows what keeps the rest: then what is left over, or splits the free memory, may be the cause.
    """
    times, request = circumstances.needs.times_the_largest, circumstances.request
    if times is None or not circumstances.names_known or any(one.values["retained"] > request.size for one in kept):
        return ()
    return (note("causes.capacity.outsized", size=request.size, place=request.caller or request.site, times=times),)


def _as_larger(circumstances: Circumstances) -> tuple[Note, ...]:
    """What a larger pass comes to, if all of it is as much larger as what it has asked for so far."""
    whole, found = circumstances.needs.as_larger, circumstances.failing_pass
    if whole is None or found is None or whole <= (1 + MARGIN) * _at_once(circumstances):
        return ()
    return (note("causes.capacity.as_larger", bytes=whole, ratio=found.ratio),)


def _larger_call(circumstances: Circumstances) -> tuple[Note, ...]:
    """By how much this call of the function that runs the model asks for more than those of other loops before it."""
    found = circumstances.needs.larger_call
    return (
        () if found is None else (note("causes.pass.larger_call", place=circumstances.asked.site, **found._asdict()),)
    )


def fills_an_object(circumstances: Circumstances) -> bool:
    """Whether one object keeps most of what is alive, and passes need more and more."""
    kept = _keeper(circumstances)
    return bool(kept) and kept[0].values["share"] >= MOST_KEPT and _rises(circumstances)


def _rises(circumstances: Circumstances) -> bool:
    """Whether each of the last passes has needed more than the one before, and ten more like that would matter.

    Not where the input is said to grow, nor where passes are not one after another.
    """
    failing = circumstances.failing_pass
    if circumstances.in_progress or (failing is not None and failing.is_larger):
        return False
    return LASTING_PASSES * circumstances.needs.rise >= MARGIN * circumstances.request.limit.low


def _rising(circumstances: Circumstances) -> tuple[Note, ...]:
    return (note("causes.capacity.rising", bytes=circumstances.needs.rise),) if _rises(circumstances) else ()


def _told_why(circumstances: Circumstances) -> bool:
    """Whether it is known why passes need more and more: larger batches, graphs for one backward, a history."""
    told = (*clauses.failing_pass(circumstances), *clauses.optimizer_begins(circumstances))
    return any(one.code in (*_LARGER, "causes.capacity.history") for one in told)


def _may_be_in_its_middle(circumstances: Circumstances) -> bool:
    """Whether the free memory, in one piece, would have served this request of a pass the like of which has not fitted.

    What more it would have asked for is not known.
    """
    case, passing = circumstances.shortage, circumstances.failing_pass
    spare = case.spare(case.free.usable, case.limit.low)
    return (
        passing is None or not passing.has_fitted
    ) and MARGIN * case.limit.low <= spare < AS_MUCH_AGAIN * circumstances.needs.at_work


def _at_once(circumstances: Circumstances) -> int:
    """Bytes: what is in use with the request, or with all the state that an optimizer has begun to make."""
    there, needs = circumstances.needs.state_to_come
    return circumstances.request.totals.active + max(circumstances.request.size, needs - there)


def _left_over(circumstances: Circumstances, needs: Note) -> tuple[Note, ...]:
    """Where the sum alone does not refute the request: what it would have left of the memory it may use."""
    request = circumstances.request
    if needs.code == _UNDERWAY and _as_larger(circumstances):
        return ()  # the rest of it is told
    if needs.code == _UNDERWAY:
        spare = circumstances.shortage.spare(request.free.usable, request.limit.low)
        return (note("causes.capacity.rest_unknown", bytes=spare),)
    if needs.code != "causes.capacity.nearly":
        return ()
    spare = circumstances.shortage.spare(request.free.usable, request.limit.low)
    if spare < 0:
        return (note("causes.capacity.short", bytes=-spare, size=request.size),)
    code = "causes.capacity.close" if spare else "causes.capacity.nothing_left"
    return (note(code, bytes=spare, size=request.size),)


def _last_pass(circumstances: Circumstances) -> tuple[Note, ...]:
    """That two passes are alive at once, where what is left of the first is much."""
    left, keeper = circumstances.left_by_last_pass, circumstances.keeper_of_last_pass
    share = left / max(circumstances.request.totals.allocated, 1)
    if share < MUCH_KEPT:
        return ()
    holder = None if keeper is None else keeper.holder
    return (note("causes.pass.left", bytes=left, holder=holder, share=share),)


def _keeper(circumstances: Circumstances) -> tuple[Note, ...]:
    """The object, no part of the model, that keeps much of what is alive."""
    allocated = circumstances.request.totals.allocated
    suspects = [one for one in circumstances.suspects if one.share >= MUCH_KEPT]
    keeper = next((one for one in suspects if _is_worth_naming(circumstances, one)), None)
    if keeper is None:
        return ()
    values = {"holder": keeper.holder, "retained": keeper.retained, "live": allocated, "share": keeper.share}
    return (note("causes.capacity.keeper", **values),)


def _idle(circumstances: Circumstances) -> tuple[Note, ...]:
    """The model that takes no part, or may take none, where its parameters are much of what is in use."""
    least = MUCH_KEPT * circumstances.request.totals.allocated
    found = [one for one in circumstances.idle_models[:1] if one.bytes >= least]
    live = max(circumstances.request.totals.allocated, 1)
    return tuple(
        note(
            "causes.capacity.untrained_model" if one.untrained else "causes.capacity.idle_model",
            holder=one.holder,
            bytes=one.bytes,
            live=live,
            share=one.bytes / live,
        )
        for one in found
    )


def _filled_by(circumstances: Circumstances, *, told: bool) -> tuple[Note, ...]:
    """What the live bytes are, and what was asked for beside them; `told`: what most of them are was said already."""
    allocated, size = circumstances.request.totals.allocated, circumstances.request.size
    if told:
        return (note("causes.capacity.asked", size=size),)
    largest = [one for one in circumstances.drivers if one.bytes > WORTH_NAMING * max(allocated, 1)][:3]
    parts = tuple((one.slug, one.bytes) for one in largest)
    if not parts:
        return (note("causes.capacity.allocated", bytes=allocated, size=size), *_largest_tensor(circumstances))
    drivers = note("causes.capacity.drivers", parts=parts, live=allocated, size=size)
    return (drivers, *_loading(circumstances), *_largest_tensor(circumstances))


def _loading(circumstances: Circumstances) -> tuple[Note, ...]:
    """The checkpoint in whose load the request failed, where it is much of what is in use."""
    found = circumstances.needs.loading
    if found is None or found.bytes < WORTH_NAMING * circumstances.request.totals.allocated:
        return ()
    return (note("causes.capacity.loading", bytes=found.bytes, place=found.place),)


def _largest_tensor(circumstances: Circumstances) -> tuple[Note, ...]:
    """The one tensor of this pass that is much of what is in use, by the variable that the recording saw it in."""
    study, entry = circumstances.study, circumstances.request.entry
    for one in circumstances.suspects:
        if one.kind in ("tensor", "graph") and one.at is not None and frame_kind(one.at.file) is FrameKind.OWN:
            largest = int(study.history.size[own_rows(study, entry, one.holder)].max(initial=0))
            if largest >= MOST_OF_ALL * circumstances.request.totals.allocated:
                return (note("causes.capacity.tensor", holder=one.holder, bytes=largest),)
    return ()


def _piles_up(suspect: Suspect) -> bool:
    return suspect.kind not in OF_THE_PASS or suspect.passes >= LEAST_PASSES


def _is_worth_naming(circumstances: Circumstances, suspect: Suspect) -> bool:
    in_modules = circumstances.functions_in_modules if circumstances.is_in_forward else None
    return _piles_up(suspect) or (in_modules is not None and is_of_other_work(suspect, in_modules))


def holds(circumstances: Circumstances, tested: Tested) -> bool:
    """Always: it claims nothing but the sums."""
    del circumstances, tested
    return True
