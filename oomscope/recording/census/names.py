"""Names: parameters, their gradients, buffers and optimizer state, as their module and optimizer call them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from oomscope.frozen import frozen
from oomscope.recording.census.kinds import is_a
from oomscope.recording.census.storages import Key, TensorReader

MODULE_MEMBERS = ("_parameters", "_buffers", "_modules")


@frozen
class Name:
    """A tensor's name below the module or optimizer it belongs to; what that one is called is found out later."""

    base: int  # id of the module or optimizer that the relative name starts from
    relative: str
    category: str
    owner: int  # id of the object whose memory this is: the optimizer for its state, else the module

    def below(self, base_name: str) -> str:
        """The whole name."""
        return f"{base_name}{self.relative}"


class Names:
    """Which storages have names, and which tensors are thereby explained."""

    def __init__(self, reader: TensorReader) -> None:
        self._reader = reader
        self.by_storage: dict[Key, Name] = {}
        self.others: dict[Key, int] = {}  # how many more names share the storage
        self.owned: set[int] = set()  # ids of tensors that a module or optimizer owns
        self.frozen: set[Key] = set()  # gradients of parameters that do not require any
        self.frozen_states: set[Key] = set()  # what an optimizer keeps for such parameters
        self.with_graph: list[tuple[Any, Any]] = []  # parameters and gradients of theirs that keep a graph
        self._parameters: dict[int, Name] = {}
        self._is_filling = False

    def fill_modules(self, roots: Iterable[Any]) -> None:
        """Name what only these modules hold; what has a name keeps it alone."""
        self._is_filling = True
        self.add_modules(roots)
        self._is_filling = False

    def add_modules(self, roots: Iterable[Any]) -> None:
        """Name what these modules and those below them hold; the first module to claim a tensor names it."""
        seen: set[int] = set()
        modules = [(root, path, module) for root in roots for path, module in submodules(root, seen)]
        for kind, category in (("_parameters", "parameter"), ("_buffers", "buffer")):
            for root, path, module in modules:
                for key, tensor in _members(module, kind):
                    if self._reader.is_tensor(tensor):
                        self._add_with_gradient(tensor, Name(id(root), f"{path}.{key}", category, id(root)))

    def _add_with_gradient(self, tensor: Any, name: Name) -> None:
        self._parameters.setdefault(id(tensor), name)
        self._add(tensor, name)
        gradient = self._reader.gradient(tensor)
        if gradient is not None:
            self._add(gradient, Name(name.base, name.relative + ".grad", "gradient", name.owner))
            if gradient.grad_fn is not None:
                self.with_graph.append((tensor, gradient))
            if not tensor.requires_grad:
                self.frozen.update(key for part in self._reader.parts(gradient) if (key := self._reader.key(part)))

    def _add(self, tensor: Any, name: Name) -> None:
        self.owned.add(id(tensor))
        for part in self._reader.parts(tensor):
            self.owned.add(id(part))
            key = self._reader.key(part)
            if key is None:
                continue
            known = self.by_storage.setdefault(key, name)
            if known != name and not self._is_filling:
                self.others[key] = self.others.get(key, 0) + 1

    def add_optimizer(self, optimizer: Any) -> None:
        """Name the optimizer's state after its parameters, and parameters that no module owns after their group."""
        for group, settings in enumerate(getattr(optimizer, "param_groups", [])):
            for index, parameter in enumerate(settings.get("params", [])):
                if id(parameter) not in self._parameters:
                    relative = f".param_groups[{group}]['params'][{index}]"
                    self._add_with_gradient(parameter, Name(id(optimizer), relative, "parameter", id(optimizer)))
        state: Any = getattr(optimizer, "state", None)
        if not hasattr(state, "items"):
            return
        for parameter, values in list(state.items()):
            named = self._parameters.get(id(parameter))
            for key, tensor in _tensors_in(values, self._reader):
                if named is None:
                    name = Name(id(optimizer), f".state[…]{key}", "optimizer_state", id(optimizer))
                else:
                    name = Name(named.base, named.relative + key, "optimizer_state", id(optimizer))
                self._add(tensor, name)
                if not getattr(parameter, "requires_grad", True):
                    parts = self._reader.parts(tensor)
                    self.frozen_states.update(known for part in parts if (known := self._reader.key(part)) is not None)


def _tensors_in(values: Any, reader: TensorReader, prefix: str = "", depth: int = 3) -> Iterator[tuple[str, Any]]:
    """The tensors in an optimizer's state for one parameter: mostly a dict of them, at times nested."""
    if reader.is_tensor(values):
        yield prefix, values
    elif depth and is_a(values, dict):
        for key, value in values.items():
            yield from _tensors_in(value, reader, f"{prefix}.{key}", depth - 1)
    elif depth and is_a(values, (list, tuple)):
        for index, value in enumerate(values):
            yield from _tensors_in(value, reader, f"{prefix}[{index}]", depth - 1)


def _members(module: Any, kind: str) -> list[tuple[str, Any]]:
    # Past any __getattr__ of the module's own.
    members: Any = getattr(module, "__dict__", {}).get(kind)
    return list(members.items()) if is_a(members, dict) else []


def submodules(root: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """`root` and every module below it with its dotted path (``.layers.0``), each once over all calls with `seen`."""
    open_modules = [("", root)]
    while open_modules:
        path, module = open_modules.pop()
        if module is None or id(module) in seen:
            continue
        seen.add(id(module))
        yield path, module
        open_modules.extend((f"{path}.{key}", child) for key, child in reversed(_members(module, "_modules")))


def root_modules(modules: list[Any]) -> list[Any]:
    """The modules that are no other module's child; what only forms rings comes last."""
    below = {id(child) for module in modules for _, child in _members(module, "_modules") if child is not module}
    return sorted(modules, key=lambda module: id(module) in below)


def is_generated(module: Any) -> bool:
    """Whether torch.compile or torch.fx made this module: it holds the program's tensors under names of its own."""
    return any(kind.__module__.startswith(("torch.fx", "torch._dynamo")) for kind in type(module).__mro__)
