"""Sizes that grow in steps: windows, patches and paddings fill a side or a length up to a multiple of their own.

Such a size is in proportion to ``ceil(side / width)`` or its square. Two recordings allow few widths, mostly one, for
the counts are whole numbers. A constant beside a square would fit two sides as well, but it would have to be negative,
and nothing is made of fewer places than there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product

import numpy as np

from oomscope.analysis.plan.growth.polynomials import (
    EXACT,
    Evidence,
    Law,
    Model,
    Multiple,
    Point,
    Polynomial,
    Powers,
    power,
    spread,
)
from oomscope.analysis.plan.kinds import BATCH, kind_of
from oomscope.frozen import frozen
from oomscope.model import IntArray

WIDEST = 4096
"""Of a window, in the unit of the parameter."""
DEGREES = (1, 2)
LEAST = 4096
"""Bytes below which it does not matter how a request grows."""
BLOCK = 16
"""Tokens of a block of attention at least."""
PARTS = 4
"""Of a window, of which neighbours share some."""
LIKE_OTHERS = 0.25
"""Of a doubling: so far a width may be from where its line's other sizes put it."""


@frozen
class Stepped:
    """``factor`` · the others' powers · (``ceil(parameter / width)`` - ``less``) to the power of ``degree``."""

    factor: float
    powers: Powers
    axis: int
    width: int
    degree: int
    less: float = 0.0

    def at(self, point: Point) -> float:
        """Bytes at a point."""
        parts = _count(point[self.axis], self.width) - self.less
        return self.factor * power(point, self.powers) * float(parts**self.degree)


def in_steps(
    models: Sequence[Model], evidence: Sequence[Evidence], lines: Sequence[IntArray], parameters: Sequence[str]
) -> list[Model]:
    """The models, with steps in the place of sums that begin below 0, and beside others that they explain as well.

    Args:
        models: what was found without steps.
        evidence: of each.
        lines: for each, the lines of the program that made such a request.
        parameters: the names of all; a batch is not padded.
    """
    found = list(models)
    for axis, name in enumerate(parameters):
        varied = any(len({point[axis] for point in one.points}) > 1 for one in evidence)
        if kind_of(name, parameters) == BATCH or not varied:
            continue
        fitting = {row: some for row, one in enumerate(evidence) if (some := _candidates(one, models[row], axis))}
        sure = _determined(fitting, evidence, lines)
        for row, candidates in fitting.items():
            chosen = sure.get(row)
            kept = [one for one in candidates if chosen is None or one.width == chosen]
            if chosen:
                found[row] = Model(kept[0], (*kept[1:],), is_borne_out=len(kept) == 1)
            elif _is_forced(evidence[row], models[row], axis):
                found[row] = Model(kept[0], (*kept[1:], models[row].likely), is_borne_out=False)
            else:
                found[row] = Model(models[row].likely, (*models[row].others, *kept), is_borne_out=False)
        _as_overlapping_parts(found, evidence, axis)
        _as_those_of_its_size(found, evidence, axis)
    return found


def filled(models: Sequence[Model], point: Point) -> frozenset[tuple[int, int, bool]]:
    """Each parameter and width of the steps that were found, and whether the shape fills them without padding.

    Programs pad, and move windows, only where that is so.
    """
    steps = {(one.likely.axis, one.likely.width) for one in models if isinstance(one.likely, Stepped)}
    return frozenset((axis, width, point[axis] % width == 0) for axis, width in steps)


def _as_overlapping_parts(models: list[Model], evidence: Sequence[Evidence], axis: int) -> None:
    """What is made of parts of windows that overlap: one fewer than there are such parts, where all have one width.

    As chunks of a text, each of which begins in the middle of the last one; nothing else explains such sizes but a
    constant beside a square.
    """
    widths = {model.likely.width for model in models if isinstance(model.likely, Stepped) and model.likely.axis == axis}
    if len(widths) != 1:
        return
    width = widths.pop()
    for row, (one, model) in enumerate(zip(evidence, models, strict=True)):
        is_sum = isinstance(model.likely, Polynomial) and len(model.likely.terms) > 1
        if is_sum and one.sizes[0] >= LEAST and not (one.of_rows or one.by_data):
            parts = [_overlapping(one, axis, width, part / PARTS) for part in range(1, PARTS + 1)]
            law = next((law for law in parts if law is not None), None)
            if law is not None:
                models[row] = Model(law, (model.likely, *model.others), is_borne_out=False)


