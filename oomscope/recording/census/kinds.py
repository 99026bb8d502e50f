"""Asking foreign objects for their kind without waking them."""

from __future__ import annotations

from typing import Any


def is_a(item: Any, kinds: type | tuple[type, ...]) -> bool:
    """By the type alone: `isinstance` asks for ``__class__``, and a proxy then fetches what it stands for."""
    return issubclass(type(item), kinds)
