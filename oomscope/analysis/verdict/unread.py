"""Variables that no running code reads again, and that keep what was made before the work that is underway.

The recording tells which variables those are (`oomscope.recording.census.unread`). A variable of the pass underway is
often one of them, until the next pass writes it anew; that is how a loop works, and no leftover.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from oomscope.analysis.attribution.held_blocks import live_rows, ways_to
from oomscope.analysis.passes.left_from_before import call_begin, statement_begin
from oomscope.analysis.passes.loop_that_matters import in_thread, loop_that_matters, pass_begins
from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.verdict.hooks import kept_by_hooks
from oomscope.analysis.verdict.records import Suspect
from oomscope.history import BEFORE
from oomscope.model import BoolArray, Frame, FrameKind, IntArray, frame_kind
from oomscope.model.ordering import ascending
from oomscope.model.recorded_holders import RecordedTensor
from oomscope.model.recorded_unread import RecordedUnread

FROZEN = "frozen_gradients"
"""Gradients that parameters have from before they were frozen. An optimizer's step would be the one to read them."""
FROZEN_STATES = "frozen_states"
"""The state of an optimizer whose parameters are frozen, where no code that may still run thaws any."""
SUSPENDED = "suspended"
"""A variable of a generator that waits, which it will not read when it goes on."""
GRAPH = "needless_graph"
"""The autograd graph behind a tensor of which only code that records no gradients reads the values."""
CACHE = "cache"
"""A function that `functools.lru_cache` lets remember what it has returned, and that will not be called again."""
FROZEN_OF = MappingProxyType({FROZEN: "gradients of ", FROZEN_STATES: "optimizer state of "})
"""What the recording puts before the name of the module, by kind."""


def find_unread(study: DeviceStudy, entry: int, *, paths: int) -> Iterator[Suspect]:
    """The variables that are left over from before the work underway at `entry`, as suspects.

    Args:
        study: of the device.
        entry: of the request that failed.
        paths: how many ways to what a variable keeps are told.
    """
    recorded = study.snapshot.recorded
    tensors = [one for one in recorded.tensors_on(study.index) if one.unread and one.address is not None]
    for one in _by_variable(recorded.unread, study.index):
        own = sorted((t for t in tensors if t.unread == one.holder), key=lambda t: -(t.bytes or 0))
        rows = live_rows(study, entry, [tensor.address or 0 for tensor in own])
        older = _are_left_over(study, one, rows, entry)
        if older.any():
            found = _suspect(study, entry, one, [own[place] for place in np.flatnonzero(older)])
            yield replace(found, path=found.path[:paths])


def _by_variable(recorded: tuple[RecordedUnread, ...], device: int) -> Iterator[RecordedUnread]:
    """The rows of a device, one a variable.

    Calls in progress at once have a variable of the same name each, and a tensor is told of the name alone: together
    they keep what any of them keeps. When it was written is known where all agree.
    """
    groups: dict[str, list[RecordedUnread]] = {}
    for one in recorded:
        if one.device == device and one.holder:
            groups.setdefault(one.holder, []).append(one)
    for first, *others in groups.values():
        agree = all(one.since == first.since for one in others)
        yield first if agree else replace(first, since="pass")


def said_reads(suspect: Suspect) -> tuple[str, ...]:
    """What of the variable is read again, as the program writes it: ``checkpoint['epoch']``."""
    return tuple(suspect.holder.rpartition(": ")[2] + read for read in suspect.reads)


def frozen_module(suspect: Suspect) -> str:
    """The name of the module whose parameters are frozen."""
    return suspect.holder.removeprefix(FROZEN_OF.get(suspect.kind, ""))


def _suspect(study: DeviceStudy, entry: int, one: RecordedUnread, tensors: list[RecordedTensor]) -> Suspect:
    rows = ascending(live_rows(study, entry, [tensor.address or 0 for tensor in tensors]))
    retained = int(study.history.size[rows].sum())
    allocated = max(study.history.curves.at(entry)[0], 1)
    told = _made_at(study, rows) if one.place == "graph" else None if one.at is None else Location(*one.at[:3])
    return Suspect(
        holder=one.holder or "",
        kind=_kind(study, one),
        retained=retained,
        share=round(min(retained / allocated, 1.0), 4),
        tensors=len(tensors),
        path=tuple(ways_to(study, tensor)[0] for tensor in tensors),
        earlier_bytes=retained,
        reaches=retained,
        at=told,
        stores=(told,) if told is not None and one.place == "attribute" else (),
        unread="proven" if one.place == SUSPENDED or (one.place == "local" and one.since == "before") else "likely",
        reads=one.reads,
        others=one.others,
        by_hooks=kept_by_hooks(study, tensors),
    )


def _made_at(study: DeviceStudy, rows: IntArray) -> Location | None:
    """The line of the script that most of `rows`, lifetimes, were made for."""
    made: dict[Location, int] = {}
    stacks, sizes = study.history.lifetimes.stack[rows], study.history.size[rows]
    for stack, size in zip(stacks.tolist(), sizes.tolist(), strict=True):
        line = study.loops.script_line(stack) if stack >= 0 else None
        if line is not None:
            made[line] = made.get(line, 0) + size
    return max(made, key=lambda line: made[line], default=None)


