"""The line of code that the first screen shows: who keeps the memory, or who asked for too much."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.labels.records import Driver
from oomscope.analysis.passes.records import Growth
from oomscope.analysis.records import Location
from oomscope.analysis.verdict.records import Oom, Suspect
from oomscope.analysis.verdict.suspects import held_rows
from oomscope.analysis.verdict.unread import GRAPH
from oomscope.frozen import frozen
from oomscope.model import FrameKind, frame_kind
from oomscope.model.storing import name_at_end
from oomscope.rendering.common.sources import Excerpt, Sources
from oomscope.rendering.common.storing import keeps_error, line_of_advice, name_of, store_line, stores_belonging
from oomscope.wording import page as words
from oomscope.wording.clean import clean
from oomscope.wording.paths import Shorten
from oomscope.wording.template import MODULE


@frozen
class Culprit:
    """A line of code.

    Attributes:
        file: its file as people say it.
        line, function: as the frame has them; no function for the code of a file itself.
        full: the whole path with the line.
        note: what the line does.
        to_change: whether it is the line to edit, or the one before which to; else it only asked, called or allocated.
        excerpt: the line with those around it; None where no source is known.
    """

    file: str
    line: int
    function: str
    full: str
    note: str
    to_change: bool
    excerpt: Excerpt | None


_MADE_ELSEWHERE = ("shard_optimizer_state", "shard_parameters", "drop_gradients")
"""Advice on what a line makes and another line decides on: ``opt.step()`` is not the one to change."""
HARDLY_ALL = 0.9
"""Of what grows: a line that makes less of it is told with the others."""


class _Marked(NamedTuple):
    """A line and what it does; `is_cause`: whether it stores what keeps the memory, or something has to go before."""

    where: Location
    note: str
    is_cause: bool = False


def culprit(device: DeviceFindings, shorten: Shorten, sources: Sources) -> Culprit | None:
    """The line to look at; None where no stack names one."""
    oom = device.oom
    found = _of_failure(device, oom, sources) if oom is not None else _of_largest(device)
    if found is None:
        return None
    where = found.where
    advice = () if oom is None else (one for one in oom.verdict.advice if not one.refuted)
    changed = {
        at
        for one in advice
        if oom is not None and one.slug not in _MADE_ELSEWHERE and (at := line_of_advice(oom, one, sources)) is not None
    }
    return Culprit(
        shorten(where.file),
        where.line,
        "" if where.function == MODULE else clean(where.function, 80),
        f"{clean(where.file, 400)}:{where.line}",
        found.note,
        found.is_cause or where in changed,
        sources.around(where.file, where.line),
    )


def _of_failure(device: DeviceFindings, oom: Oom, sources: Sources) -> _Marked | None:
    verdict = oom.verdict
    if verdict.cause == "retained" and (before := _of_what_follows(device, oom, sources)) is not None:
        return before
    if verdict.cause in ("growth", "retained"):
        named = {note.values.get("holder") for note in verdict.headline}
        per_pass = next((note.values["per_pass"] for note in verdict.headline if note.values.get("per_pass")), None)
        for suspect in verdict.suspects if verdict.cause == "growth" else ():
            if suspect.holder in named and (stores := store_line(suspect, sources)) is not None:
                return _Marked(stores, words.stored_note(name_of(suspect), per_pass), is_cause=True)
        if (loop := _of_kept_models(oom)) is not None:
            return _Marked(loop, words.LEAVES_A_MODEL, is_cause=True)
        for growth in device.growth if verdict.cause == "growth" else ():
            if (grows := _of_growth(device, oom, growth)) is not None:
                return grows
        for suspect in verdict.suspects:
            if suspect.holder in named and (found := _of_holder(device, suspect, sources)) is not None:
                return found
        for holder in filter(None, named):
            if (stores := stores_belonging(holder, sources)) is not None:
                return _Marked(stores, words.stored_note(name_at_end(holder)), is_cause=True)
        for driver in verdict.drivers[:1]:
            if driver.site is not None:
                return _of_driver(device, driver, driver.site)
    if verdict.cause == "capacity":
        found = _of_last_pass(device, oom, sources) or _of_keeper(oom, sources) or _of_larger_pass(oom)
        if found is not None:
            return found
    if verdict.cause == "fragmentation" or "causes.other_stream.kept_by" in {one.code for one in verdict.headline}:
        for pin in device.pins:
            where = pin.caller or pin.site
            if where is not None:
                told = words.pin_note(pin) if verdict.cause == "fragmentation" else words.kept_note(pin)
                return _Marked(where, told)
    asked = verdict.asked
    asked_at = (asked.caller or asked.site or asked.backward_call) if asked is not None else None
    where = asked_at or oom.caller or oom.site
    return None if where is None else _Marked(where, words.asked_note(oom))


def _of_kept_models(oom: Oom) -> Location | None:
    """The line of the loop whose passes leave models; the headline is of them."""
    first = oom.verdict.headline[0]
    found: Location | None = first.values["loop"] if first.code == "causes.growth.models" else None
    return found


def _of_driver(device: DeviceFindings, driver: Driver, site: Location) -> _Marked:
    """The reader's line that has called for most of what was allocated at `site`, which may be a library's."""
    made: Counter[Location] = Counter()
    for use in device.sites:
        if use.site == site:
            made[use.caller or site] += use.bytes
    where, bytes_ = next(iter(made.most_common(1)), (site, driver.bytes))
    return _Marked(where, words.made_note(bytes_))


def _of_what_follows(device: DeviceFindings, oom: Oom, sources: Sources) -> _Marked | None:
    """The call or the loop before which the best advice has something go, with the line that stored or made that."""
    best = next((one for one in oom.verdict.advice if not one.refuted), None)
    work = None if best is None else best.values.get("before")
    if best is None or work is None or best.at != work.at:
        return None
    kept = next((one for one in oom.verdict.suspects if one.holder == best.values.get("holder")), None)
    name = None if kept is None else name_of(kept)
    made = None if kept is None else store_line(kept, sources) or _made(device, kept)[0]
    note = words.before_note(best.slug, name, work.kind, None if made == work.at else made)
    return _Marked(work.at, note, is_cause=work.kind != "block")


def _of_last_pass(device: DeviceFindings, oom: Oom, sources: Sources) -> _Marked | None:
    """Where most of the memory is of the pass before: the line that stores it, or the loop's line that goes on."""
    first = oom.verdict.headline[0]
    failing = oom.verdict.failing_pass
    if first.code != "causes.pass.left" or failing is None or failing.loop is None:
        return None
    keeper = next((one for one in oom.verdict.suspects if one.holder == first.values["holder"]), None)
    if keeper is not None and (stores := store_line(keeper, sources)) is not None:
        return _Marked(stores, words.stored_note(name_of(keeper)), is_cause=True)
    loop = failing.loop
    for frame in device.study.snapshot.stacks[int(device.history.trace.stack[oom.entry])]:
        if (frame.filename, frame.name) == (loop.file, loop.function):
            return _Marked(Location(frame.filename, frame.line, frame.name), words.TWO_ALIVE)
    return None


