"""Where a program does the same again and again, and the shorter program without most of that.

A training loop asks for the same sizes in the same order, step by step. If what the allocator holds at the end of one
pass is what it held at the end of the pass before, every further pass goes the same way, to the address. So a replay of
a few passes tells of all, and one look at two of their ends tells whether it may. Often blocks change places, so that
only every second pass is like another; then two are taken for one, or more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from oomscope.allocator.program import Op, Program
from oomscope.frozen import frozen
from oomscope.model import IntArray

if TYPE_CHECKING:
    import numpy.typing as npt

_Integer = TypeVar("_Integer", bound=np.integer[Any])

LEAST_STEPS = 4096
"""A program of fewer steps is replayed sooner than it is looked through."""
LEAST_SAVED = 0.5
"""Of all steps: less is not worth a replay that may have been in vain."""
TOGETHER = (1, 2, 6, 12)
"""So many passes are taken for one: what stays the same after one, two, three, four, six or twelve is found."""
_WINDOW = 4096
"""So many steps must be alike for two places to be taken for the same place of two passes."""
_CANDIDATES = 12
_NEARLY_ALL = 0.75
_ANCHORS = (0.5, 0.3, 0.75)
_UNLIKE = 1 << 62


class Loop(NamedTuple):
    """Steps that come again.

    Attributes:
        begin: the first step.
        period: steps of a pass.
        passes: how many there are.
        first: the first request that is made in it.
        requests: how many a pass makes, and gives back.
        reach: a free is of one of the last so many requests.
    """

    begin: int
    period: int
    passes: int
    first: int
    requests: int
    reach: int

    @property
    def kept(self) -> int:
        """Passes after which the allocator may be in the state in which it stays."""
        return 2 + -(-self.reach // self.requests)

    @property
    def saved(self) -> int:
        """Steps that need not be taken."""
        return (self.passes - self.kept) * self.period

    def together(self, count: int) -> Loop | None:
        """The loop of which `count` passes are one; None where there are too few to leave some out."""
        alike = self._replace(period=count * self.period, passes=self.passes // count, requests=count * self.requests)
        return alike if alike.passes > alike.kept + 1 else None


class Standing(NamedTuple):
    """What an allocator holds.

    Attributes:
        changes: how often memory came or went, and how often a request had to wait for that.
        free: for each pool and stream, the keys of the free blocks.
        held: int64[requests], the requests whose blocks are in use, ascending.
        places: int64[requests, 2], the address and the size of each of these blocks.
    """

    changes: tuple[int, int]
    free: list[list[int]]
    held: IntArray
    places: IntArray


class Check(NamedTuple):
    """Two steps before which the allocator has to hold the same, but that requests from `first` on are others.

    Attributes:
        begin, end: the steps.
        first: the request.
        requests: how many were made in between.
    """

    begin: int
    end: int
    first: int
    requests: int

    def holds(self, before: Standing, after: Standing) -> bool:
        """Whether what stands at the end is what stood at the beginning."""
        held = np.where(before.held >= self.first, before.held + self.requests, before.held)
        return (
            before.changes == after.changes
            and np.array_equal(held, after.held)
            and np.array_equal(before.places, after.places)
            and before.free == after.free
        )


@frozen(eq=False)
class Folded:
    """A program without some of the passes that only repeat.

    Attributes:
        program: what is left.
        request: int64[requests], the number in the whole program of each request that is left.
        asked: int64: for each MALLOC and TRY_MALLOC of the whole program, in their order, which of those that are left
            stands for it.
        checks: what must hold for that, by the number of the loop.
    """

    program: Program
    request: IntArray
    asked: IntArray
    checks: Mapping[int, Check] = field(default_factory=dict)


class Forms:
    """A program, and what is left of it without repeats.

    Attributes:
        loops: of the program, in their order; none lies in another.
        shortest: how many passes of each loop are one, where as many as can be are left out; 0: it stays as it is.
    """

    def __init__(self, program: Program) -> None:
        """Look for loops."""
        asked = np.arange(int(np.count_nonzero(program.asks)))
        self._whole = Folded(program, np.arange(program.requests), asked)
        found = sorted(_loops(program)) if len(program.op) >= LEAST_STEPS else []
        is_worth_it = sum(loop.saved for loop in found) >= LEAST_SAVED * len(program.op)
        self.loops = tuple(found) if is_worth_it else ()
        self.shortest = tuple(TOGETHER[0] for _ in self.loops)

    def form(self, together: Sequence[int]) -> Folded:
        """The program in which so many passes of each loop are one, and those that only repeat it are left out."""
        form = self._whole
        for number, (loop, count) in enumerate(zip(self.loops, together, strict=True)):
            alike = loop.together(count) if count else None
            if alike is not None:
                form = _without_repeats(form, number, alike)
        return form

    def longer(self, together: tuple[int, ...], number: int) -> tuple[int, ...]:
        """What to try where loop `number` does not repeat itself after so many passes: more, at last every one.

        Up to where that was found, the one form and the other are the same.
        """
        more = [count for count in TOGETHER if count > together[number] and self.loops[number].together(count)]
        return (*together[:number], more[0] if more else 0, *self.shortest[number + 1 :])


def _without_repeats(before: Folded, number: int, loop: Loop) -> Folded:
    """`loop`, of the whole program, is cut short."""
    shorter_by = len(before.asked) - int(np.count_nonzero(before.program.asks))
    loop = loop._replace(begin=loop.begin - 2 * shorter_by, first=loop.first - shorter_by)
    program, kept, gone = before.program, loop.kept, loop.passes - loop.kept
    steps = slice(loop.begin + kept * loop.period, loop.begin + loop.passes * loop.period)
    requests = slice(loop.first + kept * loop.requests, loop.first + loop.passes * loop.requests)
    later = program.argument[steps.stop :].copy()
    later[program.about_requests[steps.stop :] & (later >= requests.start)] -= requests.stop - requests.start
    shorter = replace(
        program,
        size=_cut(program.size, requests),
        stream=_cut(program.stream, requests),
        owner=_cut(program.owner, requests),
        op=_cut(program.op, steps),
        argument=np.concatenate([program.argument[: steps.start], later]),
        entry=_cut(program.entry, steps),
    )
    asked = np.arange(int(np.count_nonzero(shorter.asks)))
    end = int(np.count_nonzero(program.asks[: loop.begin])) + kept * loop.requests
    again = np.tile(asked[end - loop.requests : end], gone)
    return Folded(
        program=shorter,
        request=_cut(before.request, requests),
        asked=np.concatenate([asked[:end], again, asked[end:]])[before.asked],
        checks={**before.checks, number: Check(steps.start - loop.period, steps.start, loop.first, loop.requests)},
    )


def _cut(column: npt.NDArray[_Integer], part: slice) -> npt.NDArray[_Integer]:
    return np.concatenate([column[: part.start], column[part.stop :]])


def _loops(program: Program) -> Iterator[Loop]:
    """The loops that are worth leaving out; none lies in another."""
    signs = _signs(program)
    parts = [(0, len(signs))]
    while parts:
        low, high = parts.pop()
        found = _loop_in(program, signs, low, high) if high - low >= max(LEAST_STEPS, len(signs) // 8) else None
        if found is not None:
            yield found
            parts += [(low, found.begin), (found.begin + found.passes * found.period, high)]


def _loop_in(program: Program, signs: IntArray, low: int, high: int) -> Loop | None:
    for anchor in _ANCHORS:
        at = low + int(anchor * (high - low))
        runs = []
        for period in _periods(signs, low, high, at):
            runs.append(_run(signs, low, high, at, period))
            if runs[-1].saved > _NEARLY_ALL * (high - low):
                break
        for run in sorted(runs, key=lambda run: -run.saved):
            if run.saved > 0 and (loop := _loop(program, run)) is not None:
                return loop
    return None


def _signs(program: Program) -> IntArray:
    """int64[steps]: alike for steps that may be the same step of two passes."""
    op, argument = program.op, program.argument
    made = np.cumsum(op == Op.MALLOC)
    kind = program.size + (program.stream * 31 + program.owner) * 0x9E3779B1
    signs: IntArray = np.where(op == Op.FREE, argument - made - 1, 0)
    mallocs = np.flatnonzero(op == Op.MALLOC)
    signs[mallocs] = kind[argument[mallocs]]
    rare = np.flatnonzero((op != Op.MALLOC) & (op != Op.FREE))
    signs[rare] = _UNLIKE + rare
    return signs


def _periods(signs: IntArray, low: int, high: int, at: int) -> list[int]:
    """How far from `at` the same steps stand again, the nearest first."""
    window = min(_WINDOW, (high - at) // 2)
    places = np.flatnonzero(signs[low : high - window] == signs[at]) + low
    ahead = 1
    while ahead < window and len(places) > 1:
        places = places[signs[places + ahead] == signs[at + ahead]]
        ahead += 1 + ahead // 16
    distances = np.abs(places - at)
    distances.sort()
    return [int(distance) for distance in dict.fromkeys(distances[distances > 0].tolist())][:_CANDIDATES]


class _Run(NamedTuple):
    """Steps that come again after `period`, `passes` times."""

    begin: int
    period: int
    passes: int

    @property
    def saved(self) -> int:
        """How many steps may be left out of it."""
        return (self.passes - 3) * self.period


def _run(signs: IntArray, low: int, high: int, at: int, period: int) -> _Run:
    """The steps around `at` that come again after `period`."""
    differs = np.flatnonzero(signs[low + period : high] != signs[low : high - period]) + low
    place = int(np.searchsorted(differs, at if at + period < high else at - period))
    begin = int(differs[place - 1]) + 1 if place else low
    end = int(differs[place]) if place < len(differs) else high - period
    return _Run(begin, period, (end - begin) // period + 1)


def _loop(program: Program, run: _Run) -> Loop | None:
    """The loop that a run is, where passes of it may be left out."""
    begin, period, passes = run
    op = program.op[begin : begin + period]
    mallocs, frees = op == Op.MALLOC, op == Op.FREE
    requests = int(np.count_nonzero(mallocs))
    if not requests or int(np.count_nonzero(frees)) != requests or 2 * requests != period:
        return None
    argument = program.argument[begin : begin + period]
    first = int(argument[mallocs][0])
    reach = int((first + np.cumsum(mallocs) - argument)[frees].max())
    loop = Loop(begin, period, passes, first, requests, reach)
    if reach <= 0 or passes <= loop.kept + 1 or not _repeats(program, loop) or not _stands_alone(program, loop):
        return None
    return loop


def _repeats(program: Program, loop: Loop) -> bool:
    """Whether every pass asks for the same, and gives the same back."""
    steps = slice(loop.begin, loop.begin + loop.passes * loop.period)
    made = slice(loop.first, loop.first + loop.passes * loop.requests)
    op, argument = program.op[steps], program.argument[steps]
    if not np.array_equal(argument[op == Op.MALLOC], np.arange(made.start, made.stop)):
        return False
    same = np.array_equal(op[loop.period :], op[: -loop.period])
    alike = np.array_equal(argument[loop.period :], argument[: -loop.period] + loop.requests)
    columns = (column[made] for column in (program.size, program.stream, program.owner))
    return same and alike and all(np.array_equal(one[loop.requests :], one[: -loop.requests]) for one in columns)


def _stands_alone(program: Program, loop: Loop) -> bool:
    """Whether requests of the loop are named only by it, but those of its end by what follows."""
    end = loop.first + loop.passes * loop.requests
    stop = loop.begin + loop.passes * loop.period
    names = program.about_requests
    before = program.argument[: loop.begin][names[: loop.begin]]
    after = program.argument[stop:][names[stop:]]
    held = int(program.initial.number.max(initial=-1)) if program.initial is not None else -1
    if max(int(before.max(initial=-1)), held) >= loop.first:
        return False
    return not np.any((after >= loop.first) & (after < end - loop.reach))
