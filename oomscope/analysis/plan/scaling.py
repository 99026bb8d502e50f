"""A recording at another shape: every request with the size that its model gives, in the recorded order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from oomscope.allocator.program import Program
from oomscope.analysis.plan.alignment import Stretch, align
from oomscope.analysis.plan.by_data import Decided, decided
from oomscope.analysis.plan.growth.padded_windows import in_padded_windows
from oomscope.analysis.plan.growth.polynomials import Evidence, Hint, Model
from oomscope.analysis.plan.growth.reductions import blocks_of
from oomscope.analysis.plan.growth.size_models import fit
from oomscope.analysis.plan.growth.steps import Stepped, in_steps
from oomscope.analysis.plan.growth.workspace_models import LEAST_SHAPES
from oomscope.analysis.plan.kinds import LENGTH, SIDE, kind_of
from oomscope.analysis.plan.loops import by_items, of_one_size
from oomscope.analysis.plan.recordings import Recording, Shape, Unit, given_back
from oomscope.analysis.plan.requests.facts import LEAST_WORKSPACE
from oomscope.analysis.plan.requests.hints import hints
from oomscope.analysis.plan.requests.window_stages import WindowStages, window_stages
from oomscope.analysis.plan.requests.windows import padding
from oomscope.frozen import frozen
from oomscope.model import BoolArray, IntArray
from oomscope.model.arrays import FloatArray
from oomscope.model.ordering import among

LIKELY, LEAST, MOST = range(3)
_UNSEEN = -1
_THOUSAND = 1000
VOLUME = 3
"""The degree of a side."""


@frozen(eq=False)
class Scaled:
    """A recording whose requests have models.

    Attributes:
        recording: whose order of requests and frees is replayed.
        models: the distinct ones.
        which: int64[requests], the model of each; -1: of a fixed size.
        matched: bool[requests], which were found at another shape too, or could be: see `is_alone`.
        value: int64[requests, parameters], the shape that each was made at; 0: not known.
        degree: int64[requests, parameters], how each grows by what it is.
        carried: bool[requests, parameters], whether its size tells how it grows with each: see `hints`.
        copies: bool[requests], the workspaces of kernels.
        workspace: bool[requests], those of them whose size no recording bears out.
        changing: bool[requests], those of them that too few shapes bear out to tell what they are at a smaller one.
        by_data: bool[requests], those that another step of the same shape made in another size.
        varied: the parameters that differ between the shapes that were seen.
        windows: which of an image each request may lie in, where its side is in whole windows.
    """

    recording: Recording
    parameters: tuple[str, ...]
    models: tuple[Model, ...]
    which: IntArray
    matched: BoolArray
    value: IntArray
    degree: IntArray
    carried: BoolArray
    copies: BoolArray
    workspace: BoolArray
    changing: BoolArray
    by_data: BoolArray
    varied: tuple[str, ...]
    windows: WindowStages | None = None

    def sizes(self, shape: Shape) -> tuple[IntArray, IntArray, IntArray]:
        """int64[requests] each: bytes at `shape`: likely, least, most."""
        point = tuple(float(shape[name]) for name in self.parameters)
        own = self.recording.program.size
        if self.recording.shapes == (shape,):
            return own, own, own
        spans = np.array([model.span(point) for model in self.models], np.int64).reshape(-1, 3)
        has_model = self.which >= 0
        columns = [np.where(has_model, spans[self.which, part], own) for part in range(3)] if len(spans) else [own] * 3
        if not self.in_steps:
            usual, most = self._padded(shape)
            columns[LIKELY] = self._grown(columns[LIKELY], usual)
            columns[MOST] = self._grown(columns[MOST], most)
        return columns[LIKELY], columns[LEAST], columns[MOST]

    def _padded(self, shape: Shape) -> tuple[FloatArray, FloatArray]:
        """float64[requests] or a number: how many times as large windows make what grows with a side; at most."""
        if self.windows is not None:
            times = self.windows.padded(shape[self.windows.side])
            return 1 + self.windows.inside * (times - 1), times
        tensors, recorded = self.recording.study.snapshot.recorded.tensors, self.recording.shapes
        sides = [name for name in self.parameters if kind_of(name) == SIDE]
        share = max((padding(tensors, {one[name] for one in recorded}, shape[name]) for name in sides), default=0.0)
        # About half of what a block makes lies in windows.
        return np.array(1 + share / 2), np.array(1 + share)

    def _grown(self, size: IntArray, times: FloatArray) -> IntArray:
        """`size` with more of what grows with the side of an image."""
        sides = [axis for axis, name in enumerate(self.parameters) if kind_of(name) == SIDE]
        grows = (self.degree[:, sides] > 0).any(axis=1)
        return np.where(grows, np.round(size * times), size).astype(np.int64)

    @property
    def in_steps(self) -> bool:
        """Whether something grows in steps, as what is padded."""
        return any(isinstance(model.likely, Stepped) for model in self.models)

    @property
    def of_volumes(self) -> bool:
        """Whether something grows with the cube of a side."""
        return bool((self.degree >= VOLUME).any())

    def in_proportion(self, shape: Shape) -> IntArray:
        """int64[requests]: the recorded sizes, grown as what each request is suggests."""
        size = self.recording.program.size.astype(np.float64)
        for axis, name in enumerate(self.parameters):
            own = np.maximum(self.value[:, axis], 1)
            size *= np.where(self.value[:, axis] > 0, shape[name] / own, 1.0) ** self.degree[:, axis]
        return np.maximum(np.round(size), 1).astype(np.int64)

    def program(self, size: IntArray) -> Program:
        """The recorded program with other sizes."""
        return replace(self.recording.program, size=size)


def scaled(recording: Recording, others: Sequence[Recording], parameters: Sequence[str]) -> Scaled:
    """Models for all requests of `recording`, from its own steps of other shapes and from `others`."""
    columns = _seen_elsewhere(recording, others, parameters)
    count = recording.program.requests
    size = recording.program.size
    value = _values(recording, parameters)
    told = hints(recording, parameters)
    seen = np.stack([column for _, column in columns], axis=1) if columns else np.zeros((count, 0), np.int64)
    has_shape = np.all(value > 0, axis=1)
    data = _decided_by_data(recording, parameters)
    spread = np.ceil(data.spread * _THOUSAND).astype(np.int64)
    flags = [recording.at_once, told.of_rows, data.rows, data.nudged, spread, told.filled_by, *blocks_of(recording)]
    degree = _squared(told.degree, parameters, data)
    rows = np.concatenate([size[:, None], value, seen, degree, told.low, told.high], axis=1)
    rows = np.concatenate([rows, np.stack(flags, axis=1)], axis=1)
    known = np.flatnonzero(has_shape)
    distinct, inverse = np.unique(rows[known], axis=0, return_inverse=True)
    which = np.full(count, -1, np.int64)
    which[known] = inverse.reshape(-1)
    points = [point for point, _ in columns]
    usual = _usual(size, value, seen, points)
    evidence = [_evidence(row, points, len(parameters), usual) for row in distinct.tolist()]
    models = in_steps([fit(one) for one in evidence], evidence, _lines(recording, which, len(evidence)), parameters)
    models = in_padded_windows(models, evidence, recording, columns, parameters)
    comparable = _comparable(recording, columns)
    matched = np.any(seen != _UNSEEN, axis=1) | ~comparable
    copies = workspaces(recording)
    unsure = np.array([not model.is_borne_out for model in models] + [False])[which] | ~matched
    workspace = copies & unsure if columns else copies
    shapes = [shape for one in (recording, *others) for shape in one.shapes]
    varied = tuple(name for name in parameters if len({shape.get(name) for shape in shapes}) > 1)
    return Scaled(
        recording=recording,
        parameters=tuple(parameters),
        models=tuple(models),
        which=which,
        matched=matched,
        value=value,
        degree=degree,
        carried=told.carried,
        copies=copies,
        workspace=workspace,
        changing=workspace if 1 + len(columns) >= LEAST_SHAPES else copies,
        by_data=data.rows,
        varied=varied,
        windows=_windows(recording, shapes),
    )


def _squared(degree: IntArray, parameters: Sequence[str], data: Decided) -> IntArray:
    """int64[requests, parameters]: with twice the degree of a length or side for what changes with its square."""
    found: IntArray = degree.copy()
    for axis, name in enumerate(parameters):
        if kind_of(name, parameters) in (LENGTH, SIDE):
            usual = int(np.median(degree[data.rows & ~data.squared, axis])) if data.rows.any() else 0
            found[data.rows & data.squared, axis] = np.maximum(degree[data.rows & data.squared, axis], 2 * usual)
    return found


def _windows(recording: Recording, shapes: Sequence[Shape]) -> WindowStages | None:
    """The windows of a recording, where they divide every recorded side: what is padded there has grown already."""
    found = window_stages(recording)
    if found is None or any(
        shape.get(found.side, 1) % int(width) for shape in shapes for width in np.unique(found.width)
    ):
        return None
    return found


def workspaces(recording: Recording) -> BoolArray:
    """What is given back at once, is large, and is not as large as any tensor."""
    size = recording.program.size
    found: BoolArray = recording.at_once & (size >= LEAST_WORKSPACE) & ~among(size, size[~recording.at_once])
    return found


def _lines(recording: Recording, which: IntArray, count: int) -> list[IntArray]:
    """For each model, the lines that make what it is of; not that of the backward, which makes all gradients."""
    found: list[set[int]] = [set() for _ in range(count)]
    for model, line in np.unique(np.stack([which, recording.key], axis=1)[which >= 0], axis=0).tolist():
        found[model].add(line)
    return [np.array(sorted(lines - {_UNSEEN}), np.int64) for lines in found]


def _evidence(row: list[int], points: Sequence[tuple[float, ...]], width: int, usual: tuple[int, ...]) -> Evidence:
    size, own, seen = row[0], tuple(map(float, row[1 : 1 + width])), row[1 + width : 1 + width + len(points)]
    *degrees, at_once, of_rows, by_data, nudged, spread, filled_by, block, full = row[1 + width + len(points) :]
    hint = Hint(*(tuple(degrees[part * width : (part + 1) * width]) for part in range(3)))
    found = [(point, there) for point, there in zip(points, seen, strict=True) if there != _UNSEEN]
    return Evidence(
        points=(own, *(point for point, _ in found)),
        sizes=(size, *(there for _, there in found)),
        hint=hint,
        at_once=bool(at_once),
        of_rows=bool(of_rows),
        filled_by=filled_by,
        block=block,
        full=full,
        usual=usual,
        by_data=bool(by_data),
        nudged=bool(nudged),
        spread=spread / _THOUSAND,
    )


def _usual(size: IntArray, value: IntArray, seen: IntArray, points: Sequence[tuple[float, ...]]) -> tuple[int, ...]:
    """For each parameter, whether most of the bytes that grow with it do so linearly (1) or with its square (2)."""
    width = value.shape[1]
    result = []
    for axis in range(width):
        bytes_of = {1: 0.0, 2: 0.0}
        for column, point in enumerate(points):
            there = seen[:, column]
            ratio = point[axis] / np.maximum(value[:, axis], 1)
            only = np.all(np.delete(value, axis, 1) == np.delete(np.array(point), axis)[None, :], axis=1)
            for degree in bytes_of:
                exact = only & (there > 0) & (ratio != 1) & (np.abs(size * ratio**degree - there) <= 8)
                bytes_of[degree] += float(size[exact].sum())
        result.append(2 if bytes_of[2] > bytes_of[1] else 1)
    return tuple(result)


def _values(recording: Recording, parameters: Sequence[str]) -> IntArray:
    value = np.zeros((recording.program.requests, len(parameters)), np.int64)
    for unit in recording.units:
        value[unit.begin : unit.end] = [unit.shape.get(name, 0) for name in parameters]
    return value


def _comparable(recording: Recording, columns: Sequence[object]) -> BoolArray:
    """Which requests another shape could have had.

    A recording of several shapes made the others before its steps, or once and for all in the first one.
    """
    found = np.full(recording.program.requests, bool(columns))
    for unit in recording.units:
        if not unit.shape:
            found[unit.begin : unit.end] = False
        elif unit.step == 0 and len(recording.shapes) > 1:
            found[unit.begin : unit.end] &= given_back(recording.program)[unit.begin : unit.end]
    return found


def _seen_elsewhere(
    recording: Recording, others: Sequence[Recording], parameters: Sequence[str]
) -> list[tuple[tuple[float, ...], IntArray]]:
    """For each other shape its point, and int64[requests]: the size of each request there, -1 where it has no like."""
    columns = []
    for other in (recording, *others):
        for shape in other.shapes:
            if other is recording and len(recording.shapes) == 1:
                continue
            size = np.full(recording.program.requests, _UNSEEN, np.int64)
            for unit in recording.units:
                if other is recording and unit.shape == shape:
                    continue
                like = _like(unit, [one for one in other.units if one.shape == shape])
                if like is not None:
                    size[unit.begin : unit.end] = _sizes_of_likes(recording, unit, other, like, parameters)
            columns.append((tuple(float(shape.get(name, 0)) for name in parameters), size))
    return columns


def _like(unit: Unit, units: Sequence[Unit]) -> Unit | None:
    """The unit to compare with: what stands before the steps, the step of the same number, else the last whole one.

    A run that failed in its first step has nothing but what stands before the end of that one.
    """
    same = [one for one in units if one.step == unit.step]
    if same:
        return same[0]
    if unit.step < 0:
        return None
    steps = [one for one in units if one.step > 0] or [one for one in units if one.step >= 0]
    return steps[-2] if len(steps) > 1 else next(iter(steps or units), None)


def _decided_by_data(recording: Recording, parameters: Sequence[str]) -> Decided:
    """What another step of the same shape made in another size."""
    elsewhere = np.full(recording.program.requests, _UNSEEN, np.int64)
    for unit in recording.units:
        same = [one for one in recording.units if one.step >= 0 and one.shape == unit.shape and one is not unit]
        if unit.step >= 0 and unit.shape and same:
            nearest = min(same, key=lambda one: abs(one.step - unit.step))
            elsewhere[unit.begin : unit.end] = _sizes_of_likes(recording, unit, recording, nearest, parameters)
    return decided(recording, np.where(elsewhere == _UNSEEN, recording.program.size, elsewhere))


def _sizes_of_likes(
    recording: Recording, unit: Unit, other: Recording, like: Unit, parameters: Sequence[str]
) -> IntArray:
    mine, theirs = slice(unit.begin, unit.end), slice(like.begin, like.end)
    pairs = [(unit.shape.get(name, 0), like.shape.get(name, 0)) for name in parameters]
    ratios = sorted({there / here for here, there in pairs if here and there and here != there})
    partner = align(_stretch(recording, mine), _stretch(other, theirs), ratios)
    size = np.full(unit.end - unit.begin, _UNSEEN, np.int64)
    found = partner >= 0
    size[found] = other.program.size[theirs][partner[found]]
    times = by_items(recording, unit, other, like)
    looped = of_one_size(recording, unit, times, size)
    size[looped] = np.round(recording.program.size[mine][looped] * times[looped])
    return size


def _stretch(recording: Recording, part: slice) -> Stretch:
    return Stretch(recording.key[part], recording.program.size[part], recording.at_once[part])
