"""Sizes as messages print them: what was printed is rounded, and nothing may be concluded beyond that."""

from __future__ import annotations

import re

from oomscope.frozen import frozen
from oomscope.units import Rounded

NUMBER = r"\d{1,20}(?:[.,]\d{0,8})?"
SIZE = rf"{NUMBER}(?:bytes?|[KMGTP]i?B|[kKMG]b)"
"""A size with its unit, in a text without blanks."""

_SIZE = re.compile(rf"(-?{NUMBER})([A-Za-z]*)\Z")
_POWERS = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_NO_SIZE = (1 << 63) - (1 << 32)
"""Drivers that cannot tell, and limits that are none, print 2^63 or 2^64 bytes or a little less."""


@frozen
class Figure:
    """A size in bytes, and between which bounds it must lie.

    Attributes:
        point: as printed; a part of a byte counts where figures are added.
        low: the least that would have been printed so.
        high: the most.
    """

    point: float
    low: int
    high: int

    @property
    def value(self) -> int:
        """As printed, to the nearest byte; it knows how far it may be off."""
        near = round(self.point)
        return Rounded(near, self._off(near))

    @property
    def off_by(self) -> int:
        """How far the true size may be from `value`, in bytes; 0 where it was printed exactly."""
        return self._off(round(self.point))

    def _off(self, near: int) -> int:
        return max(self.high - near, near - self.low)

    def __add__(self, other: Figure) -> Figure:
        return Figure(self.point + other.point, self.low + other.low, self.high + other.high)

    def __sub__(self, other: Figure) -> Figure:
        return Figure(self.point - other.point, self.low - other.high, self.high - other.low)

    def exceeds(self, other: Figure) -> bool:
        """Whether it is certainly more than `other`."""
        return self.low > other.high

    def covers(self, other: Figure) -> bool:
        """Whether it is certainly at least `other`."""
        return self.low >= other.high


def exact(count: int) -> Figure:
    """`count` bytes, known to the byte."""
    return Figure(count, count, count)


def parse_figure(text: str, unit: str = "") -> Figure | None:
    """The size that `text` prints, without blanks: ``23.65GiB``, ``512bytes``; None where it says nothing.

    Every unit is binary, as torch, XLA and the kernel mean theirs. Half of the last printed digit either way is
    unknown.

    Args:
        text: the number with its unit.
        unit: the unit where `text` has none, as the first of ``1.54/22.05 GiB``.
    """
    match = _SIZE.match(_with_point(text))
    if match is None:
        return None
    number, printed = match[1], match[2] or unit
    scale = 1024 ** _POWERS[printed[:1].lower()]
    whole, _, decimals = number.partition(".")
    digit = 10 ** len(decimals)
    # Twice the size, in units of the last printed digit: all that follows is exact.
    twice = 2 * int(whole + decimals) * scale
    if abs(twice) >= 2 * _NO_SIZE * digit:
        return None
    half = scale if scale > 1 else 0
    return Figure(twice / (2 * digit), (twice - half) // (2 * digit), -((-twice - half) // (2 * digit)))


def _with_point(text: str) -> str:
    """`text` with a decimal point: some locales write ``1900,00 MiB``; a comma before three digits groups them."""
    return re.sub(r",(?=\d{3}(?!\d))", "", text).replace(",", ".")
