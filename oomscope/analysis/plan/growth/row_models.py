"""How many distinct rows a batch draws of a table: what an optimizer makes of sparse gradients.

A row that is drawn again adds nothing. Where all rows are drawn alike, the number nears that of the table; where some
are drawn much more often, as of words, it grows with a power of the draws below one (Heaps).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, expm1, log

from oomscope.analysis.plan.growth.polynomials import Evidence, Model, Point, Powers, power, proportional, spread
from oomscope.frozen import frozen

CHANCE = 0.01
"""By so much chance moves the number of distinct rows."""
MOST_ROWS = 1e4
"""Times what was drawn: a table so large is not told from one without an end."""
ROUNDS = 60
"""Of a bisection, more than enough for float64."""


@frozen
class _OfATable:
    """Rows that are drawn alike.

    Attributes:
        table: bytes of all rows of the table.
        factor, powers: bytes of all rows that are drawn, as a product of powers.
    """

    table: float
    factor: float
    powers: Powers

    def at(self, point: Point) -> float:
        """Bytes at a point."""
        return self.table * -expm1(-self.factor * power(point, self.powers) / self.table)


@frozen
class _OfWords:
    """Rows some of which are drawn much more often than others: ``factor`` · draws to the power of ``share``."""

    factor: float
    powers: Powers
    share: float

    def at(self, point: Point) -> float:
        """Bytes at a point."""
        return self.factor * float(power(point, self.powers) ** self.share)


def row_model(evidence: Evidence, varied: Sequence[int]) -> Model | None:
    """The number of distinct rows among those drawn; None where the sizes are no such number.

    Draws grow with what is varied as the hint says, and with what is not varied as well.
    """
    width = len(evidence.points[0])
    powers = spread([max(degree, 1) for degree in evidence.hint.degree], range(width), width)
    draws = [power(point, powers) for point in evidence.points]
    few, many = draws.index(min(draws)), draws.index(max(draws))
    if draws[few] == draws[many] or evidence.sizes[many] <= evidence.sizes[few]:
        return None
    share = log(evidence.sizes[many] / evidence.sizes[few]) / log(draws[many] / draws[few])
    if share > 1 + CHANCE:
        return None
    likely = _of_a_table(draws, evidence.sizes, few, many, powers)
    if likely is None:
        return Model(proportional(evidence, 0), is_borne_out=True)
    sizes = zip(evidence.points, evidence.sizes, strict=True)
    if any(abs(likely.at(point) - size) > CHANCE * size for point, size in sizes):
        return None
    words = _OfWords(evidence.sizes[many] / draws[many] ** share, powers, share)
    return Model(likely, (words,), is_borne_out=len(varied) == width)


def _of_a_table(draws: Sequence[float], sizes: Sequence[int], few: int, many: int, powers: Powers) -> _OfATable | None:
    """The table of which as many distinct rows were drawn; None where it has no end that could be told."""

    def drawn(table: float, row: int) -> float:
        return -table * log(1 - sizes[row] / table) / draws[row]

    def bends(table: float) -> float:
        return drawn(table, many) - drawn(table, few)

    low, high = sizes[many] * (1 + 1e-9), sizes[many] * MOST_ROWS
    if bends(high) > 0:
        return None
    for _ in range(ROUNDS):
        middle = exp((log(low) + log(high)) / 2)
        low, high = (middle, high) if bends(middle) > 0 else (low, middle)
    return _OfATable(high, drawn(high, many), powers)