def _of_keeper(oom: Oom, sources: Sources) -> _Marked | None:
    """Where the headline begins with an object that keeps most of the memory: the line that stores it."""
    first = oom.verdict.headline[0]
    if first.code != "causes.capacity.keeper":
        return None
    keeper = next((one for one in oom.verdict.suspects if one.holder == first.values["holder"]), None)
    stores = None if keeper is None else store_line(keeper, sources)
    return (
        None if keeper is None or stores is None else _Marked(stores, words.stored_note(name_of(keeper)), is_cause=True)
    )


def _of_larger_pass(oom: Oom) -> _Marked | None:
    """Where the headline begins with a pass or a call larger than those before: the line that makes it so."""
    failing, first = oom.verdict.failing_pass, oom.verdict.headline[0]
    if first.code == "causes.pass.larger_call" and (called := first.values["called_at"]) is not None:
        # A library's wrapper may have made the call, on a line that is nobody's to change.
        where = oom.caller if oom.caller is not None and _is_of_library(called) else called
        return _Marked(where, words.LARGER_CALL, is_cause=True)
    if first.code not in ("causes.pass.longer", "causes.pass.staircase") or failing is None or failing.began_at is None:
        return None
    return _Marked(failing.began_at, words.larger_note(failing), is_cause=True)


