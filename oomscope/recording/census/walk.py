"""The walk: from everything the collector knows to names and holders for the blocks of a device.

It makes no CUDA call, unpacks nothing that a hook packed, and leaves nothing behind that was not alive before.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import chain
from time import perf_counter
from typing import Any

from oomscope.recording.census import roots as places
from oomscope.recording.census.explaining import outermost_raised, place_kind, unseen_closure
from oomscope.recording.census.frozen import find_frozen, stays_frozen
from oomscope.recording.census.garbage import References, Witness
from oomscope.recording.census.graph import Graph
from oomscope.recording.census.heap import Deadline, Heap, OutOfTime
from oomscope.recording.census.holder_rows import HolderRow, merge
from oomscope.recording.census.holding import Holding, add_tensors, climb, flood, is_node_type
from oomscope.recording.census.kept import Kept
from oomscope.recording.census.kinds import is_a
from oomscope.recording.census.names import Names, is_generated, root_modules
from oomscope.recording.census.ranking import rank
from oomscope.recording.census.running import running_models
from oomscope.recording.census.storages import Key, Storage, TensorReader, undisturbed
from oomscope.recording.census.unread import asks_for, find_unread
from oomscope.recording.census.visible import mark_visible

_BASE = re.compile(r": | \(closure\) ")
_MOST_ROWS = 20_000
_MOST_HOLDERS = 100
_HOLDERS_A_TENSOR = 3
_SHARE_OF_UNREAD = 0.5
"""Of the time that is left: holders say more than what nobody reads, and they come after it."""
_FROZEN_AT_START = 1000  # CPython 3.12 freezes a few hundred objects of its own


@dataclass(slots=True)
class Census:
    """What the walk found, as the dump keeps it."""

    tensors: list[dict[str, Any]] = field(default_factory=list)
    holders: list[dict[str, Any]] = field(default_factory=list)
    unread: list[dict[str, Any]] = field(default_factory=list)
    walk: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Found:
    """What is picked from the collector's objects."""

    tensors: list[Any]
    modules: list[Any]
    optimizers: list[Any]
    nodes: list[Any]  # of the autograd graph


def take_census(
    torch: Any,
    *,
    device_type: str = "cuda",
    tracked: Mapping[str, Any] | None = None,
    error: BaseException | None = None,
    seconds: float = 10.0,
    read_saved: bool = True,
) -> Census:
    """Names and holders for every storage of `device_type` that Python can see.

    Args:
        torch: The module.
        device_type: ``"cuda"``, as ``tensor.device.type`` has it.
        tracked: Objects by the names their owner gave them.
        error: The exception that is passing through the caller: the frames of its traceback count as running.
        seconds: The budget; when it is spent, what is known so far is returned and said to be incomplete.
        read_saved: Whether to read what the autograd graph saved.
    """
    start = perf_counter()
    witness = Witness()
    objects = places.without_copies(gc.get_objects(), places.stacks(error))
    held = [witness]
    del witness
    census = Census(walk={"complete": False, "objects": len(objects), "notes": []})
    walk = _Walk(torch, TensorReader(torch, device_type), tracked or {}, census.walk, held)
    with undisturbed(torch):
        try:
            walk.run(objects, error, Deadline(seconds), read_saved)
            census.walk["complete"] = walk.is_whole
        except OutOfTime:
            census.walk["notes"].append(f"stopped after {seconds:g} s, its budget")
        except Exception as problem:
            census.walk["notes"].append(f"stopped by {type(problem).__name__}: {problem}")
        walk.fill(census)
    census.walk["seconds"] = round(perf_counter() - start, 4)
    return census


