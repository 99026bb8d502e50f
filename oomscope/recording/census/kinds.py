"""What kind of thing a holder is; foreign objects are asked without waking them.

``list``, ``dict``, ``deque``, ``set`` and ``collection`` (a tuple) hold items. ``exception`` holds through a traceback
or by itself, ``cycle`` is a ring of references that no root leads to, ``frame`` a call's frame that somebody kept.
``graph`` is a tensor with what the autograd graph keeps behind it. Else it is one tensor, by where it is held:
``attribute``, ``global``, ``closure``, or ``tensor`` for a local. What a module or an optimizer owns has its category
for a kind (``parameter``, ``gradient``, ``buffer``, ``optimizer_state``), and ``in_flight`` is what the failing call
itself had made.
"""

from __future__ import annotations

import types
from collections import deque
from typing import Any

_COLLECTIONS: tuple[tuple[type, str], ...] = (
    (list, "list"),
    (dict, "dict"),
    (deque, "deque"),
    (set, "set"),
    (frozenset, "set"),
    (tuple, "collection"),
)
COLLECTIONS = tuple(kind for kind, _ in _COLLECTIONS)
MERGED = (
    "cycle",
    "exception",
    *dict.fromkeys(name for _, name in _COLLECTIONS),
    "frame",
    "graph",
    "closure",
    "attribute",
    "global",
    "tensor",
)
"""Kinds of which several rows under one name are one holder; the first of them here is its kind."""


def is_a(item: Any, kinds: type | tuple[type, ...]) -> bool:
    """By the type alone: `isinstance` asks for ``__class__``, and a proxy then fetches what it stands for."""
    return issubclass(type(item), kinds)


def is_collection(item: Any) -> bool:
    """Whether this is one of Python's own collections or of a class made from one."""
    return is_a(item, COLLECTIONS)


def kind_of(item: Any) -> str | None:
    """The kind of what is no tensor; None for anything that holds by its attributes alone."""
    if is_a(item, (BaseException, types.TracebackType)):
        return "exception"
    if is_a(item, types.FrameType):
        return "frame"
    return next((name for kind, name in _COLLECTIONS if is_a(item, kind)), None)


def length(item: Any) -> int | None:
    """The number of a collection's items, past any ``__len__`` of its class; None for anything else."""
    kind: Any = next((kind for kind in COLLECTIONS if is_a(item, kind)), None)
    return None if kind is None else int(kind.__len__(item))
