"""What parameters still have from before they were frozen: gradients, and the state of an optimizer.

No backward adds to such gradients any more, and no step to the state, unless the parameters are thawed again.
"""

from __future__ import annotations

from typing import Any

from oomscope.recording.census.holding import SUPER_ROOT
from oomscope.recording.census.names import Names
from oomscope.recording.census.storages import Storage
from oomscope.recording.census.unread import Variable

_THAWING = ("requires_grad", "freeze", "toggle")
"""Parts of the names by which a program freezes parameters and thaws them: networks that learn in turn do both."""
_RUNNING = ("self", "cls")


def stays_frozen(names: frozenset[str] | None) -> bool:
    """Whether no code of the program which may still run names what freezes or thaws parameters.

    Args:
        names: all that such code asks for; None where that cannot be told.
    """
    return names is not None and not any(part in name for name in names for part in _THAWING)


def find_frozen(names: Names, storages: list[Storage], *, stays: bool) -> list[dict[str, Any]]:
    """Rows of such gradients and states, by module and device, as those of variables that are not read again.

    Args:
        names: of parameters, gradients and states.
        storages: with their names; those of such tensors are told what they belong to.
        stays: whether nothing may thaw the parameters; else their optimizer may go on with its state.
    """
    found: dict[str, Variable] = {}
    for one in storages:
        key = (one.device, one.address)
        is_state = stays and key in names.frozen_states
        if not (is_state or key in names.frozen) or one.unread is not None or one.name is None:
            continue
        one.unread = f"{'optimizer state' if is_state else 'gradients'} of {_module(one.name)}"
        known = found.setdefault(one.unread, Variable(one.unread, "frozen", None, SUPER_ROOT, None))
        known.add(one.device, one.bytes)
    rows = (row for variable in found.values() for row in variable.rows())
    return sorted(rows, key=lambda row: -row["bytes"])


def _module(name: str) -> str:
    """The first part of a name, ``encoder`` of ``encoder.layers.0.weight``; of a running object's, the attribute."""
    parts = name.split(".")
    return ".".join(parts[: 2 if parts[0] in _RUNNING else 1])
