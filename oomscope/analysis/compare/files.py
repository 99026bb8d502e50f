"""Which file of one recording is which of another: install roots differ, and files are renamed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from oomscope.model import package_path, standard_path
from oomscope.model.frames import slashes

LEAST_SHARED = 0.5
"""Of the functions that two files of other names have together, so many must be in both to call it one file."""
_EVERYWHERE = frozenset({"<module>", "<lambda>", "<listcomp>", "<genexpr>", "main"})
"""Functions of so many files that they tell none."""

Thing = TypeVar("Thing")


def match_files(before: Mapping[str, set[str]], after: Mapping[str, set[str]]) -> dict[str, str]:
    """The files of `before` that are in `after`, and as which.

    Args:
        before: the functions of each file that occur.
        after: likewise.
    """
    found: dict[str, str] = {}
    roots = root_of(before), root_of(after)
    _pair_by(found, before, after, _installed, _installed)
    _pair_by(found, before, after, lambda name: below(name, roots[0]), lambda name: below(name, roots[1]))
    longest = max((name.count("/") + 1 for name in map(slashes, (*before, *after))), default=0)
    for parts in range(min(longest, 12), 0, -1):
        _pair_by(found, before, after, lambda name: _tail(name, parts), lambda name: _tail(name, parts))  # noqa: B023
    _pair_by_functions(found, before, after)
    return found


def _installed(name: str) -> str:
    """A library's file from its package on, whatever it is installed under; others as they are."""
    standard = standard_path(name)
    return package_path(name) or (standard.partition("/")[2] if standard else None) or slashes(name)


def root_of(files: Iterable[str]) -> str:
    """The folder that all files of the program itself lie in."""
    paths = [slashes(name) for name in files if package_path(name) is None]
    own = [path.split("/")[:-1] for path in paths if "/" in path]
    shared = []
    for level in zip(*own, strict=False):
        if len(set(level)) != 1:
            break
        shared.append(level[0])
    return "/".join(shared) + "/" if shared else ""


def below(name: str, root: str) -> str | None:
    """The path of one of the program's own files from its folder `root` on; None for others."""
    path = slashes(name)
    return path[len(root) :] if root and package_path(name) is None and path.startswith(root) else None


def _tail(name: str, parts: int) -> str | None:
    """The last `parts` of the path of the program's own files; None for shorter ones."""
    pieces = slashes(name).split("/")
    return "/".join(pieces[-parts:]) if len(pieces) >= parts and package_path(name) is None else None


def _pair_by(
    found: dict[str, str],
    before: Iterable[str],
    after: Iterable[str],
    key_before: Callable[[str], str | None],
    key_after: Callable[[str], str | None],
) -> None:
    """Add the files that share a key that no other file has on either side."""
    taken = set(found.values())
    ours, theirs = defaultdict(list), defaultdict(list)
    for name in before:
        if name not in found:
            ours[key_before(name)].append(name)
    for name in after:
        if name not in taken:
            theirs[key_after(name)].append(name)
    for key, names in ours.items():
        if key is not None and len(names) == len(theirs.get(key, ())) == 1:
            found[names[0]] = theirs[key][0]


def _pair_by_functions(found: dict[str, str], before: Mapping[str, set[str]], after: Mapping[str, set[str]]) -> None:
    """Add renamed files: those that have most of their functions in common."""
    taken = set(found.values())
    ours = [name for name in sorted(before) if name not in found and package_path(name) is None]
    theirs = [name for name in sorted(after) if name not in taken and package_path(name) is None]

    def alike(one: str, other: str) -> float:
        mine, yours = before[one] - _EVERYWHERE, after[other] - _EVERYWHERE
        return len(mine & yours) / len(mine | yours) if mine | yours else 0.0

    found.update(mutual_best(ours, theirs, alike, LEAST_SHARED))


def mutual_best(
    ours: Sequence[Thing], theirs: Sequence[Thing], alike: Callable[[Thing, Thing], float], least: float
) -> dict[Thing, Thing]:
    """The pairs that are each other's best, alike by at least `least`; where two are equally good, neither is taken."""
    scores = [[alike(one, other) for other in theirs] for one in ours]
    found = {}
    for row, one in enumerate(ours):
        best = max(scores[row], default=0.0)
        if best < least or scores[row].count(best) > 1:
            continue
        column = scores[row].index(best)
        rivals = [line[column] for line in scores]
        if max(rivals) == best and rivals.count(best) == 1:
            found[one] = theirs[column]
    return found
