"""How a wording is written down: what it must contain, and what it says, with the places of its figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias

from oomscope.frozen import frozen
from oomscope.messages.figures import NUMBER, SIZE, Figure, exact, parse_figure
from oomscope.messages.records import FIGURES, Reading

Finish: TypeAlias = "Callable[[Reading, re.Match[str]], Reading | None]"
"""Makes of a reading what a pattern cannot; None: it is no such message after all."""

_REACH = 500
"""Characters around what a wording needs in which all of it stands."""
_PLACE = re.compile(r"(?<!\?P)<(\w+)(?::(\w+))?>")
_FORMS = {
    None: rf"-?{SIZE}",
    "letter": rf"{NUMBER}(?:bytes?|[KMGTP]i?B|[kKMG]b|[KMGT]|B)",
    "bytes": r"\d{1,20}(?!\d)",
    "any": rf"{NUMBER}(?:bytes?|[KMGTP]i?B|[kKMG]b|[KMGT]i?|B)?",
    "bare": rf"-?{NUMBER}(?:[KMGTP]i?B)?",
    "number": NUMBER,
    "count": r"\d{1,12}",
    "hex": r"[0-9a-f]{1,12}",
    "word": r"\w{1,60}",
}


def pattern(says: str) -> str:
    """`says` as a regular expression, to be compiled with VERBOSE and matched against a text without blanks.

    Blanks are free. ``<requested>`` is a size with its unit; ``<total:letter>`` may have a letter as its unit, as in
    ``2.5G``; ``<requested:bytes>`` is a plain count of bytes; ``<free:bare>`` may lack its unit, ``<free:any>`` may
    have any or none. ``<tokens:count>``, ``<share:number>``, ``<used:hex>`` and ``<space:word>`` are what they say.
    """
    return _PLACE.sub(lambda match: f"(?P<{match[1]}>{_FORMS[match[2]]})", says)


def compiled(says: str) -> re.Pattern[str]:
    """`pattern`, ready to be matched."""
    return re.compile(pattern(says), re.VERBOSE | re.IGNORECASE)


@frozen
class Wording:
    """A message as some program words it.

    Attributes:
        kind: the kind of message.
        slug: its own name.
        needs: what its text holds in any case, in lower case and without blanks; one of several, each with ``|``
            between. It is searched for first, for that is quick.
        says: the message as `pattern` takes it. Groups named as in `FIGURES` are sizes, ``device`` is its number,
            ``rank`` the global rank, and all others are values.
        unit: the unit of sizes that stand without one.
        finish: see `Finish`.
        any_of: `needs`, taken apart.
    """

    kind: str
    slug: str
    needs: str
    says: str
    unit: str = ""
    finish: Finish | None = None
    _compiled: list[re.Pattern[str]] = field(default_factory=list, compare=False)
    any_of: tuple[str, ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "any_of", tuple(self.needs.split("|")))

    def read(self, text: str, lowered: str, taken: Sequence[Reading]) -> Iterator[Reading]:
        """Every message of this wording in `text`, which has no blanks.

        Args:
            text: what to read.
            lowered: the same in lower case.
            taken: what other wordings have read: what this one needs must stand outside of it.
        """
        for start, end in self._windows(lowered, taken):
            if not self._compiled:
                self._compiled.append(compiled(self.says))
            for match in self._compiled[0].finditer(text, start, end):
                reading = self._reading(match)
                finished = self.finish(reading, match) if self.finish else reading
                if finished is not None:
                    yield finished

    def _windows(self, lowered: str, taken: Sequence[Reading]) -> list[tuple[int, int]]:
        """The stretches around what it needs; overlapping ones are one."""
        found: list[tuple[int, int]] = []
        for place in sorted(self._places(lowered)):
            if any(other.start <= place < other.end for other in taken):
                continue
            start, end = max(0, place - _REACH), place + _REACH
            if found and start <= found[-1][1]:
                found[-1] = (found[-1][0], end)
            else:
                found.append((start, end))
        return found

    def _places(self, lowered: str) -> Iterator[int]:
        for need in self.any_of:
            place = lowered.find(need)
            while place >= 0:
                yield place
                place = lowered.find(need, place + 1)

    def _reading(self, match: re.Match[str]) -> Reading:
        figures: dict[str, Figure] = {}
        values: dict[str, Any] = {}
        numbers: dict[str, int | None] = {"device": None, "rank": None}
        for name, printed in match.groupdict().items():
            if not printed:
                continue
            if name in FIGURES:
                figure = parse_figure(printed, self.unit)
                if figure is None and name == "requested" and printed.isdigit():
                    figure = exact(int(printed))  # a number that wrapped around: 2^64 - 1 bytes
                if figure is not None:
                    figures[name] = figure
            elif name in numbers:
                numbers[name] = int(printed[:6])
            else:
                values[name] = printed
        return Reading(
            self.kind, self.slug, match.start(), match.end(), figures, numbers["device"], numbers["rank"], values
        )


def with_figures(reading: Reading, figures: Mapping[str, Figure | None], **values: Any) -> Reading:
    """`reading` with more figures, those that are None left out, and more values."""
    known = {name: figure for name, figure in figures.items() if figure is not None}
    return replace(reading, figures={**reading.figures, **known}, values={**reading.values, **values})


def with_exact(reading: Reading, match: re.Match[str]) -> Reading:
    """`reading` with the size in bytes that stands beside the rounded one, as the group ``exactly``."""
    return with_figures(reading, {"requested": exact(int(match["exactly"][:18]))}) if match["exactly"] else reading
