"""Which line of one recording is which of another, though lines moved, files were renamed and install roots differ."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

from oomscope.analysis.compare.code_places import CodePlaces
from oomscope.analysis.compare.functions import Function, match_functions, new_names
from oomscope.analysis.compare.lines import match_lines
from oomscope.analysis.records import Location
from oomscope.model.frames import slashes

SAME, MOVED, RENAMED, NEW, GONE = "same", "moved", "renamed", "new", "gone"
KINDS = (SAME, MOVED, RENAMED, NEW, GONE)


@dataclass(frozen=True)
class LineMatches:
    """The lines that two recordings have in common; `after_of` leads from one to the other."""

    after_of: dict[Location, Location]

    @cached_property
    def before_of(self) -> dict[Location, Location]:
        """The way back."""
        return {after: before for before, after in self.after_of.items()}


def match_places(before: CodePlaces, after: CodePlaces) -> LineMatches:
    """The lines of `before` that are in `after`; exactly the reverse of what they give the other way round."""
    if _sort_key(before) > _sort_key(after):
        # Where two ways are equally good, the one that is taken may not depend on which recording comes first.
        return LineMatches({ours: theirs for theirs, ours in _pairs(after, before)})
    return LineMatches(dict(_pairs(before, after)))


def how_matched(before: Location | None, after: Location | None) -> str:
    """``same``, ``moved`` (another line) or ``renamed`` (another name of the file or the function)."""
    if before is None or after is None:
        return SAME
    if before.function != after.function or _name(before.file) != _name(after.file):
        return RENAMED
    return SAME if before.line == after.line else MOVED


def _name(file: str) -> str:
    return slashes(file).rpartition("/")[2]


def _sort_key(places: CodePlaces) -> list[tuple[str, str, int]]:
    return [(one.file, one.function, one.line) for one in places.locations]


def _pairs(before: CodePlaces, after: CodePlaces) -> list[tuple[Location, Location]]:
    functions = match_functions(before, after)
    ours, theirs = _lines(before), _lines(after)
    files: dict[tuple[str, str], list[tuple[list[Location], list[Location]]]] = defaultdict(list)
    for one, other in functions.items():
        files[one[0], other[0]].append((ours[one], theirs[other]))
    names = new_names(functions)
    return [pair for _, inside in sorted(files.items()) for pair in match_lines(inside, before, after, names)]


def _lines(places: CodePlaces) -> dict[Function, list[Location]]:
    found: dict[Function, list[Location]] = defaultdict(list)
    for location in places.locations:
        found[location.file, location.function].append(location)
    return found
