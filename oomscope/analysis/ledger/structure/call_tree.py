"""The calls of a forward as a tree, and which of them follow one another in a loop, told from stacks alone.

Within a call of a module, calls of its children share the frames above them. Where the lines of a child go back, or
something else was made between, the next child has begun.
"""

from __future__ import annotations

import re
from itertools import pairwise

from oomscope.analysis.plan.requests.calls import Part, Path

LEAST_BLOCKS = 2
LEAST_TURNS = 5
"""Of blocks of which the last one goes on: a function may do fewer such things in a loop before it goes on itself."""
LEAST_LINES = 4
"""Of blocks of which some have more lines than others: a loop within a call seldom has as many."""
LEAST_REQUESTS = 3
"""Of a block: what one line makes again and again is none."""
IN_A_LOOP = 0.5
"""Of what a call made: where more lies before the line that it goes back to, the call goes on with a loop."""
BETWEEN_CLASSES = 8
"""Lines between the last of one function and the first of the next class's, at least."""
CLASSES = 2
KINDS = 3
"""Of layers that a line calls: two of them may take turns in one call."""
OF_TORCH = re.compile(r"torch/")
_LAYER = re.compile(r"torch/nn/modules/(?!container|transformer|rnn)")
"""torch's own layers are no blocks, but what holds several of them is, and recurrent ones, which keep all gates."""


def _function(path: Path, depth: int) -> tuple[str, str, int]:
    """What tells the functions apart that a line calls: file, name, and between which lines of its callers it stands.

    The lines of a function lie together, so a line of another one is not among them.
    """
    file, line, name = path[depth][0]
    return file, name, sum(one < line for part in path[:depth] for at, one, _ in part if at == file)


def called(path: Path, depth: int) -> str:
    """What is called at a depth: the file of a layer of torch, or a module of the program; "" where nothing is."""
    if len(path) <= depth:
        return ""
    file, _, name = path[depth][0]
    return file if OF_TORCH.match(file) else f"{file} {name}"


def _turns(lines: list[int]) -> list[int]:
    """Where lines go back to the first."""
    return [number for number in range(1, len(lines)) if lines[number] == lines[0] < lines[number - 1]]


def turns_of_which_some_end_early(lines: list[int]) -> list[int]:
    """Where lines go back to the first, if only some of these turns have the last line: as of a block with a shortcut.

    The first turn has it and the last has not: a loop within a call has the lines behind it at its end.
    """
    turns = _turns(lines)
    if not turns or max(lines) not in lines[: turns[0]] or max(lines) in lines[turns[-1] :]:
        return []
    return turns


def turns_of_which_the_last_goes_on(lines: list[int]) -> list[int]:
    """Where lines go back to the first, if all of several turns are alike and the last alone has lines behind them.

    As of blocks of which the last one has a head. Stages, which hold different numbers of blocks, are not alike.
    """
    turns = _turns(lines)
    calls = [lines[begin:end] for begin, end in pairwise([0, *turns, len(lines)])]
    whole = calls[0]
    alike = len(turns) >= LEAST_TURNS and all(call == whole for call in calls[:-1])
    return turns if alike and calls[-1][: len(whole)] == whole and max(calls[-1]) > max(whole) else []


def turns_of_which_some_have_more(lines: list[int]) -> list[int]:
    """Where lines go back to the first, and nowhere else, if these turns share several lines and some have others.

    Those others are behind what they share, as of blocks of which some attend to what they have made.
    """
    turns = _turns(lines)
    calls = [lines[begin:end] for begin, end in pairwise([0, *turns, len(lines)])]
    common = set.intersection(*map(set, calls))
    if len(common) < LEAST_LINES or any(map(_goes_back, calls)):
        return []
    return turns if all(line > max(common) for call in calls for line in {*call} - common) else []


def _lines(parts: list[Part]) -> list[int]:
    """The line of each call of a module; those of its own functions where one line of it calls them for all it does.

    As a block that is made again calls one, or ``self.residual(x) + self.shortcut(x)``: functions count in the order in
    which they come, and what the line does itself is done with their results.
    """
    lines = [part[0][1] for part in parts]
    inside = [part[1] if len(part) > 1 and part[1][0] == part[0][0] else None for part in parts]
    if len(set(lines)) > 1 or inside[0] is None:
        return lines
    order: dict[str, int] = {}
    for line in inside:
        if line is not None:
            order.setdefault(line[2], len(order))
    longest = 1 + max(line[1] for line in inside if line is not None)
    return [len(order) * longest if line is None else order[line[2]] * longest + line[1] for line in inside]


