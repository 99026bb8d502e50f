"""Call stacks, each stored once and named by its number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from oomscope.model.arrays import BoolArray, IntArray, StackArray

NO_STACK = -1
"""The number that stands in a `stack` column where nothing was recorded."""


class Frame(NamedTuple):
    """One level of a stack: Python, TorchScript or C++ (whose file may be ``??`` and line 0)."""

    filename: str
    line: int
    name: str
    extra: tuple[tuple[str, str], ...] = ()
    """Fields beyond the usual three, such as ``fx_node_name`` (torch 2.10+), as text."""


class StackTable:
    """All distinct stacks of a snapshot. Frames run from the innermost call outwards, as torch records them.

    Attributes:
        frames: the distinct frames.
        offsets: int64[stacks + 1]; stack `s` is ``members[offsets[s]:offsets[s + 1]]``.
        members: int32[…]; frame numbers.
    """

    __slots__ = ("frames", "members", "offsets")

    def __init__(self, frames: Sequence[Frame], offsets: IntArray, members: StackArray) -> None:
        self.frames = tuple(frames)
        self.offsets = offsets
        self.members = members

    @classmethod
    def from_stacks(cls, frames: Sequence[Frame], stacks: Sequence[Sequence[int]]) -> StackTable:
        """The table of `stacks`, each given as frame numbers, innermost first."""
        offsets = np.zeros(len(stacks) + 1, dtype=np.int64)
        if stacks:
            np.cumsum([len(stack) for stack in stacks], out=offsets[1:])
        members = np.fromiter((frame for stack in stacks for frame in stack), dtype=np.int32, count=int(offsets[-1]))
        return cls(frames, offsets, members)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, stack: int) -> tuple[Frame, ...]:
        """The frames of stack number `stack`, innermost first; empty for `NO_STACK`."""
        if stack == NO_STACK:
            return ()
        if not 0 <= stack < len(self):
            raise IndexError(f"no stack {stack} among {len(self)}")
        return tuple(self.frames[member] for member in self.members[self.offsets[stack] : self.offsets[stack + 1]])

    def holding(self, wanted: BoolArray) -> BoolArray:
        """bool[stacks + 1]: which stacks hold a frame of `wanted`, bool[frames]; the last is that of `NO_STACK`."""
        found = np.zeros(len(self) + 1, np.bool_)
        if wanted.any():
            members = np.flatnonzero(wanted[self.members])
            found[np.searchsorted(self.offsets, members, side="right") - 1] = True
        return found

    def __iter__(self) -> Iterator[tuple[Frame, ...]]:
        return (self[stack] for stack in range(len(self)))
