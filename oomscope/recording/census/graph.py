"""The autograd graph: what each node saved for backward, read without unpacking it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from oomscope.recording.census.heap import Deadline
from oomscope.recording.census.storages import Key, TensorReader

_PREFIX = "_raw_saved_"
_CHECK_EVERY = 512


class Graph:
    """Nodes reachable from tensors' ``grad_fn``: edges by index, and the storages each keeps for backward."""

    def __init__(self, torch: Any, reader: TensorReader, read_saved: bool = True) -> None:
        """With `read_saved` false only the shape of the graph is read.

        A saved tensor is looked at only where this torch can say that no hook packed it: a hook may have moved it
        to the host, and unpacking would bring it back.
        """
        saved_type = getattr(getattr(torch._C, "_autograd", None), "SavedTensor", None)
        self._can_read = read_saved and hasattr(saved_type, "data") and hasattr(saved_type, "unpack_hook")
        self._reader = reader
        self._attributes: dict[type, tuple[str, ...]] = {}
        self.nodes: list[Any] = []
        self.index: dict[int, int] = {}
        self.next: list[list[int]] = []
        self.saved: list[list[tuple[Key, str]]] = []

    def add(self, roots: Iterable[Any], deadline: Deadline) -> None:
        """Walk from these nodes to the leaves."""
        for root in roots:
            self._number(root)
        position = len(self.next)
        while position < len(self.nodes):
            if position % _CHECK_EVERY == 0:
                deadline.check()
            node = self.nodes[position]
            self.next.append([])
            self.saved.append([])
            self.next[position] = [self._number(child) for child, _ in node.next_functions if child is not None]
            if self._can_read:
                self.saved[position] = list(self._saved_by(node))
            position += 1

    def _number(self, node: Any) -> int:
        if id(node) not in self.index:
            # Keeping the wrapper keeps its id: torch hands out the same one while it lives.
            self.index[id(node)] = len(self.nodes)
            self.nodes.append(node)
        return self.index[id(node)]

    def _saved_by(self, node: Any) -> Iterator[tuple[Key, str]]:
        kind = type(node)
        names = self._attributes.get(kind)
        if names is None:
            names = self._attributes[kind] = tuple(name for name in dir(kind) if name.startswith(_PREFIX))
        for name in names:
            try:
                raw = getattr(node, name)
            except RuntimeError:  # released by a backward that has passed here
                continue
            for saved in raw if isinstance(raw, (list, tuple)) else (raw,):
                key = self._key_of(saved)
                if key is not None:
                    yield key, f"{kind.__name__} ({name.removeprefix(_PREFIX)})"

    def _key_of(self, saved: Any) -> Key | None:
        try:
            if saved is None or saved.unpack_hook is not None or not self._reader.is_tensor(saved.data):
                return None
            return self._reader.key(saved.data)
        except RuntimeError:
            return None


def sequence_number(item: Any) -> int:
    """How late in the graph a tensor was made; 0 for one outside it, and for all else."""
    if not hasattr(type(item), "grad_fn"):
        return 0
    try:
        node = item.grad_fn
        return 0 if node is None else int(node._sequence_nr())
    except Exception:
        return 0