def _overlapping(evidence: Evidence, axis: int, width: int, less: float) -> Stepped | None:
    """The law of a part fewer of a window, if it gives all sizes."""
    points, degree = evidence.points, evidence.hint.degree
    powers = tuple(0 if at == axis else one for at, one in enumerate(degree))
    law = Stepped(1.0, powers, axis, width, 1, less)
    if law.at(points[0]) <= 0:
        return None
    law = replace(law, factor=evidence.sizes[0] / law.at(points[0]))
    fits = all(abs(law.at(point) - size) <= EXACT for point, size in zip(points, evidence.sizes, strict=True))
    return law if fits else None


def _as_those_of_its_size(models: list[Model], evidence: Sequence[Evidence], axis: int) -> None:
    """What only one recording has, as a padded copy, grows as what is as large, if all of that does so in steps."""
    alike: dict[tuple[Point, int], set[Law]] = {}
    for one, model in zip(evidence, models, strict=True):
        if len(one.points) > 1:
            alike.setdefault((one.points[0], one.sizes[0]), set()).add(model.likely)
    for row, one in enumerate(evidence):
        laws = alike.get((one.points[0], one.sizes[0]), set())
        law = next(iter(laws), None)
        if len(one.points) == 1 and len(laws) == 1 and isinstance(law, Stepped) and law.axis == axis:
            models[row] = Model(law, (models[row].likely, *models[row].others), is_borne_out=False)


def _candidates(evidence: Evidence, model: Model, axis: int) -> list[Stepped]:
    """The steps that explain all sizes, widest first, where no product does and no law of rows.

    Of several widths those that divide a recorded value are meant: programs are mostly run where nothing is padded.
    """
    is_product = isinstance(model.likely, Polynomial) and len(model.likely.terms) == 1
    is_varied = len({point[axis] for point in evidence.points}) > 1
    if evidence.sizes[0] < LEAST or evidence.of_rows or evidence.by_data or not is_varied:
        return []
    if is_product or _is_of_tokens(model, axis):
        return []
    if evidence.at_once and not _is_forced(evidence, model, axis):
        return []  # Workspaces follow laws of their own.
    values = sorted({int(point[axis]) for point in evidence.points})
    fitting = _fitting(evidence, axis, np.arange(2, min(values[-1], WIDEST) + 1))
    exact = [one for one in fitting if any(value % one.width == 0 for value in values)]
    if not exact and _leaves_out_blocks(model, axis, values):
        return []
    return sorted(exact or fitting, key=lambda one: -one.width)


def _leaves_out_blocks(model: Model, axis: int, values: Sequence[int]) -> bool:
    """Whether a size is in proportion to a length less some blocks, as where the first and the last one differ.

    Recorded lengths are in whole blocks then.
    """
    law = model.likely
    if not (isinstance(law, Polynomial) and len(law.terms) == 2 and not law.squared):
        return False
    (least, low), (factor, high) = law.terms
    missing = round(-least / factor)
    is_linear = (low[axis], high[axis]) == (0, 1) and _same_but(low, high, axis)
    block = missing & -missing
    return is_linear and least < 0 and block >= BLOCK and all(value % block == 0 for value in values)


def _is_of_tokens(model: Model, axis: int) -> bool:
    """Whether it is the square of a length and a whole number of tokens beside it: see `token_models`.

    Of a side's square, windows that pad may look so.
    """
    law = model.likely
    if not (isinstance(law, Multiple) and isinstance(law.law, Polynomial) and law.law.squared):
        return False
    return model.is_borne_out and law.law.terms[-1][1][axis] == 1


