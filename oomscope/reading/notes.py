"""What was odd about a file, counted while it is read and told in one sentence each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from oomscope.reading.printable import printable
from oomscope.units import plural

_MOST_KINDS = 20


class Notes:
    """Collects oddities; the same one many times becomes one sentence with a count."""

    def __init__(self) -> None:
        self._sentences: dict[str, None] = {}
        self._unknown: Counter[tuple[str, str]] = Counter()

    def add(self, sentence: str) -> None:
        """Note `sentence`, once."""
        self._sentences[sentence] = None

    def unknown(self, what: str, name: object, count: int = 1) -> None:
        """Count things of the kind `what` (``key of trace entries``) with a `name` that oomscope does not know."""
        kind = (what, printable(name))
        # A hostile file may make up a name for every entry.
        if kind not in self._unknown and len(self._unknown) >= _MOST_KINDS:
            kind = (what, "…")
        self._unknown[kind] += count

    def unknown_keys(self, what: str, columns: Mapping[Any, list[Any]], known: AbstractSet[str]) -> None:
        """Count the keys that are not among those `known`; None stands in `columns` where a row lacks the key."""
        for key, values in columns.items():
            if key not in known:
                self.unknown(f"key of {what}", key, len(values) - values.count(None))

    def sentences(self) -> tuple[str, ...]:
        """All notes: those that were written out first, then what was unknown."""
        return (*self._sentences, *self._unknowns())

    def _unknowns(self) -> Iterable[str]:
        for (what, name), count in self._unknown.items():
            yield f"Unknown {what} '{name}' ({plural(count, 'time')}); it is left out of account."
