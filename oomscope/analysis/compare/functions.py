"""Which function of one recording is which of another: in the same file, moved to another, or renamed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from oomscope.analysis.compare.code_places import CodePlaces, Surroundings
from oomscope.analysis.compare.files import match_files, mutual_best

Function: TypeAlias = tuple[str, str]
"""File and name."""

LEAST_ALIKE_MOVED = 0.3
"""How much of its surroundings a function of the same name in another file must share."""
LEAST_ALIKE_RENAMED = 0.5
"""The same for one of another name."""
_ROUNDS = 3
"""A renamed function is a neighbour of others; with its new name known, those are found as well."""
_MOST_COMPARED = 400
"""Functions left over on either side; beyond that two programs are too different to guess at names."""


def match_functions(before: CodePlaces, after: CodePlaces) -> dict[Function, Function]:
    """The functions of `before` that are in `after`, and as which."""
    ours, theirs = _by_function(before), _by_function(after)
    files = match_files(_by_file(ours), _by_file(theirs))
    found = {one: (files[one[0]], one[1]) for one in ours if (files.get(one[0]), one[1]) in theirs}
    for _ in range(_ROUNDS):
        known = len(found)
        _moved(found, ours, theirs)
        _renamed(found, ours, theirs, files)
        if len(found) == known:
            break
    return found


def alike(one: Surroundings, other: Surroundings, names: Mapping[str, str]) -> float:
    """How much two places share of what stands around them, 0 to 1; `names` are the new names of renamed functions."""
    callers, called = _renamed_in(one.callers, names), _renamed_in(one.called, names)
    all_names = len(callers | other.callers) + len(called | other.called)
    shared = len(callers & other.callers) + len(called & other.called)
    return shared / all_names if all_names else LEAST_ALIKE_MOVED


def new_names(found: Mapping[Function, Function]) -> dict[str, str]:
    """The new name of each renamed function."""
    return {one[1]: other[1] for one, other in found.items() if one[1] != other[1]}


def _renamed_in(found: frozenset[str], names: Mapping[str, str]) -> frozenset[str]:
    return frozenset(names.get(name, name) for name in found) if names else found


def _by_function(places: CodePlaces) -> dict[Function, Surroundings]:
    callers: dict[Function, set[str]] = defaultdict(set)
    called: dict[Function, set[str]] = defaultdict(set)
    for location, around in places.around.items():
        function = (location.file, location.function)
        callers[function] |= around.callers
        called[function] |= around.called
    return {one: Surroundings(frozenset(callers[one]), frozenset(called[one])) for one in sorted(callers)}


def _by_file(functions: Iterable[Function]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for file, name in functions:
        found[file].add(name)
    return found


def _left(
    found: Mapping[Function, Function], ours: Iterable[Function], theirs: Iterable[Function]
) -> tuple[list[Function], list[Function]]:
    taken = set(found.values())
    return [one for one in ours if one not in found], [one for one in theirs if one not in taken]


def _moved(
    found: dict[Function, Function], ours: Mapping[Function, Surroundings], theirs: Mapping[Function, Surroundings]
) -> None:
    """Add functions of the same name in another file, whose surroundings are alike."""
    names = new_names(found)
    here, there = _left(found, ours, theirs)
    by_name: dict[str, list[Function]] = defaultdict(list)
    for other in there:
        by_name[other[1]].append(other)
    for name in sorted({one[1] for one in here} & set(by_name)):
        mine = [one for one in here if one[1] == name]
        found |= mutual_best(
            mine, by_name[name], lambda one, other: alike(ours[one], theirs[other], names), LEAST_ALIKE_MOVED
        )


def _renamed(
    found: dict[Function, Function],
    ours: Mapping[Function, Surroundings],
    theirs: Mapping[Function, Surroundings],
    files: Mapping[str, str],
) -> None:
    """Add functions of another name in the same file, or in one that has no counterpart, with alike surroundings."""
    names = new_names(found)
    here, there = _left(found, ours, theirs)
    if len(here) > _MOST_COMPARED or len(there) > _MOST_COMPARED:
        return
    known = set(files.values())

    def likeness(one: Function, other: Function) -> float:
        file = files.get(one[0])
        may_be = file == other[0] if file is not None else other[0] not in known
        return alike(ours[one], theirs[other], names) if may_be else 0.0

    found |= mutual_best(here, there, likeness, LEAST_ALIKE_RENAMED)
