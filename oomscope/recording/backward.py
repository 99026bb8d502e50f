"""Where backward was when the request failed: the node of the autograd graph, and what its gradients are for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from oomscope.recording.backend import Backend
from oomscope.recording.census.roots import is_own

_LINE = re.compile(r'\s*File "([^"\n]*)", line (\d+), in (\S+)')
_MOST_FRAMES = 200
_DEEPEST = 4  # between a product and its parameter stand a transposition, a cast, a view
_REARRANGING = tuple(
    f"{name}Backward"
    for name in [
        "T",
        "Transpose",
        "Permute",
        "View",
        "UnsafeView",
        "ReshapeAlias",
        "Expand",
        "ToCopy",
        "Unsqueeze",
        "Squeeze",
        "Alias",
        "Slice",
        "Select",
        "Split",
    ]
)
"""Nodes that pass a gradient on in another shape or type."""


def describe(backend: Backend, tensors: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The dump's ``autograd``; None where this thread is in no backward, or this torch cannot say.

    Args:
        backend: torch.
        tensors: the dump's rows of tensors, which know the parameters' names.
    """
    current = getattr(backend.torch._C, "_current_autograd_node", None)
    node = None if current is None else current()
    if node is None:
        return None
    names = {(row["device"], row["address"]): row["name"] for row in tensors if row["name"]}
    found = {_place(variable, backend.device_type) for variable in _parameters(node)}
    return {
        "node": str(node.name()).rpartition("::")[2],
        "gradients_of": sorted(names[place] for place in found if place in names),
        "forward": _forward(backend.torch, node),
    }


def _parameters(node: Any) -> list[Any]:
    """The leaves whose gradients come out of this node, or go only through what rearranges them."""
    found, level = [], [node]
    for _ in range(_DEEPEST):
        following: list[Any] = []
        for one in level:
            variable = getattr(one, "variable", None)
            if variable is not None:
                found.append(variable)
            elif one is node or type(one).__name__.startswith(_REARRANGING):
                following += [child for child, _ in one.next_functions if child is not None]
        level = following
    return found


def _place(variable: Any, device_type: str) -> tuple[int, int] | None:
    try:
        device = variable.device
        if device.type != device_type:
            return None
        return device.index or 0, variable.untyped_storage().data_ptr()
    except Exception:
        return None


def _forward(torch: Any, node: Any) -> list[dict[str, Any]]:
    """The stack that made the node, which anomaly mode keeps as text; the most recent call first."""
    # Asking for the metadata makes it where there is none.
    if not torch.is_anomaly_enabled():
        return []
    lines = node.metadata.get("traceback_") or []
    found = [match for line in lines if (match := _LINE.match(line))]
    frames = [{"filename": match[1], "line": int(match[2]), "name": match[3]} for match in reversed(found)]
    return [frame for frame in frames if not is_own(str(frame["filename"]))][:_MOST_FRAMES]
