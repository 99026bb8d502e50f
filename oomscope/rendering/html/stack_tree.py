"""The calls of a device's stacks as a tree, with the bytes that are live beneath each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.records import CATEGORIES
from oomscope.frozen import frozen
from oomscope.history.lifetimes import Lifetimes
from oomscope.model import NO_STACK, FrameKind, IntArray, StackTable, frame_kind
from oomscope.model.arrays import FloatArray, Int32Array
from oomscope.model.ordering import numbered, stable_order
from oomscope.rendering.html.lifetime_keys import LifetimeKeys

ROOT = 0
_DEEPEST = 199
"""Frames of a stack, the outermost first; a recursion may go deeper."""
_LITTLE = 0.05
"""Of the highest allocated bytes: where there was less, a share of it says little."""


@frozen(eq=False)
class StackTree:
    """All stacks of a device, callers before their callees.

    Attributes:
        frame: the number of each node's frame; -1 for the root.
        parent: the node that called each; -1 for the root.
        children: the nodes that each called.
        bytes: int64[nodes], live beneath each node at the instant of attribution.
        category: int64[nodes], what most of that is.
        highest: float64[nodes], a bound on the share of what was allocated that was live beneath it at any instant.
        leaf: int64[lifetimes], the innermost frame of each; -1 where no frame of it is shown.
    """

    frame: Sequence[int]
    parent: Sequence[int]
    children: Sequence[Sequence[int]]
    bytes: IntArray
    category: IntArray
    highest: FloatArray
    leaf: IntArray


class StackUse(NamedTuple):
    """Which stacks a device's lifetimes have.

    Attributes:
        stack: int64[stacks], numbers in the snapshot's table.
        of: int64[lifetimes], numbers in `stack`.
        highest: float64[stacks], the largest share of what was allocated that each ever held.
    """

    stack: IntArray
    of: IntArray
    highest: FloatArray


class _Calls:
    """The nodes, while stacks are added."""

    def __init__(self) -> None:
        self.frame, self.parent, self.depth = [-1], [-1], [0]
        self.by_frame: list[dict[int, int]] = [{}]

    def add(self, path: Sequence[int]) -> int:
        """The node of the last frame of `path`, which begins with the outermost."""
        node = ROOT
        for frame in path:
            called = self.by_frame[node].get(frame)
            if called is None:
                called = self.by_frame[node][frame] = len(self.frame)
                self.frame.append(frame)
                self.parent.append(node)
                self.depth.append(self.depth[node] + 1)
                self.by_frame.append({})
            node = called
        return node


def stack_use(device: DeviceFindings) -> StackUse:
    """The stacks of all that `device` ever allocated."""
    stack, of = numbered(device.history.lifetimes.stack.astype(np.int64))
    return StackUse(stack, of, _highest(device, of, len(stack)))


def stack_tree(
    device: DeviceFindings, stacks: StackTable, keys: LifetimeKeys, use: StackUse, hidden: tuple[FrameKind, ...]
) -> StackTree:
    """The tree of all that `device` ever allocated.

    Args:
        device: the device.
        stacks: of the snapshot.
        keys: categories of its lifetimes.
        use: the stacks of its lifetimes.
        hidden: frames that are left out; what they called joins their callers.
    """
    history, calls, width = device.history, _Calls(), len(CATEGORIES)
    shown = [frame_kind(frame.filename) not in hidden for frame in stacks.frames]
    leaf_of = []
    for stack in use.stack.tolist():
        first, end = (0, 0) if stack == NO_STACK else stacks.offsets[stack : stack + 2].tolist()
        path = [member for member in reversed(stacks.members[first:end].tolist()) if shown[member]]
        leaf_of.append(calls.add(path[:_DEEPEST]) if path else -1)
    leaves = np.array(leaf_of, np.int64)
    leaf = leaves[use.of]
    live = np.flatnonzero(history.lifetimes.allocated_at(device.at_entry) & (leaf >= 0))
    # Sums of bytes stay far below 2**53, so float64 holds them exactly.
    held = np.bincount(leaf[live] * width + keys.category[live], history.size[live], len(calls.frame) * width)
    highest = np.bincount(leaves[leaves >= 0], use.highest[leaves >= 0], len(calls.frame))
    beneath = np.concatenate([held.reshape(-1, width), highest[:, np.newaxis]], axis=1)
    parent = np.array(calls.parent, np.int64)
    for row in _deepest_first(calls.depth):
        np.add.at(beneath, parent[row], beneath[row])
    by_category, children = beneath[:, :width].astype(np.int64), [list(called.values()) for called in calls.by_frame]
    return StackTree(
        calls.frame, calls.parent, children,
        by_category.sum(axis=1), by_category.argmax(axis=1), beneath[:, width], leaf,
    )  # fmt: skip


def _highest(device: DeviceFindings, key: IntArray, keys: int) -> FloatArray:
    """float64[keys]: the largest share of what was allocated that each key ever held."""
    history, allocated = device.history, device.history.curves.allocated
    highest, count = np.zeros(keys), len(key)
    event, after = _in_time(history.lifetimes, len(allocated))
    if not len(event):
        return highest
    is_free = event >= count
    row = np.subtract(event, count, out=event, where=is_free)
    whose = key[row]
    each = np.bincount(whose, minlength=keys)
    order = stable_order(whose)
    row, after, is_free = row[order], after[order], is_free[order]
    del order, whose, event  # of millions of events each column counts
    held = history.size[row]
    np.negative(held, out=held, where=is_free)
    np.cumsum(held, out=held)
    each, some = each[each > 0], np.flatnonzero(each)
    first = np.cumsum(each) - each
    held -= np.repeat(np.append(0, held[first[1:] - 1]), each)
    there = allocated[after]
    np.maximum(there, max(1, int(_LITTLE * allocated.max(initial=0))), out=there)
    highest[some] = np.maximum.reduceat(held / there, first)
    return highest


def _in_time(lifetimes: Lifetimes, instants: int) -> tuple[Int32Array, Int32Array]:
    """Births and frees in the order of time, as rows of `lifetimes`, frees counted on; and the instant after each."""
    after = np.concatenate([lifetimes.born.astype(np.int32), lifetimes.freed.astype(np.int32)])
    after += 1
    event = np.flatnonzero((after >= 0) & (after < instants)).astype(np.int32)
    at = np.full(instants, -1, np.int32)
    at[after[event]] = event
    found = at[at >= 0]
    if len(found) < len(event):  # not one at an instant, as in a recording without frees
        found = event[stable_order(after[event].astype(np.int64))]
    return found, after[found]


def _deepest_first(depth: Sequence[int]) -> list[IntArray]:
    """The nodes of each depth, without the root."""
    order = np.argsort(np.array(depth), kind="stable")
    starts = np.searchsorted(np.array(depth)[order], np.arange(1, max(depth) + 2))
    return [order[first:end] for first, end in zip(starts[:-1][::-1], starts[1:][::-1], strict=True)]
