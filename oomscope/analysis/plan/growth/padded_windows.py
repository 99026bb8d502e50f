"""What lies in windows that pad all recorded sides alike, and so is of one size at all of them.

A function whose name says window makes of a result, which grows with the image, one that does not: as large as that of
a side of whole windows would be. At a side that takes more windows, or fewer, there are as many more or fewer pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isqrt

import numpy as np

from oomscope.analysis.plan.growth.polynomials import Evidence, Model, Point, Polynomial, power
from oomscope.analysis.plan.growth.steps import Stepped
from oomscope.analysis.plan.kinds import SIDE, kind_of
from oomscope.analysis.plan.recordings import Recording
from oomscope.model import IntArray

LARGE = 1 << 20
"""Bytes; what is smaller may be of a text, or of what is looked for in an image."""
MOST = 64
"""Windows along a side."""
_WINDOW, PADS = "window", 2
"""Of the frames that make something, so many may say window: torch's own function that pads is called by it."""


def in_padded_windows(
    models: Sequence[Model],
    evidence: Sequence[Evidence],
    recording: Recording,
    columns: Sequence[tuple[Point, IntArray]],
    parameters: Sequence[str],
) -> list[Model]:
    """The models, with steps in place of what is constant because windows pad it.

    Args:
        models: what was found without.
        evidence: of each.
        recording: whose requests they are of.
        columns: of each other shape its point, and int64[requests]: the size of each request there, -1 where unknown.
        parameters: the names of all.
    """
    found = list(models)
    for axis, name in enumerate(parameters):
        widths = _widths(recording, columns, axis, name) if kind_of(name, parameters) == SIDE else []
        for row, (one, model) in enumerate(zip(evidence, models, strict=True)):
            if widths and _is_constant(one, model, axis):
                laws = [_law(one, model, axis, width) for width in widths]
                found[row] = Model(laws[0], (*laws[1:], model.likely), is_borne_out=False)
    return found


def _widths(recording: Recording, columns: Sequence[tuple[Point, IntArray]], axis: int, name: str) -> list[int]:
    """How wide a window may be, in pixels, the widest first: two or more fill the same side at all recorded ones."""
    shape, size = recording.shapes[0], recording.program.size
    given, made = _windows(recording)
    if len(recording.shapes) != 1 or not len(made):
        return []
    padded, sides = set[int](), {int(shape[name])}
    for point, there in columns:
        side, other = int(shape[name]), int(point[axis])
        if other == side or any(point[at] != shape[one] for at, one in enumerate(shape) if at != axis):
            continue
        sides.add(other)
        alike = (there[made] == size[made]) & (there[given] * side**2 == size[given] * other**2)
        padded |= set(_whole_sides(size[made[alike]] * side**2, size[given[alike]]))
    if len(padded) != 1 or len(sides) == 1:
        return []
    whole = padded.pop()
    return [whole // n for n in range(2, MOST) if whole % n == 0 and _fills(whole // n, whole, sides)]


def _windows(recording: Recording) -> tuple[IntArray, IntArray]:
    """The large requests that a function makes whose name says window, and those right before that it is given."""
    stacks, row = recording.study.snapshot.stacks, recording.subject.extraction.row
    named = [any(_WINDOW in frame.name for frame in stacks[one][:PADS]) for one in range(len(stacks))]
    stack = np.where(row >= 0, recording.study.history.lifetimes.stack[row], -1)
    large = np.flatnonzero(recording.program.size >= LARGE)
    made = np.array([*named, False])[stack[large]]
    behind = np.flatnonzero(made[1:] & ~made[:-1])
    return large[behind], large[behind + 1]


def _whole_sides(square: IntArray, unit: IntArray) -> Iterator[int]:
    """Of what is filled, in parts of what each pixel has, the whole sides."""
    for numerator, denominator in zip(square.tolist(), unit.tolist(), strict=True):
        pixels, rest = divmod(numerator, denominator)
        if not rest and isqrt(pixels) ** 2 == pixels:
            yield isqrt(pixels)


def _fills(width: int, whole: int, sides: set[int]) -> bool:
    return all(-(-side // width) * width == whole for side in sides)


def _is_constant(evidence: Evidence, model: Model, axis: int) -> bool:
    law = model.likely
    varied = len({point[axis] for point in evidence.points}) > 1
    grows = not evidence.at_once and evidence.hint.high[axis] > 0 and evidence.sizes[0] >= LARGE
    return varied and grows and isinstance(law, Polynomial) and len(law.terms) == 1 and law.terms[0][1][axis] == 0


def _law(evidence: Evidence, model: Model, axis: int, width: int) -> Stepped:
    assert isinstance(model.likely, Polynomial), "see `_is_constant`"
    powers, point = model.likely.terms[0][1], evidence.points[0]
    count = -(-int(point[axis]) // width)
    return Stepped(evidence.sizes[0] / (power(point, powers) * count**2), powers, axis, width, 2)