class _Walk:
    def __init__(
        self,
        torch: Any,
        reader: TensorReader,
        tracked: Mapping[str, Any],
        facts: dict[str, Any],
        witness: list[Witness],
    ) -> None:
        self._torch = torch
        self._reader = reader
        self._tracked = tracked
        self._facts = facts
        self._witness = witness
        self._names = Names(reader)
        self._holding = Holding()
        self._bases: dict[int, str] = {}
        self._holders: list[HolderRow] = []
        self._unread: list[dict[str, Any]] = []
        self._running: set[int] = set()
        self._gradients: list[int] = []  # nodes of those that keep a graph
        self._stays_frozen = False
        self.is_whole = True

    def run(self, objects: list[Any], error: BaseException | None, deadline: Deadline, read_saved: bool) -> None:
        found = self._sort(objects)
        owners = self._name(found)
        deadline.check()
        graph = Graph(self._torch, self._reader, read_saved)
        loose = [tensor for tensor in found.tensors if self._is_loose(tensor)]
        # What a backward with create_graph=True leaves: it keeps the graph, and only its parameter keeps it.
        known = set(map(id, loose))
        loose += [gradient for _, gradient in self._names.with_graph if id(gradient) not in known]
        ends = (tensor.grad_fn for tensor in loose if tensor.grad_fn is not None)
        graph.add(chain(ends, found.nodes), deadline)
        self._facts.update(tensors=len(found.tensors), nodes=len(graph.nodes))
        stacks = places.stacks(error)
        add_tensors(self._holding, graph, self._reader, loose, set(self._names.by_storage))
        for parameter, gradient in self._names.with_graph:
            self._gradients.append(self._holding.number(gradient))
            self._holding.children[self._holding.number(parameter)].append(self._gradients[-1])
        kept = Kept(self._torch, self._reader)
        kept.add(self._holding, graph, found.tensors)
        heap = Heap(objects, deadline)
        self._note_limits(heap)
        above = climb(self._holding, heap, owners, found.nodes, stacks, deadline)
        own = (found.tensors, found.modules, found.optimizers, found.nodes, loose, owners, graph.nodes)
        references = References(heap, self._witness, own)
        flood(self._holding, [*places.frame_roots(stacks), *above, *places.exception_roots(error)], references)
        if read_saved and not self._has_graphs(objects):
            offsets = places.raised_at(error)
            self._find_unread(heap, references, kept, stacks, offsets, deadline.share(_SHARE_OF_UNREAD))
        mark_visible(self._holding, self._reader, loose)
        self._find_bases(owners, stacks)
        self._running = running_models(stacks, owners, self._torch.nn.Module)
        deadline.check()
        self._holders = rank(self._holding, self._gradients, deadline)

    def _has_graphs(self, objects: list[Any]) -> bool:
        """Whether there are device graphs: they read memory by its address, whoever keeps it."""
        names = ("_CUDAGraph", "_XPUGraph")
        kinds = tuple(kind for name in names if (kind := getattr(self._torch._C, name, None)) is not None)
        if not any(issubclass(kind, kinds) for kind in set(map(type, objects))):
            return False
        self._facts["notes"].append("a device graph may read what no variable does: nothing is said to be unread")
        return True

    def _find_unread(
        self,
        heap: Heap,
        references: References,
        kept: Kept,
        stacks: list[list[Any]],
        offsets: dict[int, int],
        deadline: Deadline,
    ) -> None:
        """Which memory only variables keep that are not read again; the walk goes on where that cannot be told."""
        asked = asks_for(stacks, offsets, heap, deadline)
        try:
            self._unread, told = find_unread(self._holding, heap, references, kept, stacks, offsets, asked, deadline)
            for key, words in told.items():
                self._reader.storages[key].unread = words
            self._stays_frozen = bool(self._names.frozen_states) and stays_frozen(asked())
        except OutOfTime:
            self._facts["notes"].append("variables that are not read again: no time was left to find them")
            self.is_whole = False
        except Exception as problem:
            self._facts["notes"].append(f"variables that are not read again: {type(problem).__name__}: {problem}")

    def _sort(self, objects: list[Any]) -> _Found:
        kinds = set(map(type, objects))
        tensors = {kind for kind in kinds if self._reader.is_tensor_type(kind)}
        modules = {kind for kind in kinds if issubclass(kind, self._torch.nn.Module)}
        optimizers = {kind for kind in kinds if issubclass(kind, self._torch.optim.Optimizer)}
        nodes = {kind for kind in kinds if is_node_type(kind)}
        return _Found(
            [item for item in objects if type(item) in tensors],
            [item for item in objects if type(item) in modules],
            [item for item in objects if type(item) in optimizers],
            [item for item in objects if type(item) in nodes],
        )

    def _name(self, found: _Found) -> list[Any]:
        """Fill the names; returns the modules and optimizers that names start from."""
        tracked = list(self._tracked.values())
        self._bases.update((id(item), name) for name, item in self._tracked.items())
        modules = [item for item in tracked if is_a(item, self._torch.nn.Module)]
        roots = [*modules, *root_modules([module for module in found.modules if not is_generated(module)])]
        generated = root_modules([module for module in found.modules if is_generated(module)])
        self._names.add_modules(roots)
        for optimizer in found.optimizers:
            self._names.add_optimizer(optimizer)
        self._names.fill_modules(generated)
        roots += generated
        used = {name.base for name in self._names.by_storage.values()}
        used |= {name.owner for name in self._names.by_storage.values()}
        return [item for item in {id(i): i for i in [*roots, *found.optimizers]}.values() if id(item) in used]

    def _is_loose(self, tensor: Any) -> bool:
        """Whether a tensor's holder is asked for: it is on the device, or in the graph, and no module's own.

        A buffer that was computed from a module's own output keeps the graph that made it, whoever owns it.
        """
        try:
            if tensor.grad_fn is not None:
                return True
            return id(tensor) not in self._names.owned and self._reader.key(tensor) is not None
        except Exception:
            return False

    def _note_limits(self, heap: Heap) -> None:
        if heap.skipped:
            self._facts["notes"].append(f"{heap.skipped} collections of more than 5 million items were not searched")
        frozen = gc.get_freeze_count()
        if frozen > _FROZEN_AT_START:
            self._facts["notes"].append(f"{frozen} objects hidden by gc.freeze() were not searched")

    def _find_bases(self, owners: list[Any], stacks: list[list[Any]]) -> None:
        """How the program calls its modules and optimizers: as tracked, else by a variable, else by the way to them."""
        wanted = {id(owner) for owner in owners} - set(self._bases)
        for frame in (frame for stack in stacks for frame in stack):
            for name, value in places.local_variables(frame).items():
                if id(value) in wanted and name not in ("self", "cls", "module"):
                    wanted.discard(id(value))
                    self._bases[id(value)] = name
        for owner in owners:
            if id(owner) in wanted:
                words = self._holding.label(self._holding.numbers[id(owner)]) if self._holding.numbers else None
                # A closure's variable, a dead frame's: what stands last is what the program writes.
                self._bases[id(owner)] = _BASE.split(words)[-1] if words else type(owner).__name__

    def fill(self, census: Census) -> None:
        """Write rows for the storages and their holders."""
        for key, name in self._names.by_storage.items():
            storage = self._reader.storages[key]
            storage.category = name.category
            storage.name = name.below(self._bases.get(name.base, ""))
            others = self._names.others.get(key)
            if others:
                storage.name += f" and {others} more"
                storage.shape = None
        self._fill_holders()
        named = self._named_rows()  # adds to what holds a storage, so before those are written
        rows = sorted(self._reader.storages.values(), key=lambda storage: -storage.bytes)
        # First what belongs to frozen parameters, which the rows of their tensors tell as well.
        census.unread = [*self._unread, *find_frozen(self._names, rows, stays=self._stays_frozen)]
        census.tensors = [asdict(storage) for storage in rows[:_MOST_ROWS]]
        census.holders = [row.row() for row in merge([*named, *self._holders])[:_MOST_HOLDERS]]
        if len(rows) > _MOST_ROWS:
            left = rows[_MOST_ROWS:]
            census.walk["left_out"] = {"tensors": len(left), "bytes": sum(storage.bytes for storage in left)}
        if self._reader.failures:
            census.walk["unreadable"] = self._reader.failures

    def _fill_holders(self) -> None:
        for key, node in self._holding.storages.items():
            words = self._holding.label(node)
            if words:
                self._reader.storages[key].holders.append(words)
        self._add_further_holders(lambda item: self._reader.key(item) if self._reader.is_tensor(item) else None)

    def _add_further_holders(self, key_of: Callable[[Any], Key | None]) -> None:
        """A tensor that is both in a local and saved for backward has two holders; a few are told."""
        for node, item in enumerate(self._holding.objects):
            key = key_of(item)
            storage = self._reader.storages.get(key) if key is not None else None
            if storage is None or storage.name is not None or len(storage.holders) >= _HOLDERS_A_TENSOR:
                continue
            words = self._holding.label(node)
            if words and words not in storage.holders:
                storage.holders.append(words)

    def _named_rows(self) -> list[HolderRow]:
        rows = []
        for key, name in self._names.by_storage.items():
            storage: Storage = self._reader.storages[key]
            words = self._bases.get(name.owner)
            row = HolderRow(words, name.category, storage.device, storage.bytes, storage.bytes, 1)
            row.running = name.owner in self._running if self._running and name.category == "parameter" else None
            rows.append(self._as_leftover(row, name.owner, storage))
        return rows

    def _as_leftover(self, row: HolderRow, owner: int, storage: Storage) -> HolderRow:
        """The row as one of what keeps the module or optimizer, where the program has finished with it."""
        node = self._holding.numbers.get(owner)
        if node is None:
            return row
        raised, function = outermost_raised(self._holding, node), unseen_closure(self._holding, node)
        keeper = function if raised is None else raised
        if keeper is None:
            return self._as_garbage(row, owner, storage)
        row.holder, row.finished = self._holding.label(keeper), True
        row.kind = "exception" if keeper == raised else "closure"
        row.members, row.place = {keeper}, place_kind(self._holding, keeper)
        way = self._holding.label(node)
        if way is not None:
            row.path = [way]
            storage.holders.append(way)
        return row

    def _as_garbage(self, row: HolderRow, owner: int, storage: Storage) -> HolderRow:
        """The row as one of a reference cycle, where the module or optimizer is in proven garbage."""
        node = self._holding.numbers.get(owner)
        start = None if node is None else self._holding.start(node)
        if node is None or start is None or not self._holding.garbage.get(start):
            return row
        way = self._holding.label(node)
        row.holder, row.kind, row.place, row.finished = self._holding.starts[start], "cycle", "cycle", True
        row.members = {start}
        if way is not None:
            row.path = [way]
            storage.holders.append(way)
        return row
