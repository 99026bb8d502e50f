"""Which line of code stands for a stack.

A *site* is the innermost frame outside torch's own package, C++, the standard library and interpreter plumbing, so
that a library's model code counts. Its *caller* is the innermost frame that is outside any ``site-packages`` as well:
the reader's own code.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from oomscope.analysis.records import Location
from oomscope.analysis.said.tracebacks import location_of as location_of_frame
from oomscope.analysis.said.tracebacks import original_frame
from oomscope.model import BoolArray, Frame, FrameKind, StackTable, frame_kind
from oomscope.model.arrays import StackArray

NO_LOCATION = -1

_SITES = (FrameKind.LIBRARY, FrameKind.OWN)


def is_script(frame: Frame) -> bool:
    """Whether `frame` is Python code of the reader or of a library: not of torch, Python itself or oomscope."""
    return frame_kind(frame.filename) in _SITES


def is_readers_frame(frame: Frame) -> bool:
    """Whether `frame` is the reader's own code: no library's, no interpreter's, no C++."""
    return frame_kind(frame.filename) == FrameKind.OWN


class SiteTable:
    """Site and caller of every stack of a snapshot.

    Attributes:
        site_of: int32[stacks], location numbers, `NO_LOCATION` where no frame qualifies.
        caller_of: int32[stacks], likewise.
    """

    def __init__(self, stacks: StackTable) -> None:
        self._stacks = stacks
        self._locations: list[Location] = []
        number: dict[Location, int] = {}
        location_of = np.empty(len(stacks.frames), np.int32)
        # Code that torch.fx generated stands for the line it was made from, where torch says which that is.
        frames = [original_frame(frame) if frame.extra else frame for frame in stacks.frames]
        for index, frame in enumerate(frames):
            location_of[index] = number.setdefault(location_of_frame(frame), len(number))
        self._locations = list(number)
        self._number = number
        kind = np.fromiter((frame_kind(frame.filename) for frame in frames), np.uint8, count=len(frames))
        self._cpp: BoolArray = kind == FrameKind.CPP
        self.site_of = self._innermost(np.isin(kind, _SITES), location_of)
        self.caller_of = self._innermost(kind == FrameKind.OWN, location_of)

    def _innermost(self, wanted: BoolArray, location_of: StackArray) -> StackArray:
        """For each stack, the location of its innermost wanted frame."""
        stacks = self._stacks
        if not len(stacks):
            return np.zeros(0, np.int32)
        hits = np.flatnonzero(wanted[stacks.members])
        at = np.searchsorted(hits, stacks.offsets[:-1])
        found = at < np.searchsorted(hits, stacks.offsets[1:])
        result = np.full(len(stacks), NO_LOCATION, np.int32)
        result[found] = location_of[stacks.members[hits[at[found]]]]
        return result

    def __len__(self) -> int:
        return len(self._locations)

    def places_in(self, frames: Sequence[Frame]) -> tuple[int, int]:
        """Site and caller of a stack that is none of the snapshot's: of `frames`, innermost first."""
        return tuple(self._first(frames, kinds) for kinds in (_SITES, (FrameKind.OWN,)))  # type: ignore[return-value]

    def _first(self, frames: Sequence[Frame], kinds: tuple[FrameKind, ...]) -> int:
        found = next((frame for frame in frames if frame_kind(frame.filename) in kinds), None)
        if found is None:
            return NO_LOCATION
        location = location_of_frame(found)
        if location not in self._number:
            self._number[location] = len(self._locations)
            self._locations.append(location)
        return self._number[location]

    def location(self, number: int) -> Location | None:
        """The location with `number`; None for `NO_LOCATION`."""
        return None if number == NO_LOCATION else self._locations[number]

    def sites(self, stack: StackArray) -> StackArray:
        """The site number of each row of a `stack` column."""
        return _look_up(self.site_of, stack)

    def callers(self, stack: StackArray) -> StackArray:
        """The caller number of each row of a `stack` column."""
        return _look_up(self.caller_of, stack)

    @cached_property
    def has_cpp(self) -> bool:
        """Whether any stack was recorded with C++ frames (``stacks="all"``)."""
        return bool(self._cpp[self._stacks.members].any())


def _look_up(table: StackArray, stack: StackArray) -> StackArray:
    if not len(table):
        return np.full(len(stack), NO_LOCATION, np.int32)
    return np.where(stack >= 0, table[np.maximum(stack, 0)], NO_LOCATION).astype(np.int32)


def frame_text(frame: Frame) -> str:
    """A frame as one line: ``train.py:31 forward``."""
    return f"{frame.filename}:{frame.line} {frame.name}"


def stack_text(stacks: StackTable, stack: int) -> tuple[str, ...]:
    """A stack as lines, innermost first; C++ frames that were never resolved are left out."""
    return tuple(frame_text(frame) for frame in stacks[stack] if frame.filename not in ("", "??") or frame.line)
