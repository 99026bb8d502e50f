"""Sentences and judgements that several causes share."""

from __future__ import annotations

from oomscope.analysis.attribution.held_blocks import holders_in_blocks
from oomscope.analysis.labels.categories import OPTIMIZER_STATE
from oomscope.analysis.memory.records import Pin
from oomscope.analysis.passes.records import FailingPass
from oomscope.analysis.records import Location
from oomscope.analysis.verdict.calls import bytes_of_calls
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.places import live_at_places
from oomscope.analysis.verdict.shortage import MARGIN, Tested
from oomscope.analysis.verdict.suspects import UNDERWAY, held_rows, reaching
from oomscope.model import Note, note


def doubt_of_wall(circumstances: Circumstances, tested: Tested, piece: int) -> Note | None:
    """None where a known `piece` would have served the request, with margin, at every limit that is possible."""
    low, spare = circumstances.request.limit.low, tested.qualifying[0].spare
    if piece < circumstances.request.size:
        return note("doubts.no_piece")  # behind the wall lie holes that would not have served it either
    if circumstances.uncertain_bytes > MARGIN * low:
        return note("doubts.sizes", bytes=circumstances.uncertain_bytes)
    if not tested.certain:
        return note("doubts.limit")
    return None if spare >= MARGIN * low else note("doubts.little_to_spare", bytes=max(spare, 0))


def also_held(circumstances: Circumstances, bytes_: int) -> tuple[Note, ...]:
    """Who reaches most of `bytes_`, where no object alone keeps them."""
    first = reaching(circumstances.suspects, bytes_)
    if first is None:
        return ()
    return (note("causes.growth.reached", holder=first.holder, bytes=min(first.reaches, bytes_)),)


def state_of(circumstances: Circumstances, bytes_: int) -> tuple[Note, ...]:
    """Which optimizer keeps what grows, where most of that is its state: a history that is still being filled."""
    study, places = circumstances.study, {(one.site, one.caller) for one in circumstances.growth}
    rows = live_at_places(study, circumstances.live, places)
    state = rows & (study.categories == OPTIMIZER_STATE)
    found = [one for one in holders_in_blocks(study) if one.kind == "optimizer_state" and one.holder]
    if not found or 2 * int(study.history.size[state].sum()) < max(int(study.history.size[rows].sum()), bytes_):
        return ()
    first = max(found, key=lambda one: one.bytes or 0)
    return (note("causes.growth.reached", holder=first.holder, bytes=min(first.bytes or 0, bytes_)),)


MOST_ASKED = 3
"""Of the objects that keep most; whether they hold a line's blocks is looked up for each."""


def holder_of(circumstances: Circumstances, pin: Pin) -> tuple[Note, ...]:
    """Which object keeps most of the blocks that hold `pin`'s segments, where the recording knows it."""
    study, entry = circumstances.study, circumstances.request.entry
    made = live_at_places(study, circumstances.live, {(pin.site, pin.caller)})
    for one in circumstances.suspects[:MOST_ASKED]:
        if one.kind in UNDERWAY or one.kind == "graph":
            continue
        rows = held_rows(study, entry, one.holder)
        bytes_ = int(study.history.size[rows[made[rows]]].sum())
        if 2 * bytes_ >= pin.live_bytes > 0:
            return (note("causes.fragmentation.holder", holder=one.holder, bytes=bytes_),)
    return ()


def cap(circumstances: Circumstances) -> tuple[Note, ...]:
    """That the process was capped while the card had room."""
    case, free = circumstances.shortage, circumstances.request.device_free
    if not case.cap_binds or free is None or free < circumstances.request.size:
        return ()
    if case.cap is None:
        return (note("causes.cap.inferred", limit=circumstances.request.limit.low, free=free),)
    return (note("causes.cap", cap=case.cap, free=free),)


