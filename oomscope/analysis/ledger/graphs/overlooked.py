"""Which calls of modules go backward for nothing, by what becomes of the gradients of their weights.

A network before the model that no optimizer has: its gradients are the last that a backward makes, and no ``zero_grad``
reaches them. A twin beside the model, as a teacher that is an average of it: its gradients are the first. A generator
before its critic: the optimizer that follows has the critic alone, and another one steps the generator later.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from oomscope.analysis.labels.kinds import WORKSPACE
from oomscope.analysis.ledger.draft import NEVER
from oomscope.analysis.ledger.passes import backward_of
from oomscope.analysis.ledger.paths import Path, module_of
from oomscope.analysis.ledger.run import SCALAR, Run
from oomscope.analysis.ledger.states import per_parameter
from oomscope.model import BoolArray, Frame, FrameKind, IntArray, frame_kind
from oomscope.model.ordering import among, ascending

LEAST_WEIGHTS = 2
"""Gradients of weights that a network leaves."""
SMALL_SHARE = 1 / 16
"""Of what a forward leaves to its backward, or of its gradients: less is not worth it."""
MOSTLY = 0.5
"""Of the bytes of gradients that a backward leaves at most."""
NEARLY_ALL = 0.95
"""Of the bytes of states or gradients: the rest may be of weights that share a size with others."""
TAIL = 8
"""Requests at the end of a backward that are compared."""

Calls = set[object]


def calls_for_nothing(run: Run, known: dict[int, Path], passes: list[IntArray]) -> Calls:
    """The calls whose backward nothing needs, each as where it is made and of which module."""
    wanted = [zeroed(run, passes, number) for number in range(len(passes))]
    most = max((int(run.size[rows].sum()) for rows in wanted), default=0)
    found: Calls = set()
    for number, rows in enumerate(wanted):
        # Where gradients are zeroed in place, or not after each backward, only some leave any.
        if len(rows) and run.size[rows].sum() >= MOSTLY * most:
            last = int(run.begin[rows[-1]])
            if _weights_behind(run, passes, number, last) >= LEAST_WEIGHTS:
                found |= _calls_behind(run, known, passes, number, last)
            weights = rows[run.size[rows] > SCALAR]
            found |= _twins(run, known, passes, number, int(run.begin[weights].min(initial=NEVER)))
    return found or _stepped_by_others(run, known, passes)


def some_are_left(run: Run, passes: list[IntArray]) -> bool:
    """Whether some weights have gradients that no ``zero_grad`` reaches, or that the optimizer behind does not take."""
    for number in range(len(passes)):
        rows, own = _stepped(run, passes, number)
        wanted, left = zeroed(run, passes, number), _left(run, passes, number)
        for_nothing = [rows[~own], *([left] if (run.size[wanted] > SCALAR).any() else [])]
        if any(run.size[some].sum() > SMALL_SHARE * run.size[rows].sum() for some in for_nothing):
            return True
    return False


def taken_by_nobody(run: Run, passes: list[IntArray]) -> IntArray:
    """int64: gradients of weights that the optimizer does not take, where none is let go: they stay."""
    found = []
    for number in range(len(passes) - 1):
        rows, own = _stepped(run, passes, number)
        following = backward_of(run, passes, number + 1)
        others = rows[~own]
        are_last = own.any() and own[: len(own) - len(others)].all()
        if len(others) >= LEAST_WEIGHTS and are_last and len(following):
            stay = (run.end[rows] > run.begin[following[0]]).all()
            found.append(others if stay else others[:0])
    return np.concatenate([np.zeros(0, np.int64), *found])


def calls_of(path: Path) -> list[object]:
    """The calls of modules that something is made in, the outermost first: where each is called, and which it is."""
    return [(path[:depth], module_of(path[: depth + 1])) for depth in range(1, len(path))]


def zeroed(run: Run, passes: list[IntArray], number: int) -> IntArray:
    """The gradients that a backward leaves to its end and that are let go later."""
    back = backward_of(run, passes, number)
    found: IntArray = back[run.gradients[back] & (run.end[back] > run.begin[back[-1:]].sum()) & (run.end[back] < NEVER)]
    return found


def _left(run: Run, passes: list[IntArray], number: int) -> IntArray:
    """The gradients of weights that a backward leaves for good."""
    back = backward_of(run, passes, number)
    found: IntArray = back[run.gradients[back] & (run.end[back] >= NEVER) & (run.size[back] > SCALAR)]
    return found


def _weights_behind(run: Run, passes: list[IntArray], number: int, last: int) -> int:
    """How many things as large as weights a backward makes behind a moment."""
    back = backward_of(run, passes, number)
    made = run.size[back[run.begin[back] > last]]
    return int(np.count_nonzero(among(made, ascending(run.size[run.parameters])) & (made > SCALAR)))


def _calls_behind(run: Run, known: dict[int, Path], passes: list[IntArray], number: int, last: int) -> Calls:
    """The calls of modules whose backward lies behind the `last` gradient that is wanted, a moment.

    What a later backward needs, as of a generator behind that of its discriminator, waits for that one.
    """
    following = int(run.begin[passes[number + 1][0]]) if number + 1 < len(passes) else NEVER
    return _calls_between(run, known, passes[number], last, following)


def _calls_between(run: Run, known: dict[int, Path], rows: IntArray, begin: int, end: int) -> Calls:
    """The calls of a forward that leave a fair part to a backward, which gives all of it up between two moments.

    A variable may hold what a call returns for longer.
    """
    inside: Counter[object] = Counter()
    later: Counter[object] = Counter()
    before: Calls = set()
    for row in rows[run.saved[rows]].tolist():
        calls, until = calls_of(known[int(run.stack[row])]), int(run.end[row])
        if until <= begin:
            before.update(calls)
        else:
            (inside if until < end else later).update(dict.fromkeys(calls, int(run.size[row])))
    least = SMALL_SHARE * float(run.size[rows[run.saved[rows]]].sum())
    return {
        call
        for call, left in inside.items()
        if left >= max(least, 1) and later[call] <= SMALL_SHARE * left and call not in before
    }


def _twins(run: Run, known: dict[int, Path], passes: list[IntArray], number: int, first: int) -> Calls:
    """The calls that go backward before the `first` gradient that is wanted, a moment, and have a twin that is trained.

    The twin is the same module elsewhere, given what needs no gradient. If the end of both backwards is the same, the
    call was given such a thing too: else its backward would make the gradient of that as well.
    """
    left = _left(run, passes, number)
    early = run.begin[left] < first
    if np.count_nonzero(early) < LEAST_WEIGHTS or run.size[left[early]].sum() < MOSTLY * run.size[left].sum():
        return set()
    rows = passes[number]
    back = backward_of(run, passes, number)
    back = back[~run.of(WORKSPACE)[back] & ~run.recording.at_once[back]]
    saved: dict[object, list[int]] = {}
    for row in rows[run.saved[rows]].tolist():
        for call in calls_of(known[int(run.stack[row])]):
            saved.setdefault(call, []).append(row)
    calls = _calls_between(run, known, rows, int(run.begin[rows[-1]]), first)
    others = [call for call in saved if call not in calls]
    return {
        call
        for call in calls
        if any(_kind(other) == _kind(call) and _end_alike(run, back, saved[call], saved[other]) for other in others)
    }


def _kind(call: object) -> object:
    """The function that a call is of, wherever that is called."""
    assert isinstance(call, tuple), "see `calls_of`"
    return call[1][-1]


def _end_alike(run: Run, back: IntArray, own: list[int], trained: list[int]) -> bool:
    """Whether a backward ends as the backward of something trained does, with which all of it ends."""
    tails = []
    for saved in (own, trained):
        ends = np.sort(run.end[saved])
        tails.append(run.size[back[run.begin[back] > ends[-min(TAIL, len(ends))]]])
    count = len(tails[1])
    return bool(len(tails[0]) > count > 0 and (tails[0][:count] == tails[1]).all())


def _stepped_by_others(run: Run, known: dict[int, Path], passes: list[IntArray]) -> Calls:
    """The calls whose weights have gradients that the optimizer behind the backward does not take, and no other one.

    They are those of the last gradients, so that nothing before them is trained. Where gradients are zeroed in place,
    nothing tells whether these are zeroed before another optimizer takes some; that is how such programs are written.
    """
    found: Calls = set()
    for number in range(len(passes) - 1):
        rows, own = _stepped(run, passes, number)
        others = rows[~own]
        if len(others) < LEAST_WEIGHTS or not own.any() or not own[: len(own) - len(others)].all():
            continue
        sizes = np.sort(run.size[others])
        if (sizes == np.sort(run.size[rows[: len(others)]])).all() or not _are_let_go(run, passes, number, rows, own):
            continue
        if _took_them_before(run, passes, number, Counter(sizes.tolist())):
            continue
        found |= _calls_behind(run, known, passes, number, int(run.begin[rows[own]].max()))
    return found


def _took_them_before(run: Run, passes: list[IntArray], number: int, sizes: Counter[int]) -> bool:
    """Whether the same line took gradients of such sizes at an earlier step: a head may wait for its turn."""
    for earlier in range(number):
        rows, own = _stepped(run, passes, earlier)
        of_one_line = _optimizer(run, passes, earlier) == _optimizer(run, passes, number)
        if of_one_line and sizes <= Counter(run.size[rows[own]].tolist()):
            return True
    return False


def _optimizer(run: Run, passes: list[IntArray], number: int) -> Frame | None:
    """The line of the program behind a backward that steps an optimizer which makes states."""
    states = _made_behind(run, passes, number)
    states = states[run.states[states] & (run.stack[states] >= 0)]
    stack = run.study.snapshot.stacks[int(run.stack[states[0]])] if len(states) else ()
    return next((frame for frame in stack if frame_kind(frame.filename) is FrameKind.OWN), None)


def _made_behind(run: Run, passes: list[IntArray], number: int) -> IntArray:
    """What is made behind a backward, before the next forward."""
    back = backward_of(run, passes, number)
    until = int(passes[number + 1][0]) if number + 1 < len(passes) else len(run.size)
    return np.arange(int(back[-1]) + 1, until) if len(back) else back


def _are_let_go(run: Run, passes: list[IntArray], number: int, rows: IntArray, own: BoolArray) -> bool:
    """Whether gradients that are not its `own` go before the next backward, or nothing ever lets gradients go."""
    following = backward_of(run, passes, number + 1)
    begins = int(run.begin[following[0]]) if len(following) else NEVER
    return bool((run.end[rows[~own]] < begins).all() or (run.end[rows] >= NEVER).all())


def _stepped(run: Run, passes: list[IntArray], number: int) -> tuple[IntArray, BoolArray]:
    """The gradients of weights that a backward makes, and which the optimizer takes that follows, as far as it tells.

    That is told by the states that it makes for the first time. Of gradients of one size it takes the first ones.
    """
    back = backward_of(run, passes, number)
    rows = back[run.gradients[back] & (run.size[back] > SCALAR)]
    made = _made_behind(run, passes, number)
    states = Counter(run.size[made[run.states[made]]].tolist())
    each = max(per_parameter(run), 1.0)
    taken = Counter({size: round(count / each) for size, count in states.items()})
    known = taken & Counter(run.size[rows].tolist())
    own = np.ones(len(rows), np.bool_)
    if not known or _bytes(known) < NEARLY_ALL * _bytes(taken):
        return rows, own
    for place, size in enumerate(run.size[rows].tolist()):
        own[place] = known[size] > 0
        known[size] -= 1
    return rows, own


def _bytes(sizes: Counter[int]) -> int:
    return sum(size * count for size, count in sizes.items())