def _is_forced(evidence: Evidence, model: Model, axis: int) -> bool:
    """Whether no sum of usual powers explains how a parameter changes the size: it grows too fast for that.

    What was found begins below 0 then, or has a higher power.
    """
    own, likely = evidence.points[0], model.likely
    alone = [
        row for row, point in enumerate(evidence.points) if _same_but(point, own, axis) and point[axis] != own[axis]
    ]
    if not alone:
        return False
    nothing = tuple(0.5 if at == axis else value for at, value in enumerate(own))
    degree = max(evidence.hint.degree[axis], evidence.usual[axis])
    grown = [
        evidence.sizes[row] - evidence.sizes[0] * (evidence.points[row][axis] / own[axis]) ** degree for row in alone
    ]
    faster = all(
        (more > EXACT) == (evidence.points[row][axis] > own[axis]) for row, more in zip(alone, grown, strict=True)
    )
    return likely.at(nothing) < 0 or faster


def _same_but(one: Point, other: Point, axis: int) -> bool:
    return one[:axis] + one[axis + 1 :] == other[:axis] + other[axis + 1 :]


def _fitting(evidence: Evidence, axis: int, widths: IntArray) -> list[Stepped]:
    """For each width the product of steps, and of powers of the other parameters, that gives all sizes, if one does."""
    points, hint = evidence.points, evidence.hint
    others = [at for at in range(len(points[0])) if at != axis]
    varied = [at for at in others if len({point[at] for point in points}) > 1]
    rest = [hint.degree[at] if at not in varied and at != axis else 0 for at in range(len(points[0]))]
    counts = np.ceil(np.array([point[axis] for point in points])[:, None] / widths)
    sizes = np.array(evidence.sizes, np.float64)[:, None]
    found: dict[int, Stepped] = {}
    for degree, chosen in product(DEGREES, product(range(3), repeat=len(varied))):
        powers = tuple(one + more for one, more in zip(spread(chosen, varied, len(points[0])), rest, strict=True))
        each = np.array([power(point, powers) for point in points])[:, None] * counts**degree
        fits = (np.abs(sizes[0] / each[0] * each - sizes) <= EXACT).all(axis=0)
        for place in np.flatnonzero(fits).tolist():
            factor, width = float(sizes[0, 0] / each[0, place]), int(widths[place])
            found.setdefault(width, Stepped(factor, powers, axis, width, degree))
    return list(found.values())


def _count(value: float, width: int) -> int:
    return int(-(-value // width))


def _determined(
    fitting: Mapping[int, Sequence[Stepped]], evidence: Sequence[Evidence], lines: Sequence[IntArray]
) -> dict[int, int]:
    """The width of each request that is sure: only one is possible, and those of others are its multiples.

    A line that makes several sizes makes them at several stages of the program, finer ones of larger sizes: where the
    widths of two of them are known, they tell that of a third.
    """
    sure = {row: some[0].width for row, some in fitting.items() if len(some) == 1}
    widths = sorted(set(sure.values()))
    if len(widths) < 2 or any(wide % narrow for narrow, wide in pairwise(widths)):
        return {}
    known = dict(sure)
    for row, some in fitting.items():
        if row not in sure:
            told = {_as_in_its_line(some, row, line, sure, evidence, lines) for line in lines[row].tolist()} - {0}
            if len(told) == 1:
                known[row] = told.pop()
    same = {evidence[row].sizes: width for row, width in known.items()}
    return {row: same[evidence[row].sizes] for row in fitting if evidence[row].sizes in same}


def _as_in_its_line(
    some: Sequence[Stepped],
    row: int,
    line: int,
    sure: Mapping[int, int],
    evidence: Sequence[Evidence],
    lines: Sequence[IntArray],
) -> int:
    """The width that the known ones of a line suggest for another size; 0 where they suggest none of the possible.

    Sizes are compared without what pads them.
    """
    axis = some[0].axis

    def bare(one: int, width: int) -> float:
        value = evidence[one].points[0][axis]
        share = value / (width * _count(value, width))
        return float(np.log2(evidence[one].sizes[0]) + some[0].degree * np.log2(share))

    beside = {width: bare(one, width) for one, width in sure.items() if line in lines[one]}
    narrow, wide = min(beside, default=0), max(beside, default=0)
    if narrow == wide:
        return 0
    pace = (beside[wide] - beside[narrow]) / np.log2(wide / narrow)

    def missed(width: int) -> float:
        return abs(float(bare(row, width) - beside[narrow] - pace * np.log2(width / narrow)))

    nearest = min((one.width for one in some), key=missed)
    return nearest if missed(nearest) <= LIKE_OTHERS else 0