def failing_pass(circumstances: Circumstances) -> tuple[Note, ...]:
    """How far the loop had come, and whether this pass asks for more than the last."""
    found = circumstances.failing_pass
    if found is None:
        return ()
    values = {"completed": found.finished, "loop": found.loop, **({"is_part": True} if found.is_part else {})}
    if found.staircase is not None:
        first, last = found.staircase
        stairs = note("causes.pass.staircase", first=first, last=last, place=found.grew_at, **values)
        return (stairs, *_larger_input(found))
    if found.is_larger:
        ratio = found.ratio_to_largest or found.ratio
        place = found.grew_at if found.input is None else None  # what the next sentence names has made all of it larger
        own = found.input
        named = {} if own is None else {"variable": own.variable, "shape": own.shape, "times": own.ratio}
        return (note("causes.pass.longer", ratio=ratio, place=place, **values, **named),)
    if found.keeps is not None and found.frees_less:
        kept = {"bytes": found.keeps.bytes, "before": found.keeps.before, "place": found.keeps.place}
        return (note("causes.pass.keeps", **kept, **values),)
    if found.gathers:
        told = {"passes": found.completed, "loop": found.loop, "before": found.earlier_run_passes}
        return (note("causes.pass.gathers", backward=found.gathers_for, **told),)
    if found.is_part and not found.finished:
        return ()  # a pass may have come before the recording began
    return (note("causes.pass.first" if found.is_first else "causes.pass.after", **values),)


def _larger_input(found: FailingPass) -> tuple[Note, ...]:
    """The variable that brought it in, with its shape, where the recording names one."""
    one = found.input
    return () if one is None else (note("causes.pass.input", variable=one.variable, shape=one.shape, ratio=one.ratio),)


def without(circumstances: Circumstances, bytes_: int, it: str = "it") -> Note:
    """What all would have come to without `bytes_` of what has just been named, and what the process may hold."""
    request, case = circumstances.request, circumstances.shortage
    needs = max(request.totals.active - bytes_ + request.size, 0)
    if cap(circumstances) and case.cap is not None:
        free = request.device_free
        return note("causes.growth.without_capped", needs=needs, limit=case.cap, free=free, it=it)
    return note("causes.growth.without", needs=needs, limit=request.limit.low, it=it)


def optimizer_begins(circumstances: Circumstances) -> tuple[Note, ...]:
    """That the optimizer was making its state, of which so much was still to come, or a history without a known end."""
    if history := circumstances.needs.history_of_steps:
        return (note("causes.capacity.history", bytes=history),)
    there, needs = circumstances.needs.state_to_come
    if needs <= there:
        return ()
    following, at_once = circumstances.needs.next_step, circumstances.request.totals.active - there + needs
    # What is told of the next step is only that it needs more than this one.
    more = following if following is not None and following > (1 + MARGIN) * at_once else None
    return (note("causes.capacity.first_step", made=there, needs=needs, next=following, more=more),)


WORTH_TELLING = 0.1
"""Of the limit, free but in pieces: whoever compares what is in use with the limit asks where the rest is. The same of
what is in use, where calls at once hold it."""


def in_pieces(circumstances: Circumstances) -> tuple[Note, ...]:
    """What was free in pieces that were all too small, where together they would have served the request."""
    case = circumstances.shortage
    if not case.free.largest < case.size <= case.free.usable or case.free.usable < WORTH_TELLING * case.limit.low:
        return ()
    return (note("causes.in_pieces", usable=case.free.usable, largest=case.free.largest),)


def calls_in_progress(circumstances: Circumstances) -> tuple[Note, ...]:
    """That many calls of one function were underway at the same time, and what they hold together if it is much.

    Where most of that is kept by the errors of others that have failed before this one, not how many.
    """
    live = max(circumstances.request.totals.allocated, 1)
    found = []
    for one in circumstances.in_progress[:1]:
        held, place = (
            bytes_of_calls(circumstances.study, circumstances.live, one),
            Location(one.file, one.line, one.function),
        )
        if held >= WORTH_TELLING * live:
            values = {"place": place, "bytes": held, "live": live, "share": held / live}
            kept = sum(suspect.retained for suspect in circumstances.suspects if suspect.kind == "exception")
            if circumstances.failed_at_once and 2 * kept >= held:
                found.append(note("causes.failed_at_once", calls=one.calls, **values))
            else:
                found.append(note("causes.in_progress", calls=one.calls, **values))
    return tuple(found)
