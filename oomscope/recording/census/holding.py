"""The graph of who keeps what alive: storages at the bottom, places a person knows at the top.

It is built from the bottom: only what leads to a tensor is in it, whatever else fills the heap.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from types import FrameType, FunctionType, MethodType
from typing import Any

from oomscope.recording.census import roots as places
from oomscope.recording.census.calls import LINKS, EndedCalls, is_link
from oomscope.recording.census.deferred import deferred_words
from oomscope.recording.census.dominators import components
from oomscope.recording.census.garbage import References
from oomscope.recording.census.graph import Graph, sequence_number
from oomscope.recording.census.heap import Deadline, Heap
from oomscope.recording.census.kinds import is_a
from oomscope.recording.census.paths import SUSPENDABLE, Paths, frame_of, join
from oomscope.recording.census.storages import Key, Storage, TensorReader

SUPER_ROOT = 0
_MOST_LEVELS = 40


@dataclass(slots=True)
class Holding:
    """Nodes by number; node 0 stands above all roots. `parents` and `labels` tell how each was first reached."""

    objects: list[Any] = field(default_factory=lambda: [None])
    children: list[list[int]] = field(default_factory=lambda: [[]])
    numbers: dict[int, int] = field(default_factory=dict)
    storages: dict[Key, int] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    starts: dict[int, str] = field(default_factory=dict)
    entries: list[tuple[places.Root, int]] = field(default_factory=list)  # each root's edge into the graph
    entered: dict[int, places.Root] = field(default_factory=dict)  # the root that a start was claimed from
    cycles: set[int] = field(default_factory=set)
    garbage: dict[int, bool] = field(default_factory=dict)  # of some cycles, whether it is proven that they are
    suspended: list[FrameType] = field(default_factory=list)  # of generators and coroutines that will go on
    paths: Paths = field(default_factory=Paths)

    def number(self, item: Any) -> int:
        """The node of this object, made where there is none yet."""
        known = self.numbers.get(id(item))
        if known is None:
            known = self.numbers[id(item)] = self._append(item)
        return known

    def storage(self, key: Key, storage: Storage) -> int:
        """The node of this storage."""
        known = self.storages.get(key)
        if known is None:
            known = self.storages[key] = self._append(storage)
        return known

    def _append(self, item: Any) -> int:
        self.objects.append(item)
        self.children.append([])
        return len(self.objects) - 1

    def label(self, node: int) -> str | None:
        """The way from a root to this node in words, or None where nothing visible holds it."""
        steps = []
        while node not in self.starts:
            if node not in self.parents:
                return None
            parent = self.parents[node]
            words = deferred_words(self.objects[parent])
            if words is not None:
                steps.append((self.objects[parent], self.objects[node]))
                return join(words, [self.step(*one) for one in reversed(steps)])
            steps.append((self.objects[parent], self.objects[node]))
            node = parent
        if not self.starts[node]:
            return None
        # From the root down: a step may need what the one before it learned.
        return join(self.starts[node], [self.step(parent, child) for parent, child in reversed(steps)])

    def is_claimed(self, node: int) -> bool:
        """Whether a root has claimed this node already."""
        return node in self.parents or node in self.starts

    def start(self, node: int) -> int:
        """Where the way to this node begins: at what a root refers to, or what nothing visible does."""
        while node not in self.starts and node in self.parents:
            node = self.parents[node]
        return node

    def step(self, parent: Any, child: Any) -> str:
        """What leads from one object to the next, in words; storages and the autograd graph are seen through."""
        if is_a(child, Storage) or is_graph_node(child):
            return ""
        if is_tensor_like(parent) and is_tensor_like(child):
            return ".grad"
        if is_tensor_like(parent) and is_a(child, dict) and (hooks := _hooks_name(parent, child)):
            return hooks
        try:
            return self.paths.step(parent, child)
        except Exception:
            return f".<{type(parent).__name__}>"


def _hooks_name(tensor: Any, hooks: dict[Any, Any]) -> str:
    """What a tensor calls the dict of its hooks, which is none of its attributes; empty for another dict."""
    names = ("_backward_hooks", "_post_accumulate_grad_hooks")
    return next((f".{name}" for name in names if getattr(tensor, name, None) is hooks), "")


def is_graph_node(item: Any) -> bool:
    """Whether this is a node of the autograd graph."""
    return is_node_type(type(item))


def is_node_type(kind: type) -> bool:
    """Whether its instances are nodes of the autograd graph; asked of any class, so that its own code must not run."""
    return any("next_functions" in base.__dict__ for base in kind.__mro__)


def is_tensor_like(item: Any) -> bool:
    """Whether this is a tensor."""
    return hasattr(type(item), "grad_fn")


def add_tensors(holding: Holding, graph: Graph, reader: TensorReader, tensors: Iterable[Any], named: set[Key]) -> None:
    """Put tensors, the graph behind them and the storages that have no name of their own at the bottom."""
    for tensor in tensors:
        node = holding.number(tensor)
        key = reader.key(tensor)
        if key is not None and key not in named:
            holding.children[node].append(holding.storage(key, reader.storages[key]))
        if tensor.grad_fn is not None:
            holding.children[node].append(holding.number(tensor.grad_fn))
        gradient = reader.gradient(tensor)
        if gradient is not None:
            holding.children[node].append(holding.number(gradient))
            _mark_gradient(reader, gradient)
    for position, (graph_node, following) in enumerate(zip(graph.nodes, graph.next, strict=False)):
        node = holding.number(graph_node)
        holding.children[node].extend(holding.number(graph.nodes[index]) for index in following)
        for key, words in graph.saved[position]:
            storage = reader.storages[key]
            if storage.saved_for is None:
                storage.saved_for = words
            if key not in named:
                storage.category = "activation"
                holding.children[node].append(holding.storage(key, storage))


def _mark_gradient(reader: TensorReader, gradient: Any) -> None:
    key = reader.key(gradient)
    if key is not None:
        reader.storages[key].category = "gradient"


def climb(
    holding: Holding,
    heap: Heap,
    extra: Iterable[Any],
    held: Iterable[Any],
    stacks: list[list[FrameType]],
    deadline: Deadline,
) -> list[places.Root]:
    """Add who refers to what is in the graph, level by level, up to globals and classes; these are returned.

    Args:
        holding: The graph; its tensors and `extra` (modules and optimizers, for their names) are asked for first.
        heap: Where referrers are looked up.
        extra: Objects whose way to a root is wanted for itself.
        held: Nodes of the autograd graph that Python objects were there for before the walk: something may keep those.
        stacks: The running frames, which count as no holder here: their variables are roots.
        deadline: When to stop.
    """
    known_globals = places.module_globals(stacks)
    # Before Python 3.11 running frames are among the collector's objects.
    ignored = {id(frame) for stack in stacks for frame in stack}
    found: dict[int, places.Root] = {}
    for item in extra:
        holding.number(item)
    calls = EndedCalls(heap.of_types(LINKS), ignored)
    level = {key for key, node in holding.numbers.items() if not is_graph_node(holding.objects[node])}
    level.update(key for key in map(id, held) if key in holding.numbers)
    for _ in range(_MOST_LEVELS):
        deadline.check()
        following: set[int] = set()
        for referrer, referent in heap.referrers(level):
            if id(referrer) in ignored or is_link(referrer, holding.objects[holding.numbers[referent]]):
                continue
            if id(referrer) in known_globals:
                found.setdefault(id(referrer), places.global_root(*known_globals[id(referrer)]))
            elif is_a(referrer, type):
                found.setdefault(id(referrer), places.class_root(referrer))
            else:
                if id(referrer) not in holding.numbers:
                    following.add(id(referrer))
                holding.children[holding.number(referrer)].append(holding.numbers[referent])
        if not following:
            break
        level = following | _add_ended_calls(holding, calls, following)
    return list(found.values())


def _add_ended_calls(holding: Holding, calls: EndedCalls, start: set[int]) -> set[int]:
    """Add what leads through frames and tracebacks to those in `start`; returns the ids of what that is."""
    added = set()
    for referrer, referent in calls.climb(start):
        added.add(id(referrer))
        holding.children[holding.number(referrer)].append(holding.numbers[referent])
    return added


def flood(holding: Holding, all_roots: list[places.Root], references: References) -> None:
    """Let every root claim what it reaches, in the order of the roots; what is left is in a cycle or nobody's."""
    for root in sorted(all_roots, key=lambda root: root.order):
        members = [(holding.numbers[key], name) for key, name in root.names.items() if key in holding.numbers]
        # What outlives a pass comes first; then the latest result of a computation, which holds the ones before it.
        members.sort(key=lambda one: (one[1] not in root.carried, -sequence_number(holding.objects[one[0]])))
        for node, name in members:
            holding.children[SUPER_ROOT].append(node)
            holding.entries.append((root, node))
            if not holding.is_claimed(node):
                holding.entered[node] = root
            _claim(holding, node, f"{root.label}: {name}" if name else root.label)
    _claim_suspended(holding)
    _claim_cycles(holding, references)


