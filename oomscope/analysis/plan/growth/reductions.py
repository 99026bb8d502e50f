"""What a reduction over many rows adds up in: as many blocks of threads as the card runs at once, or as the rows fill.

torch gives each block rows enough for 16 values a thread, but makes no more blocks than the card runs at once. With
four values a thread side by side each of its warps keeps 128 sums of float32, so that a reduction takes twice the bytes
of float32 that it adds up, and about a MiB for each multiprocessor at most (`aten/src/ATen/native/cuda/Reduce.cuh`).
"""

from __future__ import annotations

import re

import numpy as np

from oomscope.allocator.program import Op, Program
from oomscope.analysis.plan.growth.polynomials import Evidence, Law, Model, Point, Polynomial, proportional
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
NEARLY = 0.01
"""By so much what is added up may miss a product: a token beside the patches of an image."""
MOST_VALUES = 16
"""Times as many values as at least a thread takes at most: above that there are more blocks than the card runs."""


@frozen
class _UpToFull:
    """What grows by whole blocks until the card is full, at `most` bytes."""

    most: int
    growing: Law
    block: int

    def at(self, point: Point) -> float:
        """Bytes at a point."""
        growing = self.growing.at(point)
        blocks = np.ceil(round(max(min(self.most, growing), growing / MOST_VALUES) / self.block, 6))
        return float(blocks * self.block)


def reduction_model(evidence: Evidence) -> Model:
    """The model of a reduction that fills the card and adds up a known number of bytes."""
    growing = proportional(evidence, 0, evidence.hint.low)
    powers, scale = growing.terms[0][1], evidence.filled_by / evidence.sizes[0]
    scaled = Polynomial(((growing.terms[0][0] * scale, powers),))
    likely = _UpToFull(evidence.sizes[0], scaled, evidence.block or 1)
    own = Polynomial(((float(evidence.sizes[0]), (0,) * len(powers)),))
    return Model(likely, (own, growing), is_borne_out=False)


def capped(model: Model, evidence: Evidence) -> Model:
    """The model of a reduction that does not fill the card where it was seen, and at larger shapes may."""
    if not evidence.sizes[0] < evidence.full:
        return model
    likely, *others = (_UpToFull(evidence.full, law, evidence.block) for law in (model.likely, *model.others))
    return Model(likely, tuple(others), is_borne_out=model.is_borne_out)


def up_to_full(evidence: Evidence) -> Model | None:
    """The model of a reduction that grows in proportion to the shape until it fills the card; None where it is none."""
    most = evidence.full
    rows = [row for row, size in enumerate(evidence.sizes) if size < most]
    if not rows:
        return None
    pairs = [*zip(evidence.points, evidence.sizes, strict=True)]
    for degree in dict.fromkeys((evidence.hint.low, evidence.hint.degree, evidence.hint.high)):
        law = _UpToFull(most, proportional(evidence, rows[0], degree), evidence.block)
        if all(abs(law.at(point) - size) <= max(evidence.block, NEARLY * size) for point, size in pairs):
            return Model(law, ())
    return None


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


def blocks_of(recording: Recording) -> tuple[IntArray, IntArray]:
    """int64[requests] each: bytes of one block of a reduction, and of as many as the card runs at once; 0: it is none.

    Where nothing tells the card, it is one of those that have most multiprocessors.
    """
    size = recording.program.size
    block, full = np.zeros(len(size), np.int64), np.zeros(len(size), np.int64)
    each, parts = _each(size)
    counts = _multiprocessors(recording.study)
    added = made_to_add_up(recording.program) & (each > 0) & (size % np.maximum(each, 1) == 0)
    filling = [count for count in counts if (added & (size == each * _at_once(count, parts))).any()]
    most = each * _at_once(max(filling or counts, default=0), parts)
    rows = added & (size <= most)
    block[rows], full[rows] = each[rows], most[rows]
    return block, full


def _fills_card(recording: Recording) -> BoolArray:
    size = recording.program.size
    each, parts = _each(size)
    full = np.zeros(len(size), np.bool_)
    for count in _multiprocessors(recording.study):
        full |= size == each * _at_once(count, parts)
    return np.asarray(made_to_add_up(recording.program) & full & (size > 0))


def _each(size: IntArray) -> tuple[IntArray, IntArray]:
    """int64[requests] each: bytes of one block of a reduction to what was made before, and how many parts that has."""
    sums = np.append(0, size[:-1]) // ITEM
    return ITEM * SUMS * sums, np.maximum(-(-sums // SUMS), 1)


def _at_once(count: int, parts: IntArray) -> IntArray:
    """int64[requests]: how many blocks to each of `parts` so many multiprocessors run at once."""
    return -(-BLOCKS * count // parts)


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
