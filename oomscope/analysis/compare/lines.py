"""Which line of a function is which, when lines were added above or between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from oomscope.analysis.compare.code_places import NOTHING_AROUND, CodePlaces
from oomscope.analysis.compare.files import mutual_best
from oomscope.analysis.compare.functions import alike
from oomscope.analysis.records import Location
from oomscope.frozen import frozen

LEAST_ALIKE = 0.4
"""How much of its surroundings a line must share with another to be the same."""
SURELY = 0.6
"""How much, to tell how far the lines of the file moved."""
_CALLED = 0.8
_SHIFT_COUNTS = 0.2
"""What it speaks for a pair that all lines of the file moved as far; less than what the lines themselves say."""
_SAME_TEXT, _OTHER_TEXT = 1.5, 0.4
"""What the source says, where both recordings carry it."""
_MOST_LINES = 300
"""Of one function; in longer ones (generated code) only lines of the same number are paired."""


@frozen
class _Function:
    before: list[Location]
    after: list[Location]

    @property
    def same_numbers(self) -> bool:
        """Whether both have just the same lines."""
        return [here.line for here in self.before] == [there.line for there in self.after]


def match_lines(
    functions: Iterable[tuple[list[Location], list[Location]]],
    before: CodePlaces,
    after: CodePlaces,
    names: Mapping[str, str],
) -> Iterator[tuple[Location, Location]]:
    """The pairs of lines of the functions of one file, in their order; a line without counterpart is in none.

    Args:
        functions: the lines of each function before and after, by number.
        before: all places of one recording.
        after: of the other.
        names: the new names of renamed functions.
    """
    pairs = [_Function(*one) for one in functions]
    likeness = [_likeness(one, before, after, names) for one in pairs]
    shifts: Counter[int] = Counter()
    for one, table in zip(pairs, likeness, strict=True):
        for row, here in enumerate(one.before if table else ()):
            for column, there in enumerate(one.after):
                if table[row][column] >= SURELY:
                    shifts[there.line - here.line] += 1
    for one, table in zip(pairs, likeness, strict=True):
        yield from _paired(one, table, shifts)


def _paired(
    one: _Function, likeness: Sequence[Sequence[float]], shifts: Counter[int]
) -> Iterator[tuple[Location, Location]]:
    """The pairs of one function: in order; then lines that changed places; then those of the same number."""
    if not likeness or (one.same_numbers and all(likeness[at][at] >= LEAST_ALIKE for at in range(len(one.before)))):
        by_line = {there.line: there for there in one.after}
        yield from ((here, by_line[here.line]) for here in one.before if here.line in by_line)
        return
    found = dict(_aligned(one, likeness, shifts))
    rows = {here: row for row, here in enumerate(one.before)}
    columns = {there: column for column, there in enumerate(one.after)}
    taken = set(found.values())
    found |= mutual_best(
        [here for here in one.before if here not in found],
        [there for there in one.after if there not in taken],
        lambda here, there: likeness[rows[here]][columns[there]],
        LEAST_ALIKE,
    )
    if one.same_numbers:
        taken = set(found.values())
        pairs = zip(one.before, one.after, strict=True)
        found |= {here: there for here, there in pairs if here not in found and there not in taken}
    yield from found.items()


def _likeness(
    one: _Function, before: CodePlaces, after: CodePlaces, names: Mapping[str, str]
) -> Sequence[Sequence[float]]:
    """How alike each line is to each; empty for functions that are too long to ask."""
    if max(len(one.before), len(one.after)) > _MOST_LINES:
        return ()
    return [[_alike(here, there, before, after, names) for there in one.after] for here in one.before]


def _alike(here: Location, there: Location, before: CodePlaces, after: CodePlaces, names: Mapping[str, str]) -> float:
    """What two lines of one function have in common: what they call, for their callers are the same anyway."""
    one, other = before.around.get(here, NOTHING_AROUND), after.around.get(there, NOTHING_AROUND)
    called = {names.get(name, name) for name in one.called}
    all_called = len(called | other.called)
    score = _CALLED * (len(called & other.called) / all_called if all_called else 1.0)
    score += (1 - _CALLED) * alike(one, other, names)
    text = before.text.get(here), after.text.get(there)
    if None in text:
        return score
    return score + _SAME_TEXT if text[0] == text[1] else score * _OTHER_TEXT


def _aligned(
    one: _Function, likeness: Sequence[Sequence[float]], shifts: Counter[int]
) -> Iterator[tuple[Location, Location]]:
    """The pairs, both in the order of the lines, that are most alike in sum."""
    most = max(shifts.values(), default=1)
    rows, columns = len(one.before), len(one.after)
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for row in range(rows - 1, -1, -1):
        for column in range(columns - 1, -1, -1):
            paired = _score(one, row, column, likeness, shifts, most) + best[row + 1][column + 1]
            best[row][column] = max(paired, best[row + 1][column], best[row][column + 1])
    row = column = 0
    while row < rows and column < columns:
        score = _score(one, row, column, likeness, shifts, most)
        if score > 0 and best[row][column] == score + best[row + 1][column + 1]:
            yield one.before[row], one.after[column]
            row, column = row + 1, column + 1
        elif best[row][column] == best[row + 1][column]:
            row += 1
        else:
            column += 1


def _score(
    one: _Function, row: int, column: int, likeness: Sequence[Sequence[float]], shifts: Counter[int], most: int
) -> float:
    score = likeness[row][column]
    if score < LEAST_ALIKE:
        return -1.0
    return score + _SHIFT_COUNTS * shifts[one.after[column].line - one.before[row].line] / most
