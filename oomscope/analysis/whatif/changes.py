"""The recorded program, changed: without what some lines allocate, or with more or less of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from math import isfinite

import numpy as np

from oomscope.allocator.program import Op, Program
from oomscope.analysis.whatif.extraction import by_request
from oomscope.analysis.whatif.gpus import LARGEST
from oomscope.analysis.whatif.preparation import Subject
from oomscope.errors import RequestError
from oomscope.frozen import frozen
from oomscope.model import NO_STACK, Action, BoolArray, Frame, IntArray, Note, StackTable, note

_SHOWN = re.compile(r"(?P<function>[A-Za-z_<][\w.<>]*)\s+\((?P<file>.+):(?P<line>\d+)\)\Z")
"""A place as reports print it: ``mlp (workloads.py:29)``."""
_SITE = re.compile(r"(?P<file>.+?)(?::(?P<line>\d+)(?:\s+\(?(?P<function>[A-Za-z_<][\w.<>]*)\)?)?)?\Z")


_MOST_IN_ALL = 1 << 62
"""Bytes of all requests together, so that sums of them are exact."""


@frozen
class Site:
    """A line of code, or a file, as a user writes it: ``metrics.py:17``, ``train/metrics.py``."""

    text: str
    file: str
    line: int | None
    function: str | None

    def matches(self, frame: Frame) -> bool:
        """Whether `frame` is at this place."""
        filename = frame.filename.replace("\\", "/")
        return (
            (filename == self.file or filename.endswith("/" + self.file))
            and (self.line is None or frame.line == self.line)
            and (self.function is None or frame.name == self.function)
        )


@frozen
class Scaling:
    """What a site allocates, times `factor`."""

    site: Site
    factor: float


@frozen
class Changes:
    """What is changed, all at once.

    Attributes:
        without: places whose allocations are left out.
        scale: places, phases of the program, or categories of memory, of which more or less is allocated.
        free: places whose allocations are given back at the end of their step at the latest.
    """

    without: tuple[Site, ...] = ()
    scale: tuple[Scaling, ...] = ()
    free: tuple[Site, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.without or self.scale or self.free)

    @property
    def text(self) -> str:
        """For the name of a row."""
        parts = [f"without {site.text}" for site in self.without]
        parts += [f"{scaling.site.text} × {scaling.factor:g}" for scaling in self.scale]
        parts += [f"{site.text} freed each step" for site in self.free]
        return ", ".join(parts)


def parse_site(text: str) -> Site:
    """A place in the code.

    Raises:
        RequestError: `text` names none.
    """
    plain = text.strip().replace("\\", "/")
    match = _SHOWN.match(plain) or _SITE.match(plain)
    if match is None:
        raise RequestError(f"{text!r} is not a place in the code; write it as FILE:LINE, such as metrics.py:17.")
    line = match["line"]
    return Site(text.strip(), match["file"], None if line is None else int(line), match["function"])


def parse_scaling(text: str) -> Scaling:
    """``SITE=FACTOR``.

    Raises:
        RequestError: `text` has another form, or the factor is not a number above 0.
    """
    site, equals, number = text.rpartition("=")
    try:
        factor = float(number)
    except ValueError:
        factor = 0.0
    if not (equals and isfinite(factor) and factor > 0):
        raise RequestError(f"{text!r} is not SITE=FACTOR with a factor above 0, such as model.py:31=0.5.")
    return Scaling(parse_site(site), factor)


@frozen(eq=False)
class ProgramMarks:
    """What is known of the recorded program beyond its requests.

    Attributes:
        stacks: every call stack of the snapshot.
        phases: by the name of a phase of the program, or of a category of memory, what belongs to it: bool[lifetimes],
            or bool[lifetimes + refused requests].
        steps: entries where the steps of the program begin, ascending.
    """

    stacks: StackTable
    phases: Mapping[str, BoolArray] = field(default_factory=dict)
    steps: tuple[int, ...] = ()

    def named(self, text: str) -> BoolArray | None:
        """The phase or category of that name, written with spaces or underscores; None where `text` is none."""
        wanted = text.replace("_", " ")
        return next((found for name, found in self.phases.items() if name.replace("_", " ") == wanted), None)


def changed_program(subject: Subject, marks: ProgramMarks, changes: Changes) -> tuple[Program, tuple[Note, ...]]:
    """The changed program, and what was changed in it.

    A place counts wherever it stands in the stack of an allocation: without a line there is nothing of what it calls.
    What has no Python stack, such as most of a backward pass, is found by its phase only.

    Raises:
        RequestError: nothing was allocated at one of the places, or the steps that are to be used are not known.
    """
    program = subject.extraction.program.replaced_compactly()
    size = program.size.copy()
    notes = []
    for scaling in changes.scale:
        found = _found(scaling.site, subject, marks)
        size[found] = _scaled(size[found], scaling)
        notes.append(
            note("whatif.scaled", count=int(found.sum()), site=scaling.site.text, factor=f"{scaling.factor:g}")
        )
    program = replace(program, size=size)
    for site in changes.free:
        found = _found(site, subject, marks)
        program, outlives = freed_each_step(program, found, marks.steps)
        notes.append(note("whatif.freed_each_step", count=outlives, site=site.text))
    kept = np.ones(program.requests, np.bool_)
    for site in changes.without:
        found = _found(site, subject, marks)
        kept &= ~found
        notes.append(note("whatif.left_out", count=int(found.sum()), site=site.text))
    program = program.keep(kept)
    if not np.isin(program.op, (Op.MALLOC, Op.TRY_MALLOC)).any():
        notes.append(note("whatif.nothing_left"))
    return program, tuple(notes)


def _scaled(size: IntArray, scaling: Scaling) -> IntArray:
    scaled = np.maximum(np.round(size * scaling.factor), 1)
    if scaled.max(initial=0) > LARGEST or scaled.sum() > _MOST_IN_ALL:
        raise RequestError(f"{scaling.site.text} scaled by {scaling.factor:g} asks for more than any device has.")
    whole: IntArray = scaled.astype(np.int64)
    return whole


def _found(site: Site, subject: Subject, marks: ProgramMarks) -> BoolArray:
    """bool[requests]: which come from a place, or from the phase of that name."""
    row = subject.extraction.row
    found: BoolArray
    group = marks.named(site.text)
    if group is not None:
        served = len(subject.device.lifetimes)
        found = by_request(group[:served].astype(np.int64), row) == 1
        if len(group) > served:
            found[row < 0] = group[served:]
    else:
        stack = by_request(subject.device.lifetimes.stack.astype(np.int64), row, NO_STACK)
        trace = subject.device.trace
        stack[row < 0] = trace.stack[trace.entries(Action.OOM)]
        found = np.isin(stack, _stacks_with(site, marks.stacks))
    if not found.any():
        names = f", or one of {', '.join(marks.phases)}" if marks.phases else ""
        raise RequestError(
            f"no recorded allocation comes from {site.text}; name a file and line as the report shows them{names}."
        )
    return found


def freed_each_step(program: Program, found: BoolArray, steps: Sequence[int]) -> tuple[Program, int]:
    """The program in which the requests that are `found` end with their step; and how many of them outlived it."""
    if not len(steps):
        raise RequestError("the steps of the program are not known, so nothing can be freed at their ends.")
    requests = np.full(program.requests, -1, np.int64)
    asked = np.isin(program.op, (Op.MALLOC, Op.TRY_MALLOC))
    requests[program.argument[asked]] = program.entry[asked]
    begins = np.append(np.asarray(steps, np.int64), np.iinfo(np.int64).max)
    step_end = begins[np.searchsorted(begins, requests, side="right")]
    last = np.full(program.requests, np.iinfo(np.int64).max)
    given = np.isin(program.op, (Op.FREE, Op.FREE_REQUESTED))
    last[program.argument[given]] = program.entry[given]
    outlives = np.flatnonzero(found & (last > step_end))
    ends = np.isin(program.op, (Op.FREE, Op.FREE_REQUESTED, Op.FREE_COMPLETED))
    program = program.without_steps(ends & np.isin(program.argument, outlives))
    order = outlives[np.argsort(step_end[outlives], kind="stable")]
    return program.with_steps(Op.FREE, step_end[order], order), len(outlives)


def _stacks_with(site: Site, stacks: StackTable) -> Sequence[int]:
    """The numbers of the stacks that lead through `site`."""
    frames = np.array([site.matches(frame) for frame in stacks.frames], np.bool_)
    if not frames.any():
        return ()
    members = np.concatenate([np.zeros(1, np.int64), np.cumsum(frames[stacks.members])])
    hits: list[int] = np.flatnonzero(members[stacks.offsets[1:]] > members[stacks.offsets[:-1]]).tolist()
    return hits
