"""Notebooks ask an object for HTML (``_repr_html_``). Who can make it stands above; who has it need not know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Maker: TypeAlias = Callable[[Any], str]

_MAKERS: dict[str, Maker] = {}


def show_with(kind: str, maker: Maker) -> None:
    """Have `maker` make the HTML of objects of `kind`."""
    _MAKERS[kind] = maker


def html_of(kind: str, shown: object) -> str | None:
    """The HTML of `shown`; None, at which a notebook shows its text, where nobody can make it."""
    maker = _MAKERS.get(kind)
    return None if maker is None else maker(shown)
