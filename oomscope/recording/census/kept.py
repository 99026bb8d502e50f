"""Which storages each tensor and each node of the autograd graph keeps, as far as Python can see it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from oomscope.recording.census.graph import Graph
from oomscope.recording.census.holding import Holding
from oomscope.recording.census.storages import Key, TensorReader


class Kept:
    """The storages that nodes keep beside those that are nodes themselves, and what C++ refers to."""

    def __init__(self, torch: Any, reader: TensorReader) -> None:
        self.reader = reader
        self.keys: dict[int, list[Key]] = {}  # of tensors
        self.saved: dict[int, list[Key]] = {}  # of nodes of the graph
        self._times_saved: Counter[Key] = Counter()
        self.tensors_of: dict[Key, list[int]] = {}
        self.further: dict[int, list[int]] = {}
        self.detached: set[int] = set()  # views that are in no graph: they show values alone
        self.behind: set[int] = set()  # tensors that another one keeps in C++: gradients, and what views look at
        self._looked_at: Counter[int] = Counter()  # by node, how many views and parameters keep it in C++
        self._bases: dict[Key, Counter[int]] = {}  # by tensor that only C++ refers to, how many views look at it
        self._uses: dict[int, int] = {}  # of those, how often C++ refers to them
        self._count_uses = getattr(torch._C, "_storage_Use_Count", None)
        self.tells = self._count_uses is not None and hasattr(torch.Tensor, "_use_count")  # torch 2.3 and later
        self._least = torch.empty(0)._use_count() if self.tells else 0
        self._plain = (torch.Tensor, torch.nn.Parameter)

    def add(self, holding: Holding, graph: Graph, tensors: Iterable[Any]) -> None:
        """Make nodes of those of `tensors` that are on the device. One that answers strangely is passed over."""
        behind: list[tuple[int, Any]] = []
        for tensor in tensors:
            try:
                parts = [tensor] if type(tensor) in self._plain else self.reader.parts(tensor)
                keys = [key for part in parts if (key := self.reader.key(part)) is not None]
                if keys:
                    behind += self._add_tensor(holding, tensor, keys)
            except Exception:
                self.reader.failures += 1
        for node, other in behind:
            known = holding.numbers.get(id(other))
            if known is not None:
                if other is holding.objects[node]._base and holding.objects[node].grad_fn is None:
                    self.detached.add(node)
                self.behind.add(known)
                self._looked_at[known] += 1
                self.further.setdefault(node, []).append(known)
            elif other is holding.objects[node]._base:
                self._add_base(self.keys[node][0], other)
        for position, graph_node in enumerate(graph.nodes):
            node = holding.number(graph_node)
            self.saved[node] = [key for key, _ in graph.saved[position]]
            self._times_saved.update(self.saved[node])
            parameter = getattr(graph_node, "variable", None)
            if parameter is not None and id(parameter) in holding.numbers:
                self.further[node] = [holding.numbers[id(parameter)]]
                self._looked_at[self.further[node][0]] += 1

    def _add_base(self, key: Key, base: Any) -> None:
        """Note what a view looks at, where no Python object of the program's stands for it."""
        self._bases.setdefault(key, Counter())[base._cdata] += 1
        if self.tells:
            self._uses[base._cdata] = base._use_count() - self._least

    def _add_tensor(self, holding: Holding, tensor: Any, keys: list[Key]) -> list[tuple[int, Any]]:
        """Add one tensor with its gradient; returns its node with what it keeps in C++."""
        node = holding.number(tensor)
        gradient = self.reader.gradient(tensor)
        gradient_key = None if gradient is None else self.reader.key(gradient)
        self.keys[node] = [*keys, *([] if gradient_key is None else [gradient_key])]
        for key in keys:
            self.tensors_of.setdefault(key, []).append(node)
        return [(node, one) for one in (gradient, tensor._base) if one is not None]

    def saved_tensors(self) -> set[int]:
        """The tensors whose storage a graph keeps; where nothing else does, it keeps the tensor itself."""
        return {node for key in self._times_saved for node in self.tensors_of.get(key, ())}

    def reach(self, holding: Holding, starts: Iterable[int], seen: set[int], *, for_graphs: bool = False) -> set[int]:
        """The nodes that are reached from `starts` without those in `seen`, to which they are added.

        With `for_graphs` not through views that have none.
        """
        open_nodes, reached = list(starts), set[int]()
        while open_nodes:
            node = open_nodes.pop()
            if node not in seen:
                seen.add(node)
                reached.add(node)
                open_nodes += holding.children[node]
                if not (for_graphs and node in self.detached):
                    open_nodes += self.further.get(node, ())
        return reached

    def storages(self, holding: Holding, nodes: Iterable[int]) -> set[Key]:
        """The storages that `nodes` keep."""
        known = {node: key for key, node in holding.storages.items()}  # of tensors that have no name of their own
        nodes = set(nodes)
        found = {known[node] for node in nodes & known.keys()}
        found.update(*(self.keys[node] for node in nodes & self.keys.keys()))
        return found.union(*(self.saved[node] for node in nodes & self.saved.keys()))

    def is_shared_unseen(self, holding: Holding, key: Key) -> bool:
        """Whether C++ keeps a storage by more than Python knows: a compiled module, a bucket of gradients."""
        if self._count_uses is None:
            return True
        nodes = self.tensors_of.get(key, ())
        if not nodes:
            return False  # a gradient that no Python object stands for: its parameter keeps it
        saved, whole = self._times_saved[key], None
        for node in nodes:
            tensor = holding.objects[node]
            if tensor._use_count() - self._least > self._looked_at[node] + saved:
                return True
            whole = tensor if self.reader.key(tensor) == key else whole
        bases = self._bases.get(key, Counter())
        if whole is None or any(self._uses.get(base, 0) > views + saved for base, views in bases.items()):
            return True
        storage = whole.untyped_storage()  # an object that refers to it as well
        return int(self._count_uses(storage._cdata)) - 1 > len(nodes) + len(bases) + saved
