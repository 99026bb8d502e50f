"""What a holder is to its reader: the ways to what it keeps, where it lives, and whether its time is over."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterator
from heapq import nlargest
from itertools import islice
from queue import Queue
from typing import Any

from oomscope.recording.census.attribute_stores import attribute_stores
from oomscope.recording.census.deferred import deferred_words
from oomscope.recording.census.holder_rows import MOST_EXAMPLES, MOST_PATHS, HolderRow
from oomscope.recording.census.holding import Holding
from oomscope.recording.census.kinds import is_a, length
from oomscope.recording.census.paths import frame_of
from oomscope.recording.census.registered import registered_at
from oomscope.recording.census.roots import Place, place_of

_MOST = 0.5
"""Of a holder's bytes: what keeps more than this is what the row is about."""


def explain(holding: Holding, row: HolderRow) -> None:
    """Fill in what the row tells beside its bytes. `row.examples` and `row.members` say what it is about."""
    if not row.members:
        return
    first = min(row.members)
    row.length, row.maxlen = _lengths(holding, row)
    row.place = place_kind(holding, first)
    row.at = _at(holding, first)
    row.stores = attribute_stores(holding, first) or registered_at(holding, first)
    if row.kind == "cycle":
        known = [holding.garbage[node] for node in row.members if node in holding.garbage]
        row.finished = all(known) if known else None
    else:
        row.finished = row.ended > _MOST * row.bytes
    if row.raised > _MOST * row.bytes and row.kind != "cycle":
        row.kind = "exception"
    row.path = _paths(holding, row)


def _lengths(holding: Holding, row: HolderRow) -> tuple[int | None, int | None]:
    items = [holding.objects[node] for node in row.members]
    lengths = [count for item in items if (count := length(item)) is not None]
    bounds = {_bound(holding, node) for node in row.members}
    return sum(lengths) if lengths else None, bounds.pop() if len(bounds) == 1 else None


def _bound(holding: Holding, node: int) -> int | None:
    """The most that a deque takes, by itself or as the one of a `queue.Queue`; None where there is no bound."""
    item = holding.objects[node]
    if not is_a(item, deque):
        return None
    maxlen: int | None = deque.maxlen.__get__(item)
    if maxlen is not None:
        return maxlen
    for parent, _ in islice(_way(holding, node), 2):  # its attributes, and the queue itself
        if is_a(parent, Queue) and isinstance(parent.maxsize, int) and parent.maxsize > 0:
            return parent.maxsize
    return None


def _paths(holding: Holding, row: HolderRow) -> list[str]:
    """Ways to the largest storages, each once; a way through another holder is none."""
    found: dict[str, None] = {}
    wanted = {holding.label(node) for node in row.members}
    for _, node in nlargest(MOST_EXAMPLES, row.examples):
        words = holding.label(node)
        if words and any(start and words.startswith(start) for start in wanted):
            found[words] = None
        if len(found) == MOST_PATHS:
            break
    return list(found)


def _way(holding: Holding, node: int) -> Iterator[tuple[Any, Any]]:
    """(parent, child) from the node up to its root."""
    while node not in holding.starts and node in holding.parents:
        parent = holding.parents[node]
        yield holding.objects[parent], holding.objects[node]
        node = parent


def outermost_raised(holding: Holding, node: int) -> int | None:
    """The exception or traceback on the way to `node` that is nearest to the root; None where there is none."""
    found = None
    while node not in holding.starts and node in holding.parents:
        node = holding.parents[node]
        if is_a(holding.objects[node], (BaseException, types.TracebackType)):
            found = node
    return found


def unseen_closure(holding: Holding, node: int) -> int | None:
    """The function of an ended call that keeps `node` and that nothing visible holds, such as one for `atexit`."""
    start = holding.start(node)
    item = holding.objects[start]
    is_unseen = start not in holding.entered and start not in holding.cycles and start != node
    return start if is_unseen and is_a(item, types.FunctionType) and item.__closure__ else None


def place_kind(holding: Holding, node: int) -> str | None:
    """Where its way begins: ``global``, ``local``, ``class``, ``exception``, ``suspended`` or ``cycle``.

    A closure's variable is of the ``closure``, and what a call that waits was given is ``deferred``, wherever it is
    kept.
    """
    if any(deferred_words(parent) is not None for parent, _ in _way(holding, node)):
        return "deferred"
    if any(is_a(child, types.CellType) for _, child in _way(holding, node)):
        return "closure"
    start = holding.start(node)
    root = holding.entered.get(start)
    if root is not None:
        return root.kind
    if start in holding.cycles:
        return "cycle"
    return "suspended" if frame_of(holding.objects[start]) is not None else None


def _at(holding: Holding, node: int) -> Place | None:
    """The innermost code on the way: a closure's function, a suspended or ended call, else where the root is."""
    for parent, _ in _way(holding, node):
        if is_a(parent, types.FunctionType) and parent.__closure__:
            code = parent.__code__
            return code.co_filename, code.co_firstlineno, code.co_name
        frame = frame_of(parent)
        if frame is not None:
            return place_of(frame)
    root = holding.entered.get(holding.start(node))
    return None if root is None else root.at
