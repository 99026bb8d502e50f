"""What was odd about a file, counted while it is read; the same oddity many times is one note."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from oomscope.model import Note, note
from oomscope.reading.printable import printable

_MOST_KINDS = 20
TOO_MANY = "…"
"""Stands for the names of all that was unknown beyond the first kinds."""


class Notes:
    """Collects oddities."""

    def __init__(self) -> None:
        self._found: dict[Hashable, Note] = {}
        self._unknown: Counter[tuple[str, str]] = Counter()

    def add(self, found: Note) -> None:
        """Take a note, once."""
        self._found[found.code, tuple(found.values.items())] = found

    def unknown(self, code: str, name: object, count: int = 1) -> None:
        """Count things with a `name` that oomscope does not know; `code` says of what kind they are."""
        kind = (code, printable(name))
        # A hostile file may make up a name for every entry.
        if kind not in self._unknown and len(self._unknown) >= _MOST_KINDS:
            kind = (code, TOO_MANY)
        self._unknown[kind] += count

    def unknown_keys(self, code: str, columns: Mapping[Any, list[Any]], known: AbstractSet[str]) -> None:
        """Count the keys that are not among those `known`; None stands in `columns` where a row lacks the key."""
        for key, values in columns.items():
            if key not in known:
                self.unknown(code, key, len(values) - values.count(None))

    def all(self) -> tuple[Note, ...]:
        """All notes, those about what was unknown last."""
        return (*self._found.values(), *self._unknowns())

    def _unknowns(self) -> Iterable[Note]:
        for (code, name), count in self._unknown.items():
            yield note(code, name=name, count=count)
