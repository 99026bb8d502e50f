"""Whether a ring of objects is garbage: whether nothing refers to it but itself.

That no root leads to a ring proves little by itself, for C++ and running calls refer to objects where Python cannot
see it. The number of references that each object counts does: the collector frees what has none beyond those that the
ring itself makes. Here it is only asked, and nothing is collected.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from oomscope.recording.census.heap import Heap

_MOST_RINGS = 64
_MOST_OBJECTS = 2000


class Witness:
    """An object that nothing refers to but the walk: it tells how many references the walk itself makes."""


class References:
    """Counts of references, without those that the heap's own objects and the walk make."""

    def __init__(self, heap: Heap, witness: list[Witness], own: Iterable[Sequence[Any]]) -> None:
        """How to tell the walk's own references from others.

        Args:
            heap: what was there before the walk, the witness among it.
            witness: the only list that holds it.
            own: lists that the walk has made, beside the heap and the one that holds the objects asked about.
        """
        self._heap = heap
        self._witness = witness
        self._own = list(own)

    def garbage(self, rings: Sequence[Sequence[int]], objects: Sequence[Any]) -> dict[int, bool]:
        """For the first of each ring's numbers, whether the ring is garbage; of very many rings, only the first few.

        Args:
            rings: strongly connected objects that no root leads to, as numbers of `objects`.
            objects: a list that holds each of them once.
        """
        asked, total = [], 0
        for ring in rings[:_MOST_RINGS]:
            total += len(ring)
            if total > _MOST_OBJECTS:
                break
            asked.append(ring)
        visible = self._visible({id(objects[number]) for ring in asked for number in ring})
        base = _spare(self._witness, 0, visible)
        return {ring[0]: all(_spare(objects, number, visible) == base for number in ring) for ring in asked}

    def held_elsewhere(self, numbers: Sequence[int], objects: Sequence[Any], known: Counter[int]) -> set[int]:
        """Which of `numbers` have a reference that Python does not see, such as from the stack of a call.

        Args:
            numbers: of `objects`.
            objects: a list that holds each of them once.
            known: by id, references that the heap does not know and that are accounted for.
        """
        visible = self._visible({id(objects[number]) for number in numbers})
        base = _spare(self._witness, 0, visible)
        visible.update(known)
        return {number for number in numbers if _spare(objects, number, visible) > base}

    def _visible(self, ids: set[int]) -> Counter[int]:
        visible = Counter(key for _, key in self._heap.referrers(ids))
        visible.update(id(item) for items in self._own for item in items if id(item) in ids)
        return visible


def _spare(items: Sequence[Any], position: int, visible: Counter[int]) -> int:
    return sys.getrefcount(items[position]) - visible[id(items[position])]
