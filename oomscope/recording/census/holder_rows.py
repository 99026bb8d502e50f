"""One row a holder, as the dump keeps it; holders that differ only in positions are one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Any

from oomscope.recording.census.kinds import MERGED
from oomscope.recording.census.roots import Place

_INDEX = re.compile(r"\[\d+\]")
_CHAIN = re.compile(r"(\.[A-Za-z_]\w*)(?:(?: … )?\1)+\.")
"""The same attribute again and again, as from one node of a tree to the next; the middle of a long way is left out."""
ANY_STEPS = ".*"
"""Stands in a way for any number of steps."""
MOST_PATHS = 3
MOST_EXAMPLES = 12  # storages of which paths are tried: several may be told by the same words
_KEPT = ("holder", "kind", "device", "bytes", "retained", "tensors", "nodes", "count", "path", "length", "maxlen")


@dataclass(slots=True)
class HolderRow:
    """What holds, in words, and how much."""

    holder: str | None  # None: nothing that Python can see
    kind: str  # see kinds.py
    device: int
    bytes: int = 0  # of storages put down to this holder
    retained: int | None = None  # bytes that nothing else keeps: they go when it lets go
    tensors: int = 0
    nodes: int = 0  # of the autograd graph, alone kept by it
    count: int = 1  # how many holders alike stand in this row
    path: list[str] = field(default_factory=list)  # ways to the largest of what it keeps
    length: int | None = None  # items of the collections in this row
    maxlen: int | None = None  # of a deque that drops its oldest items
    place: str | None = None  # what the way to it begins with, see explaining.py
    finished: bool | None = None
    running: bool | None = None  # whether a call of the model is underway; None where none runs, or it is no model
    at: Place | None = None
    stores: tuple[Place, ...] = ()  # where methods fill the attribute that it is
    members: set[int] = field(default_factory=set)
    examples: list[tuple[int, int]] = field(default_factory=list)  # bytes and node of the largest storages
    raised: int = 0  # bytes that an exception keeps
    ended: int = 0  # bytes that a call keeps which has ended

    def add(self, size: int, node: int, *, raised: bool, ended: bool) -> None:
        """Put one storage down to this holder."""
        self.bytes += size
        self.tensors += 1
        self.raised += size if raised else 0
        self.ended += size if ended else 0
        self.examples.append((size, node))

    def row(self) -> dict[str, Any]:
        """As the dump keeps it."""
        return {
            **{name: getattr(self, name) for name in _KEPT},
            "place": self.place,
            "finished": self.finished,
            "running": self.running,
            "at": None if self.at is None else _frame(self.at),
            "stores": [_frame(one) for one in self.stores],
        }

    def take_in(self, other: HolderRow) -> None:
        """Let `other` stand in this row too."""
        self.kind = min(self.kind, other.kind, key=MERGED.index) if other.kind in MERGED else other.kind
        self.bytes += other.bytes
        if self.retained is not None and other.retained is not None:
            self.retained += other.retained
        self.tensors += other.tensors
        self.nodes += other.nodes
        self.path = list(dict.fromkeys([*self.path, *other.path]))[:MOST_PATHS]
        if other.length is not None:
            self.length = (self.length or 0) + other.length
        self.maxlen = self.maxlen if self.maxlen == other.maxlen else None
        self.members |= other.members
        self.examples = nlargest(MOST_EXAMPLES, [*self.examples, *other.examples])
        self.raised += other.raised
        self.ended += other.ended
        self.at = self.at or other.at
        self.stores = self.stores or other.stores
        self.finished = self.finished if self.finished == other.finished else None


def _frame(place: Place) -> dict[str, Any]:
    return dict(zip(("filename", "line", "name"), place, strict=True))


def merge(rows: list[HolderRow]) -> list[HolderRow]:
    """Rows of one holder become one; holders that differ only in positions too, and the nodes of a chain."""
    exact = _merged(rows, by_position=True)
    return sorted(_merged(exact, by_position=False), key=lambda row: -row.bytes)


def _merged(rows: list[HolderRow], *, by_position: bool) -> list[HolderRow]:
    merged: dict[tuple[str | None, str, int], HolderRow] = {}
    for row in rows:
        words = row.holder if by_position or row.holder is None else _any_position(row.holder)
        # A collection, a graph and a tensor of one name are one holder; what a module owns stays apart by category.
        known = merged.setdefault((words, "" if row.kind in MERGED else row.kind, row.device), row)
        if known is row:
            continue
        count = known.count + row.count
        known.holder = words
        known.take_in(row)
        known.count = count if not by_position else max(len(known.members), 1)
    return list(merged.values())


def _any_position(words: str) -> str:
    return _CHAIN.sub(ANY_STEPS + ".", _INDEX.sub("[*]", words))
