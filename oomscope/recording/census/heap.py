"""Who refers to whom, asked once for the whole heap and then answered from arrays.

``gc.get_referrers`` scans every object for every question. Here each object is asked for its referents once; after
that one level of "who refers to any of these" costs a table look-up an edge, so a search to the roots stays well
below a second for half a million objects.
"""

from __future__ import annotations

import gc
import types
import weakref
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import Any

import numpy as np

# None of these can own a tensor that matters; leaving them out saves a third of the edges.
_NEVER_HOLD = frozenset(
    {
        types.BuiltinFunctionType,
        types.GetSetDescriptorType,
        types.MemberDescriptorType,
        types.MethodDescriptorType,
        types.ModuleType,
        types.WrapperDescriptorType,
        types.MethodWrapperType,
        weakref.ref,
        property,
        classmethod,
        staticmethod,
    }
)
_CHUNK = 64  # objects asked together; a chunk with a hit is asked again one by one
_CHECK_EVERY = _CHUNK * 256
_TABLE_BITS = 20
_MOST_ITEMS = 5_000_000  # a longer list is a data set; its referents alone would take 40 MB and a second
_NOTED = frozenset({types.FrameType, types.TracebackType, types.FunctionType})
_SIZED = frozenset({list, tuple, dict, set, frozenset})


class OutOfTime(Exception):  # noqa: N818 - a signal to stop early, not a failure
    """The walk's budget is spent; what is known so far stands."""


class Deadline:
    """A moment after which `check` stops the walk."""

    def __init__(self, seconds: float) -> None:
        self._end = monotonic() + seconds

    def share(self, part: float) -> Deadline:
        """One that leaves the rest of the time to what follows: after `part` of what is left."""
        return Deadline(part * (self._end - monotonic()))

    def check(self) -> None:
        """Raises OutOfTime once the moment has passed."""
        if monotonic() > self._end:
            raise OutOfTime


class Heap:
    """The objects the collector knew at one moment, and their references as two columns."""

    def __init__(self, objects: list[Any], deadline: Deadline) -> None:
        """`objects` as ``gc.get_objects()`` gave them, before the walk made any container of its own."""
        able = [item for item in objects if type(item) not in _NEVER_HOLD]
        self._objects = [item for item in able if type(item) not in _SIZED or len(item) <= _MOST_ITEMS]
        self.skipped = len(able) - len(self._objects)
        # By number: a list of them would be one more reference to each.
        self._noted = [number for number, item in enumerate(self._objects) if type(item) in _NOTED]
        self._referents, self._starts = self._read_references(deadline)
        self._keys = _table_keys(self._referents)

    def of_types(self, kinds: Iterable[type]) -> list[Any]:
        """The objects of exactly these types, which are frames, tracebacks and functions."""
        wanted = frozenset(kinds)
        return [item for number in self._noted if type(item := self._objects[number]) in wanted]

    def _read_references(self, deadline: Deadline) -> tuple[np.ndarray, np.ndarray]:
        """The ids of all referents in one column, and where each chunk of objects begins in it."""
        columns = []
        for start in range(0, len(self._objects), _CHUNK):
            if start % _CHECK_EVERY == 0:
                deadline.check()
            referents = gc.get_referents(*self._objects[start : start + _CHUNK])
            columns.append(np.fromiter(map(id, referents), np.int64, len(referents)))
        if not columns:
            return np.empty(0, np.int64), np.zeros(1, np.int64)
        return np.concatenate(columns), np.cumsum([0, *map(len, columns)])

    def referrers(self, ids: Iterable[int]) -> Iterator[tuple[Any, int]]:
        """Every (object, id) where the object refers to the object of that id, once for each reference."""
        wanted = set(ids)
        table = np.zeros(1 << _TABLE_BITS, bool)
        table[_table_keys(np.fromiter(wanted, np.int64, len(wanted)))] = True
        places = np.flatnonzero(table[self._keys])
        chunks = np.unique(np.searchsorted(self._starts, places, side="right") - 1)
        for chunk in chunks.tolist():
            for item in self._objects[chunk * _CHUNK : (chunk + 1) * _CHUNK]:
                for referent in gc.get_referents(item):
                    if id(referent) in wanted:
                        yield item, id(referent)


def _table_keys(ids: np.ndarray) -> np.ndarray:
    # CPython aligns objects to 16 bytes, so the low four bits say nothing.
    return ((ids >> 4) & ((1 << _TABLE_BITS) - 1)).astype(np.int32)
