"""What a reduction over many rows adds up in: as many blocks of threads as the card runs at once, or as the rows fill.

torch gives each block rows enough for 16 values a thread, but makes no more blocks than the card runs at once. With
four values a thread side by side each of its warps keeps 128 sums of float32, so that a reduction takes twice the bytes
of float32 that it adds up, and at most a MiB for each multiprocessor (`aten/src/ATen/native/cuda/Reduce.cuh`).
"""

from __future__ import annotations

import re

import numpy as np

from oomscope.allocator.program import Op, Program
from oomscope.analysis.plan.polynomials import EXACT, Evidence, Model, Point, Polynomial, proportional
from oomscope.analysis.plan.recordings import Recording
from oomscope.analysis.study import DeviceStudy
from oomscope.frozen import frozen
from oomscope.model import BoolArray, IntArray

COUNTERS = 4096
"""Bytes, at most, of the counters of a reduction's blocks of threads."""
TWICE = 2
"""Times what is added up."""
ITEM = 4
"""Bytes of a sum."""
SUMS = 128
"""Of a warp, side by side."""
BLOCKS = 16
"""That a multiprocessor runs at once: 128 threads each, of 2,048."""
SHORTLY = 64
"""Requests before a reduction within which what it adds up was made."""
_MULTIPROCESSORS = (
    (re.compile(r"\bG?H200\b|\bH100.*HBM3\b"), 132),
    (re.compile(r"\bH100 PCIe\b"), 114),
    (re.compile(r"\bA100\b"), 108),
)
"""Of a card."""
_FULL = {count << 20 for _, count in _MULTIPROCESSORS}
"""Bytes at which a reduction fills a card, where its sums are whole parts."""


@frozen
class _UpToFull:
    """What grows until the card is full, at `most` bytes."""

    most: int
    growing: Polynomial

    def at(self, point: Point) -> float:
        """Bytes at a point."""
        return min(float(self.most), self.growing.at(point))


def reduction_model(evidence: Evidence) -> Model:
    """The model of a reduction that fills the card and adds up a known number of bytes."""
    growing = proportional(evidence, 0, evidence.hint.low)
    powers, scale = growing.terms[0][1], evidence.filled_by / evidence.sizes[0]
    likely = _UpToFull(evidence.sizes[0], Polynomial(((growing.terms[0][0] * scale, powers),)))
    own = Polynomial(((float(evidence.sizes[0]), (0,) * len(powers)),))
    return Model(likely, (own, growing), is_borne_out=False)


def up_to_full(evidence: Evidence) -> Model | None:
    """The model of a reduction that fills the card at some of the shapes it was seen at; None where it is none.

    At the others it is smaller, and in proportion to the shape.
    """
    most = max(evidence.sizes)
    if most not in _FULL:
        return None
    rows = [row for row, size in enumerate(evidence.sizes) if size < most]
    if not rows:
        return None
    growing = proportional(evidence, rows[0], evidence.hint.low)
    if all(growing.at(point) <= most + EXACT for point in evidence.points):
        return None  # as large by chance: it is in proportion throughout
    law = _UpToFull(most, growing)
    pairs = zip(evidence.points, evidence.sizes, strict=True)
    return Model(law, ()) if all(abs(law.at(point) - size) <= EXACT for point, size in pairs) else None


def filled_by(recording: Recording) -> IntArray:
    """int64[requests]: where a reduction fills the card, twice the bytes that it adds up, else 0.

    That is the smallest tensor made shortly before which is large enough and has as many columns as there are sums,
    where there is one; else what was recorded.
    """
    size = recording.program.size
    found = np.zeros(len(size), np.int64)
    rows = np.flatnonzero(_fills_card(recording))
    if not len(rows):
        return found
    begin, end = _moments(recording.program)
    for row in rows.tolist():
        before = np.arange(max(row - SHORTLY, 0), row)
        alive = before[(end[before] > begin[row]) & (TWICE * size[before] >= size[row])]
        fitting = size[alive][size[alive] % size[row - 1] == 0]
        found[row] = TWICE * int(fitting.min()) if len(fitting) else int(size[row])
    return found


def _fills_card(recording: Recording) -> BoolArray:
    size = recording.program.size
    sums = np.append(0, size[:-1]) // ITEM
    parts = np.maximum(-(-sums // SUMS), 1)
    full = np.zeros(len(size), np.bool_)
    for count in _multiprocessors(recording.study):
        full |= size == ITEM * SUMS * sums * (BLOCKS * count // parts)
    return np.asarray(made_to_add_up(recording.program) & full & (size > 0))


def _multiprocessors(study: DeviceStudy) -> set[int]:
    """How many the card has; any that is known where the recording does not name the card, for then sizes tell."""
    names = [one.name for one in study.snapshot.recorded.devices if one.index == study.index and one.name]
    return {count for known, count in _MULTIPROCESSORS if not names or any(known.search(name) for name in names)}


def made_to_add_up(program: Program) -> BoolArray:
    """bool[requests]: what a reduction over many blocks of threads adds up in, with the counters of the blocks in it.

    torch asks for both one after the other, and gives them back in reverse.
    """
    found = np.zeros(program.requests, np.bool_)
    op, argument = program.op, program.argument
    if len(op) > 3:
        free = (op == Op.FREE) | (op == Op.FREE_REQUESTED)
        shape = (op[:-3] == Op.MALLOC) & (op[1:-2] == Op.MALLOC) & free[2:-1] & free[3:]
        first, second = argument[:-3], argument[1:-2]
        same = (second == argument[2:-1]) & (first == argument[3:])
        found[first[shape & same & (program.size[second] <= COUNTERS)]] = True
    return found


def _moments(program: Program) -> tuple[IntArray, IntArray]:
    """int64[requests] each: the steps at which they are made and given back."""
    begin = np.full(program.requests, len(program.op), np.int64)
    end = begin.copy()
    step = np.arange(len(program.op))
    for ops, column in (((Op.MALLOC, Op.TRY_MALLOC), begin), ((Op.FREE, Op.FREE_REQUESTED), end)):
        rows = np.isin(program.op, ops)
        column[program.argument[rows]] = step[rows]
    return begin, end
