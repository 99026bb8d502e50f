"""Which models run: those of which some call is underway."""

from __future__ import annotations

from collections.abc import Iterable
from types import FrameType
from typing import Any

from oomscope.recording.census.kinds import is_a
from oomscope.recording.census.names import submodules
from oomscope.recording.census.roots import local_variables


def running_models(stacks: Iterable[Iterable[FrameType]], roots: Iterable[Any], module_type: type) -> set[int]:
    """The ids of those of `roots` that are underway, or of which a module is.

    Args:
        stacks: the running calls of each thread.
        roots: modules that are no other module's, and whatever else has tensors of its own.
        module_type: ``torch.nn.Module``.
    """
    called = {id(item) for stack in stacks for frame in stack if is_a(item := _receiver(frame), module_type)}
    models = (root for root in roots if is_a(root, module_type))
    return {id(root) for root in models if any(id(module) in called for _, module in submodules(root, set()))}


def _receiver(frame: FrameType) -> Any:
    """The object whose method it is, by the convention of Python; None for a function without arguments."""
    code = frame.f_code
    return local_variables(frame).get(code.co_varnames[0]) if code.co_argcount else None