def _are_classes(parts: list[Part]) -> bool:
    """Whether calls are of modules of several classes, two of which do all in a function of the same name.

    Their lines lie apart, and no line of one is in the other.
    """
    inside: dict[int, set[int]] = {}
    for part in parts:
        if len(part) > 1:
            inside.setdefault(part[0][1], set()).add(part[1][1])
    if len(inside) < CLASSES or len({part[1][::2] for part in parts if len(part) > 1}) != 1:
        return False
    apart = all(high - low >= BETWEEN_CLASSES for low, high in pairwise(sorted({part[0][1] for part in parts})))
    return apart and sum(map(len, inside.values())) == len(set().union(*inside.values()))


def _between_classes(parts: list[Part]) -> list[int]:
    """Where lines go over to those of another class, which lie apart; none unless a class is called twice in a row.

    Else they are those of one long function.
    """
    lines = [part[0][1] for part in parts]
    distinct = sorted(set(lines))
    number = {distinct[0]: 0}
    for low, high in pairwise(distinct):
        number[high] = number[low] + (high - low >= BETWEEN_CLASSES)
    edges = [at for at in range(1, len(lines)) if number[lines[at]] != number[lines[at - 1]]]
    stretches = [_lines(parts[begin:end]) for begin, end in pairwise([0, *edges, len(lines)])]
    return edges if any(map(_turns, stretches)) else []


def _goes_back(lines: list[int]) -> bool:
    return any(line < before for before, line in pairwise(lines))


def follow_one_another(calls: list[list[int]], outer: list[list[int]]) -> bool:
    """Whether some of `calls` are made in one of the `outer` ones: else each is made once by its module."""
    number = {place: one for one, call in enumerate(outer) for place in call}
    return len({number[call[0]] for call in calls}) < len(calls)


