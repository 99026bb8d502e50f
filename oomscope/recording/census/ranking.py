"""Holders in the order of what they keep alive, each told once.

A tree of modules and their attributes is seen through, so that a list which a hook fills is told apart from the model
it hangs on; a collection, a graph, an exception's traceback and a reference cycle each stand for all they keep. The
dominator tree says which of them that is; every byte is put down to one holder.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

from oomscope.recording.census.dominators import immediate_dominators, postorder, retained
from oomscope.recording.census.explaining import explain
from oomscope.recording.census.graph_gradients import join_gradients
from oomscope.recording.census.heap import Deadline
from oomscope.recording.census.holder_rows import HolderRow, merge
from oomscope.recording.census.holding import SUPER_ROOT, Holding, is_graph_node, is_tensor_like
from oomscope.recording.census.kinds import is_a, is_collection, kind_of
from oomscope.recording.census.names import MODULE_MEMBERS
from oomscope.recording.census.paths import instance_dict
from oomscope.recording.census.roots import Root
from oomscope.recording.census.storages import Storage

_NEARLY_ALL = 0.8  # a collection of which one member keeps this share of the bytes is seen through
_MOST_EXACT = 20  # rows whose retained bytes are found by leaving the holder out


def rank(holding: Holding, gradients: Iterable[int], deadline: Deadline) -> list[HolderRow]:
    """The holders of everything in the graph, most bytes first; one on two devices has two rows.

    Args:
        holding: who refers to whom.
        gradients: the nodes of gradients that keep a graph.
        deadline: when to stop.
    """
    order = postorder(holding.children, SUPER_ROOT)
    dominator = immediate_dominators(holding.children, SUPER_ROOT)
    deadline.check()
    weights = [item.bytes if is_a(item, Storage) else 0 for item in holding.objects]
    below: list[list[int]] = [[] for _ in dominator]
    for node in order:
        if node != SUPER_ROOT:
            below[dominator[node]].append(node)
    rows: list[HolderRow] = []
    for top in _tops(holding, below, retained(weights, dominator, order)):
        rows += _rows(holding, top, below, _above(top, dominator))
    join_gradients(holding, rows, gradients)
    merged = merge(rows)
    for row in merged[:_MOST_EXACT]:
        deadline.check()
        row.retained = _kept_alone(holding, row, weights)
        explain(holding, row)
    return merged


def _tops(holding: Holding, below: list[list[int]], bytes_below: list[int]) -> list[int]:
    """The nodes of the dominator tree that stand for all below them."""
    tops, open_nodes = [], list(below[SUPER_ROOT])
    attributes: set[int] = set()
    while open_nodes:
        node = open_nodes.pop()
        item = holding.objects[node]
        if not bytes_below[node]:
            continue
        if node not in holding.cycles and _is_seen_through(item, attributes):
            if is_a(item, types.FunctionType):
                attributes.add(id(item.__closure__))
            named = instance_dict(item)
            if named is not None:
                attributes.add(id(named))
                attributes.update(id(named.get(key)) for key in MODULE_MEMBERS)
            open_nodes.extend(below[node])
            continue
        members = [child for child in below[node] if not _is_data(holding.objects[child])]
        inner = max(members, key=bytes_below.__getitem__, default=0)
        # A tensor stands for its memory and its graph, not for what its hooks keep.
        is_open = is_collection(item) or is_tensor_like(item)
        if is_open and inner and bytes_below[inner] >= _NEARLY_ALL * bytes_below[node]:
            open_nodes.extend(below[node])
        else:
            tops.append(node)
    return tops


def _is_data(item: Any) -> bool:
    return is_a(item, Storage) or is_graph_node(item) or is_tensor_like(item)


def _is_seen_through(item: Any, attributes: set[int]) -> bool:
    if _is_data(item) or is_a(item, BaseException):
        return False
    return id(item) in attributes or not is_collection(item)


def _above(top: int, dominator: list[int]) -> list[int]:
    """The nodes that every way to `top` runs through, up to the roots."""
    above = [top]
    while dominator[above[-1]] != above[-1]:
        above.append(dominator[above[-1]])
    return above[1:-1]


def _rows(holding: Holding, top: int, below: list[list[int]], above: list[int]) -> list[HolderRow]:
    rows: dict[int, HolderRow] = {}
    member = _whose(holding, top)
    words, kind, nodes = holding.label(member), _kind(holding, member), 0
    going_on = {id(frame) for frame in holding.suspended}
    tops = [holding.objects[node] for node in above]
    open_nodes = [(top, any(map(_is_raised, tops)), any(_is_of_the_past(item, going_on) for item in tops))]
    while open_nodes:
        node, raised, ended = open_nodes.pop()
        item = holding.objects[node]
        raised, ended = raised or _is_raised(item), ended or _is_of_the_past(item, going_on)
        open_nodes.extend((child, raised, ended) for child in below[node])
        nodes += is_graph_node(item)
        if is_a(item, Storage):
            row = rows.setdefault(item.device, HolderRow(words, kind or "tensor", item.device, members={member}))
            row.add(item.bytes, node, raised=raised, ended=ended)
    for row in rows.values():
        row.nodes = nodes
        row.kind = kind or ("graph" if nodes else _kind_of_one(holding, member))
    return list(rows.values())


def _is_raised(item: Any) -> bool:
    return is_a(item, (BaseException, types.TracebackType))


def _is_of_the_past(item: Any, going_on: set[int]) -> bool:
    """Whether what this holds, a call held that has ended: running frames hold nothing in this graph."""
    return is_a(item, types.TracebackType) or (is_a(item, types.FrameType) and id(item) not in going_on)


def _whose(holding: Holding, top: int) -> int:
    """What several share is put down to the first that claimed it: a collection, or the tensor whose graph it is."""
    node = top
    while _is_data(holding.objects[node]) and node in holding.parents:
        parent = holding.parents[node]
        if not _is_data(holding.objects[parent]):
            is_holder = is_collection(holding.objects[parent]) and not _is_attributes(holding, parent)
            return parent if is_holder else node
        if _keeps_graph(holding.objects[node]) and is_tensor_like(holding.objects[parent]):
            return node  # a gradient, whose graph is none of its parameter's
        node = parent
    return node


def _keeps_graph(item: Any) -> bool:
    return is_tensor_like(item) and item.grad_fn is not None


def _is_attributes(holding: Holding, node: int) -> bool:
    """Whether this dict holds an object's attributes, or a module's parameters, buffers or modules."""
    parent = holding.parents.get(node)
    if parent is None:
        return False
    item, owner = holding.objects[node], holding.objects[parent]
    named = instance_dict(owner)
    if named is item:
        return True
    if named is None and _is_attributes(holding, parent):
        named = owner
    return named is not None and is_a(named, dict) and any(named.get(key) is item for key in MODULE_MEMBERS)


def _kind(holding: Holding, member: int) -> str | None:
    return "cycle" if member in holding.cycles else kind_of(holding.objects[member])


def _kind_of_one(holding: Holding, member: int) -> str:
    """Where a single tensor is held."""
    if member in holding.starts:
        root = holding.entered.get(member)
        return {"global": "global", "class": "attribute"}.get("" if root is None else root.kind, "tensor")
    parent = holding.parents.get(member)
    holder = None if parent is None else holding.objects[parent]
    if is_a(holder, types.CellType):
        return "closure"
    is_attribute = parent is not None and (_is_attributes(holding, parent) or not _is_data(holder))
    return "attribute" if is_attribute and kind_of(holder) in (None, "dict") else "tensor"


def _kept_alone(holding: Holding, row: HolderRow, weights: list[int]) -> int:
    """The bytes on the row's device that would go if the row's members let go.

    What a function's callees refer to counts as nothing: those calls are over before it can let go.
    """
    owners = [root for member in row.members if (root := _root_of(holding, member)) is not None]
    passing = {node for root, node in holding.entries if owners and not any(root.outlives(own) for own in owners)}
    passing -= {node for root, node in holding.entries if any(root.outlives(own) for own in owners)}
    kept = _reached(holding, row.members, bytearray(len(weights)))
    others = bytearray(len(weights))
    for member in row.members:
        others[member] = 1
    tops = [node for node in holding.children[SUPER_ROOT] if node not in passing]
    elsewhere = _reached(holding, tops, others)
    lost = (holding.objects[node] for node in kept - elsewhere)
    return sum(item.bytes for item in lost if is_a(item, Storage) and item.device == row.device)


def _root_of(holding: Holding, node: int) -> Root | None:
    while node in holding.parents:
        node = holding.parents[node]
    return holding.entered.get(node)


def _reached(holding: Holding, starts: Iterable[int], seen: bytearray) -> set[int]:
    """What can be reached from `starts` without passing what `seen` marks; marks it."""
    open_nodes = [node for node in starts if not seen[node]]
    reached = set()
    while open_nodes:
        node = open_nodes.pop()
        if not seen[node]:
            seen[node] = 1
            reached.add(node)
            open_nodes.extend(child for child in holding.children[node] if not seen[child])
    return reached