def _kind(study: DeviceStudy, one: RecordedUnread) -> str:
    """As the holder of that name has it; a variable that holds an object of the program's own has none."""
    if one.place == "frozen":
        return next((kind for kind, words in FROZEN_OF.items() if (one.holder or "").startswith(words)), FROZEN)
    if one.place == SUSPENDED:
        return SUSPENDED
    if one.place == "graph":
        return GRAPH
    if one.cache:
        return CACHE
    known = (row.kind for row in study.snapshot.recorded.holders_on(study.index) if row.holder == one.holder)
    return next((kind for kind in known if kind), "attribute" if one.place == "local" else "global")


def _are_left_over(study: DeviceStudy, one: RecordedUnread, rows: IntArray, entry: int) -> BoolArray:
    """bool[rows]: which of what a variable keeps is older than the work underway.

    All of it where the code tells that the variable is older than the loop it stands in, or that the statement underway
    assigns it anew. Else the trace does: what was made before the run of the loop that counts, or where no loop is
    known to run, by one that has ended; before that, too, where the variable's own function asks, itself or by a
    call, in a statement that does not name it: no call is underway that may have been given it.
    """
    there = rows >= 0
    born = study.history.lifetimes.born[rows]
    if one.since == "before" or one.place in (SUSPENDED, "graph"):
        return there  # of a generator that waits, whatever pass it made that in; of what no backward will reach
    if one.since == "between" or one.place in ("attribute", "frozen"):
        # Between the loops of its function, which the pass underway may be calling: what that has made is its own.
        # An attribute that is not asked for keeps the last pass's as needlessly as what is older.
        return np.asarray(there & (born < _work_begins(study, entry, one.place)))
    loops = study.loops
    known = there & (born > BEFORE)
    if is_being_assigned(study, entry, one.holder or ""):
        return np.asarray(known)
    if not loops.running(entry, thread=in_thread(study, entry)):
        ended = [run for run in loops.runs if run.end <= entry]
        if is_at_another_statement(study, entry, one.holder or ""):
            return np.asarray(known & (born < max((run.end for run in ended), default=0)))
        within = np.zeros(len(rows), np.bool_)
        for run in ended:
            within |= (born >= run.begin) & (born < run.end)
        return np.asarray(known & within)
    counted = loop_that_matters(study, entry)
    return np.asarray(known & (born < (entry if counted is None else counted.begin)))


def is_at_another_statement(study: DeviceStudy, entry: int, holder: str) -> bool:
    """Whether the function of a variable asks, itself or by a call, in a statement that does not name the variable.

    By the text of the line; False where the dump does not have it.
    """
    function, _, name = holder.rpartition(": ")
    stack = int(study.history.trace.stack[entry])
    if stack < 0 or study.loops.is_thread(stack):
        return False
    statements = [_text_around(study, frame) for frame in study.snapshot.stacks[stack] if _is_of(frame, function)]
    named = re.compile(rf"\b{re.escape(name.partition('.')[0])}\b")
    return bool(statements) and all(text and not named.search(text) for text in statements)


def _is_of(frame: Frame, function: str) -> bool:
    """Whether a frame is a call of `function`, as the name of a variable has it; of a global, its module's code."""
    if frame_kind(frame.filename) != FrameKind.OWN:
        return False
    is_module = frame.name == "<module>"
    return frame.filename.endswith(function) if is_module else frame.name == function.rpartition(".")[2]


def _text_around(study: DeviceStudy, frame: Frame) -> str:
    """The line of a frame with its neighbours, as a statement may take several; "" where the dump does not have it."""
    return "\n".join(
        text
        for one in study.snapshot.recorded.sources
        for at, text in enumerate(one.text, start=one.first)
        if one.filename == frame.filename and abs(at - frame.line) <= 1
    )


def is_being_assigned(study: DeviceStudy, entry: int, holder: str) -> bool:
    """Whether the statement underway will assign a variable anew, so that what it has now is of an earlier pass.

    By the text of the line, where the dump has it: ``trainer = Trainer(table)`` while that constructor runs. What
    ``loss = loss + …`` has read already is in use. In threads, other calls have variables of the same name.
    """
    function, _, name = holder.rpartition(": ")
    stack = int(study.history.trace.stack[entry])
    if stack < 0 or study.loops.is_thread(stack) or not name.isidentifier():
        return False
    lines = {
        (frame.filename, frame.line)
        for frame in study.snapshot.stacks[stack]
        if frame.name == function.rpartition(".")[2]
    }
    assigns = re.compile(rf"\s*{name}\s*(?::[^=]+)?=(?!=)(?!.*\b{name}\b)")
    return any(
        assigns.match(text)
        for one in study.snapshot.recorded.sources
        for at, text in enumerate(one.text)
        if (one.filename, one.first + at) in lines
    )


def _work_begins(study: DeviceStudy, entry: int, place: str | None) -> int:
    """The entry at which the pass underway began; outside of any loop, the call underway.

    What a call has put into an attribute that nobody asks for is left as soon as another statement runs.
    """
    if loop_that_matters(study, entry) is None:
        return (statement_begin if place == "attribute" else call_begin)(study, entry)
    begins = pass_begins(study, entry)
    return int(begins[-1]) if len(begins) else entry + 1