class CallTree:
    """The calls of a forward, by the paths of its stacks. Beginnings of paths are numbers, to compare them quickly."""

    def __init__(self, known: dict[int, Path]) -> None:
        ids: dict[object, int] = {}
        self.known = known
        self.head = {s: [ids.setdefault(p[:d], len(ids)) for d in range(len(p) + 1)] for s, p in known.items()}

    def blocks(self, rows: list[int], stacks: list[int], least: int) -> list[tuple[list[list[int]], int]]:
        """The requests of the calls of each loop with its depth: the outermost of one kind from one line.

        Args:
            rows: the requests of a forward.
            stacks: the number of the stack of each.
            least: how deep a block is at least.
        """
        pending = [([list(range(len(rows)))], 1)]
        found: list[tuple[list[list[int]], int]] = []
        while pending:
            outer, depth = pending.pop(0)
            for alike in self._alike([place for call in outer for place in call], stacks, depth):
                if depth >= least and self._is_loop(alike, stacks, depth) and follow_one_another(alike, outer):
                    found.append(([[rows[place] for place in call] for call in alike], depth))
                else:
                    pending.append((alike, depth + 1))
        return found

    def _alike(self, part: list[int], stacks: list[int], depth: int) -> list[list[list[int]]]:
        """Calls below a depth, together with those of the same module from the same line."""
        sites: dict[tuple[int, object], list[int]] = {}
        for place in part:
            heads = self.head[stacks[place]]
            if len(heads) > depth + 1:
                kind = _function(self.known[stacks[place]], depth)
                sites.setdefault((heads[depth], kind), []).append(place)
        parts = [part for places in sites.values() for part in self._of_one_function(places, stacks, depth)]
        return [self._calls(places, stacks, depth) for places in parts]

    def _of_one_function(self, places: list[int], stacks: list[int], depth: int) -> list[list[int]]:
        """`places` apart where the lines of two functions of one name in one file were taken for those of one.

        Both are called several times, one kind after the other, and between their lines stands what begins a class.
        """
        lines = [self.known[stacks[place]][depth][0][1] for place in places]
        for number in range(1, len(places)):
            if abs(lines[number] - lines[number - 1]) < BETWEEN_CLASSES:
                continue
            low, high = sorted((lines[:number], lines[number:]), key=min)
            if max(low) + BETWEEN_CLASSES <= min(high) and _goes_back(low) and _goes_back(high):
                return [places[:number], *self._of_one_function(places[number:], stacks, depth)]
        return [places]

    def _is_loop(self, calls: list[list[int]], stacks: list[int], depth: int) -> bool:
        """Whether calls of one kind are those of blocks, not of a layer."""
        if len(calls) < LEAST_BLOCKS or sum(map(len, calls)) < LEAST_REQUESTS * len(calls):
            return False
        return not _LAYER.search(self.known[stacks[calls[0][0]]][depth][0][0])

    def _calls(self, places: list[int], stacks: list[int], depth: int) -> list[list[int]]:
        """Requests of one module below one line, cut where another call begins: where something else was made between.

        Or where its lines go back, see `_in_a_row`.
        """
        edges = [number for number in range(1, len(places)) if places[number] != places[number - 1] + 1]
        runs = [places[begin:end] for begin, end in pairwise([0, *edges, len(places)])]
        kinds = [kind for run in runs for kind in self._of_one_class(run, stacks, depth)]
        return self._in_turns([call for kind in kinds for call in self._in_a_row(kind, stacks, depth)], stacks, depth)

    def _in_turns(self, calls: list[list[int]], stacks: list[int], depth: int) -> list[list[int]]:
        """`calls`, cut where the lines of one begin anew, if some do so and others do not.

        Of blocks that begin a stage the last line is left out, as where a shortcut would be of another size.
        """
        found, every = [], []
        for call in calls:
            lines = _lines([self.known[stacks[place]][depth] for place in call])
            turns = _turns(lines)
            found.append(len(turns))
            every += [call[begin:end] for begin, end in pairwise([0, *turns, len(call)])]
        return every if 0 in found and max(found) == 1 else calls

    def _of_one_class(self, places: list[int], stacks: list[int], depth: int) -> list[list[int]]:
        """`places` cut where a module of another class is called, where each does all in a function of one name.

        As the residual blocks and the attention between them that one line of a U-Net calls.
        """
        parts = [self.known[stacks[place]][depth] for place in places]
        lines = [part[0][1] for part in parts]
        if _are_classes(parts):
            edges = [number for number in range(1, len(places)) if lines[number] != lines[number - 1]]
        else:
            edges = _between_classes(parts)
        return [places[begin:end] for begin, end in pairwise([0, *edges, len(places)])]

    def _in_a_row(self, places: list[int], stacks: list[int], depth: int) -> list[list[int]]:
        """Requests between which nothing else was made, cut where lines go back from the last to where a call began.

        A loop within a call has lines behind it, or most of what the call does before it, and a statement of several
        lines has others behind it.
        """
        lines = _lines([self.known[stacks[place]][depth] for place in places])
        turns = (
            turns_of_which_some_end_early(lines)
            or turns_of_which_the_last_goes_on(lines)
            or turns_of_which_some_have_more(lines)
        )
        if turns:
            return [places[begin:end] for begin, end in pairwise([0, *turns, len(places)])]
        anew = self._anew(places, stacks, depth) if len(set(lines)) == 1 else [False] * len(lines)
        end, reached, first = max(lines), False, 0
        calls: list[list[int]] = [[]]
        for number, (place, line) in enumerate(zip(places, lines, strict=True)):
            back = reached and line < lines[number - 1]
            before = sum(one < line for one in lines[first:number]) if back else 0
            if (back and before <= IN_A_LOOP * (number - first)) or anew[number]:
                calls.append([])
                reached, first = False, number
            reached = reached or line == end
            calls[-1].append(place)
        return calls

    def _anew(self, places: list[int], stacks: list[int], depth: int) -> list[bool]:
        """Where a module of one line that calls layers of several kinds calls the first of them again.

        ``norm(conv(act(x)))`` has no line to go back to. It calls them in one order again and again, of which the last
        call may leave some out, and may add something up itself. A container has but one line for all that it holds:
        it comes again if modules of the program are among that.
        """
        paths = [self.known[stacks[place]] for place in places]
        layers = [called(path, depth + 1) for path in paths]
        begins = [False, *(layer == layers[0] != before for before, layer in pairwise(layers))]
        calls: list[list[str]] = [[]]
        for begin, layer in zip(begins, layers, strict=True):
            calls.extend([[]] if begin else [])
            calls[-1].extend([] if calls[-1][-1:] == [layer] else [layer])
        whole = calls[0]
        alike = all(call == whole[: len(call)] for call in calls) and calls.count(whole) >= LEAST_BLOCKS
        of_torch = all(OF_TORCH.match(layer) for layer in (paths[0][depth][0][0], *whole))
        return begins if alike and not of_torch and len({*whole} - {""}) >= KINDS else [False] * len(places)