def _of_growth(device: DeviceFindings, oom: Oom, growth: Growth) -> _Marked | None:
    """The line of the loop that the headline counts passes of, or else the line that makes what grows."""
    told = next((note.values for note in oom.verdict.headline if note.values.get("per_pass")), None)
    failing, where = oom.verdict.failing_pass, growth.caller or growth.site
    if told is not None and not (_is_of_library(growth.loop) and where is not None and not _is_of_library(where)):
        same = told.get("passes") is None or abs(growth.generations - told["passes"]) <= 1
        loop = growth.loop if same else failing.loop if failing is not None else None
        inside = _in_loop(device, growth, loop)
        if inside is not None:
            line, share = inside
            return _Marked(line, words.growth_note(growth, line, told["per_pass"], alone=share >= HARDLY_ALL))
    return None if where is None else _Marked(where, words.growth_note(growth, where))


def _is_of_library(place: Location | None) -> bool:
    """Whether a line is of a library: a trainer's loop, in which no reader looks for a mistake."""
    return place is not None and frame_kind(place.file) is not FrameKind.OWN


def _of_holder(device: DeviceFindings, suspect: Suspect, sources: Sources) -> _Marked | None:
    """The line that stores what `suspect` keeps; where that is not known, the line that made most of it."""
    if suspect.kind == GRAPH and suspect.at is not None:
        return _Marked(suspect.at, words.graph_note(suspect.retained), is_cause=True)
    stores = store_line(suspect, sources)
    if stores is not None:
        return _Marked(stores, words.stored_note(name_of(suspect), kept=keeps_error(suspect)), is_cause=True)
    location, bytes_ = _made(device, suspect)
    return None if location is None else _Marked(location, words.made_of_it(bytes_))


def _made(device: DeviceFindings, suspect: Suspect) -> tuple[Location | None, int]:
    """The line that made most of what `suspect` keeps, and how much; None where the page is of another instant."""
    if device.oom is None or device.oom.entry != device.at_entry:
        return None, 0
    sites, history = device.study.sites, device.history
    held = held_rows(device.study, device.at_entry, suspect.holder)
    stack, size = history.lifetimes.stack[held], history.size[held]
    callers = sites.callers(stack)
    lines = np.where(callers >= 0, callers, sites.sites(stack))
    numbers, where = np.unique(lines, return_inverse=True)
    made = np.bincount(where, weights=size)
    for number in np.argsort(-made, kind="stable").tolist():
        location = sites.location(int(numbers[number]))
        if location is not None:
            return location, int(made[number])
    return None, 0


def _in_loop(device: DeviceFindings, growth: Growth, loop: Location | None) -> tuple[Location, float] | None:
    """The line of the loop's own function that led to most of what grows, and its share of that.

    One call in the loop's body, however deep the site is. Where a thread or an event loop goes round, that of the call
    which it runs: the loop's own line starts them all.
    """
    if loop is None:
        return None
    stacks, script = device.study.snapshot.stacks, device.study.loops.script
    made: Counter[Location] = Counter()
    for use in device.sites:
        if (use.site, use.caller, use.label) == (growth.site, growth.caller, growth.label):
            for stack, bytes_, _ in use.stacks:
                task = int(script.task[stack])
                outermost = script.frames[task] if task >= 0 else None
                for frame in stacks[stack]:
                    if frame == outermost or (frame.filename, frame.name) == (loop.file, loop.function):
                        made[Location(frame.filename, frame.line, frame.name)] += bytes_
                        break
    if not made:
        return None
    ((where, most),) = made.most_common(1)
    return where, most / max(made.total(), 1)


def _of_largest(device: DeviceFindings) -> _Marked | None:
    """Without a failure: the line that made most of what was live."""
    for use in device.sites:
        where = use.caller or use.site
        if where is not None:
            return _Marked(where, words.made_note(use.bytes))
    return None
