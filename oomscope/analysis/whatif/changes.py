"""The recorded program, changed: without what some lines allocate, or with more or less of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from oomscope.allocator.program import Program
from oomscope.analysis.whatif.subject import Subject
from oomscope.errors import RequestError
from oomscope.model import NO_STACK, Action, BoolArray, Frame, IntArray, StackTable
from oomscope.units import plural

_SITE = re.compile(r"(?P<file>.+?)(?::(?P<line>\d+)(?:\s+\(?(?P<function>[A-Za-z_<][\w.<>]*)\)?)?)?\Z")


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Scaling:
    """What a site allocates, times `factor`."""

    site: Site
    factor: float


@dataclass(frozen=True, slots=True)
class Changes:
    """What is changed, all at once.

    Attributes:
        without: places whose allocations are left out.
        scale: places that allocate more or less.
    """

    without: tuple[Site, ...] = ()
    scale: tuple[Scaling, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.without or self.scale)

    @property
    def text(self) -> str:
        """For the name of a row."""
        parts = [f"without {site.text}" for site in self.without]
        parts += [f"{scaling.site.text} × {scaling.factor:g}" for scaling in self.scale]
        return ", ".join(parts)


def parse_site(text: str) -> Site:
    """A place in the code.

    Raises:
        RequestError: `text` names none.
    """
    match = _SITE.match(text.strip().replace("\\", "/"))
    if match is None:
        raise RequestError(f"{text!r} is no place in the code; write it as FILE:LINE, such as metrics.py:17.")
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
        raise RequestError(f"--scale {text!r} is not SITE=FACTOR with a factor above 0, such as model.py:31=0.5.")
    return Scaling(parse_site(site), factor)


def changed_program(subject: Subject, stacks: StackTable, changes: Changes) -> tuple[Program, tuple[str, ...]]:
    """The changed program, and what was changed in it.

    A place counts wherever it stands in the stack of an allocation: without a line there is nothing of what it calls.
    What has no Python stack, such as most of a backward pass, is not found.

    Raises:
        RequestError: nothing was allocated at one of the places.
    """
    program = subject.extraction.program.replaced_compactly()
    stack = _stacks(subject)
    size = program.size.copy()
    notes = []
    for scaling in changes.scale:
        found = _found(scaling.site, stack, stacks)
        size[found] = np.maximum(np.round(size[found] * scaling.factor), 1).astype(np.int64)
        notes.append(f"{plural(int(found.sum()), 'allocation')} of {scaling.site.text} scaled by {scaling.factor:g}")
    kept = np.ones(program.requests, np.bool_)
    for site in changes.without:
        found = _found(site, stack, stacks)
        kept &= ~found
        notes.append(f"{plural(int(found.sum()), 'allocation')} of {site.text} left out")
    return replace(program, size=size).keep(kept), tuple(notes)


def _stacks(subject: Subject) -> IntArray:
    """int64[requests]: the stack that each comes from."""
    row = subject.extraction.row
    stack = np.where(row >= 0, subject.device.lifetimes.stack[row], NO_STACK).astype(np.int64)
    trace = subject.device.trace
    stack[row < 0] = trace.stack[trace.entries(Action.OOM)]
    return stack


def _found(site: Site, stack: IntArray, stacks: StackTable) -> BoolArray:
    hits = _stacks_with(site, stacks)
    found = np.isin(stack, hits)
    if not found.any():
        raise RequestError(
            f"no recorded allocation comes from {site.text}; name a file and line as the report shows it."
        )
    return found


def _stacks_with(site: Site, stacks: StackTable) -> Sequence[int]:
    """The numbers of the stacks that lead through `site`."""
    frames = np.array([site.matches(frame) for frame in stacks.frames], np.bool_)
    if not frames.any():
        return ()
    members = np.concatenate([np.zeros(1, np.int64), np.cumsum(frames[stacks.members])])
    hits: list[int] = np.flatnonzero(members[stacks.offsets[1:]] > members[stacks.offsets[:-1]]).tolist()
    return hits