def _claim_suspended(holding: Holding) -> None:
    """Let generators and coroutines that will go on, and that no root leads to, claim what they hold."""
    # A generator's frame is an object only once it is asked for.
    has_frames = any(is_a(item, FrameType) for item in holding.objects)
    for node, item in enumerate(holding.objects):
        if not is_a(item, SUSPENDABLE):
            continue
        if has_frames and (frame := frame_of(item)) is not None:
            holding.suspended.append(frame)
        if not holding.is_claimed(node):
            holding.children[SUPER_ROOT].append(node)
            _claim(holding, node, f"suspended {getattr(item, '__qualname__', type(item).__name__)}")


def _claim(holding: Holding, start: int, words: str) -> None:
    if holding.is_claimed(start):
        return
    holding.starts[start] = words
    queue = [start]
    for node in queue:  # grows while it is walked: breadth first
        for child in holding.children[node]:
            if not holding.is_claimed(child):
                holding.parents[child] = node
                queue.append(child)


def _claim_cycles(holding: Holding, references: References) -> None:
    loose = [node for node in range(1, len(holding.objects)) if not holding.is_claimed(node)]
    # Sources come last; whoever is at the source of what nothing else reaches stands for it.
    found = components(holding.children, loose)[::-1]
    proven = references.garbage([ring for ring in found if _may_be_garbage(holding, ring)], holding.objects)
    for component in found:
        first = component[0]
        is_cycle = _is_cycle(holding, component)
        if holding.is_claimed(first):
            if is_cycle:
                _start_within_garbage(holding, component)
            continue
        if is_tensor_like(holding.objects[first]) and not is_cycle:
            # No Python object refers to it: C++ does, mostly the graph. It is no holder of its own, and what it
            # stands for comes further down the order if nothing else leads there.
            continue
        if is_cycle:
            first = min(component, key=lambda node: _is_plain(holding.objects[node]))
            holding.cycles.add(first)
            if component[0] in proven:
                holding.garbage[first] = proven[component[0]]
            words = f"reference cycle: {_cycle_words(holding, first, set(component))}"
        elif holding.children[first] and all(holding.is_claimed(child) for child in holding.children[first]):
            # A value that is just being passed to a call, or a running function's cell: no holder of its own.
            continue
        else:
            words = _unheld_words(holding.objects[first])
        holding.children[SUPER_ROOT].append(first)
        _claim(holding, first, words)


def _start_within_garbage(holding: Holding, component: list[int]) -> None:
    """Let a ring that only garbage leads to claim what it reaches: it would be garbage without that, too."""
    members = set(component)
    first = next((node for node in component if holding.parents.get(node) not in members), component[0])
    before = holding.start(first)
    if not holding.garbage.get(before) or not _may_be_garbage(holding, component):
        return
    reached = {first: -1}
    queue = [first]
    for node in queue:  # grows while it is walked: breadth first
        for child in holding.children[node]:
            if child not in reached and holding.start(child) == before:
                reached[child] = node
                queue.append(child)
    holding.parents.update(reached)
    del holding.parents[first]
    holding.starts[first] = f"reference cycle: {_cycle_words(holding, first, members)}"
    holding.cycles.add(first)
    holding.garbage[first] = True
    holding.children[SUPER_ROOT].append(first)


def _is_cycle(holding: Holding, component: list[int]) -> bool:
    return len(component) > 1 or component[0] in holding.children[component[0]]


def _may_be_garbage(holding: Holding, component: list[int]) -> bool:
    """Whether references tell: what C++ holds as well does not count them all."""
    items = [holding.objects[node] for node in component]
    return _is_cycle(holding, component) and not any(is_graph_node(item) or is_tensor_like(item) for item in items)


def _unheld_words(item: Any) -> str:
    """What only C++ holds has no words; a Python object without a visible holder is at least named by its type."""
    if is_a(item, Storage) or is_graph_node(item) or is_tensor_like(item):
        return ""
    if is_a(item, FunctionType) and "<locals>." in item.__qualname__:
        # Registered where Python cannot look, such as atexit.
        return "{0}: {2}".format(*item.__qualname__.rpartition(".<locals>."))
    unseen = f"a {type(item).__name__} that nothing visible holds"
    called = _called(item)
    return f"{called} ({unseen})" if called else unseen


def _called(item: Any) -> str | None:
    """The function behind a method or a partial, as its file defines it: ``Engine.close``."""
    function: Any = item.__func__ if is_a(item, MethodType) else item.func if is_a(item, functools.partial) else None
    return str(function.__qualname__).rpartition("<locals>.")[2] if is_a(function, FunctionType) else None


def _is_plain(item: Any) -> bool:
    return type(item).__module__ in ("builtins", "types", "collections", "functools")


def _cycle_words(holding: Holding, start: int, component: set[int]) -> str:
    """``Node.partner → Node``: the shortest way round from `start`."""
    came_from: dict[int, int] = {}
    queue = [start]
    for node in queue:
        for child in holding.children[node]:
            if child == start:
                return _round(holding, came_from, node, start)
            if child in component and child not in came_from:
                came_from[child] = node
                queue.append(child)
    return type(holding.objects[start]).__name__


def _round(holding: Holding, came_from: dict[int, int], last: int, start: int) -> str:
    ring = [start, last]
    while ring[-1] != start:
        ring.append(came_from[ring[-1]])
    ring = ring[::-1]
    words = type(holding.objects[start]).__name__
    for parent, child in pairwise(ring):
        item = holding.objects[child]
        words += holding.step(holding.objects[parent], item)
        if not _is_plain(item):
            words += f" → {type(item).__name__}"
    return words
