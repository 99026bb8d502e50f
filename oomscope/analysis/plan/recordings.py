"""A recorded run as a plan needs it: its requests in order, where each comes from, and the shape it was made at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from posixpath import commonpath

import numpy as np

from oomscope.allocator.program import Op, Program
from oomscope.analysis.plan.alignment import UNFRAMED
from oomscope.analysis.plan.inference import batch_of
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.whatif.extraction import by_request
from oomscope.analysis.whatif.preparation import Subject, prepared
from oomscope.errors import RequestError
from oomscope.frozen import frozen
from oomscope.model import NO_STACK, Action, BoolArray, Frame, FrameKind, IntArray, frame_kind, package_path

Shape = Mapping[str, int]


@frozen
class Unit:
    """Requests that were made at one shape: a step, or what stands before the first one.

    Attributes:
        begin, end: the first request and the one behind the last.
        shape: what is known of it.
        step: the number of the step; -1 for what stands before the first.
    """

    begin: int
    end: int
    shape: Shape
    step: int


@frozen(eq=False)
class Recording:
    """One recorded run.

    Attributes:
        name: its file.
        study: of the device.
        subject: its program, checked against the recording.
        program: what is scaled and replayed; what the recording found in place comes first.
        key: int64[requests], the same number for the same stack in all recordings, `UNFRAMED` without frames.
        at_once: bool[requests], whether it is given back before anything else is done, as a workspace is.
        units: in order, without gaps.
        shapes: the distinct shapes of its steps.
        inferred: how many tensors told the batch; 0 where the shape was told or noted.
    """

    name: str
    study: DeviceStudy
    subject: Subject
    program: Program
    key: IntArray
    at_once: BoolArray
    units: tuple[Unit, ...]
    shapes: tuple[Shape, ...]
    inferred: int = 0

    @property
    def ends_early(self) -> bool:
        """Whether a request that failed is among its last entries, so that the program may not have gone on."""
        trace = self.study.history.trace
        ooms, allocations = trace.entries(Action.OOM), trace.entries(Action.ALLOC)
        if not len(ooms):
            return False
        boundaries = self.study.steps.boundaries
        last_step = boundaries[-1] if boundaries else 0
        return bool(ooms[-1] >= last_step) or int(np.count_nonzero(allocations > ooms[-1])) == 0


class StackKeys:
    """Numbers for stacks that are the same in all recordings, also where each run was made in a folder of its own."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[tuple[str, int, str], ...], int] = {}
        self._own: set[str] = set()

    def of(self, study: DeviceStudy) -> IntArray:
        """int64[stacks + 1]: the number of each stack of a snapshot; the last one is that of `NO_STACK`."""
        stacks = study.snapshot.stacks
        own = {frame.filename for frame in stacks.frames if frame_kind(frame.filename) is FrameKind.OWN}
        moved = _moved(own, self._own)
        self._own |= own
        told = [_told(frame, moved) for frame in stacks.frames]
        numbers = np.full(len(stacks) + 1, UNFRAMED, np.int64)
        for stack in range(len(stacks)):
            members = stacks.members[stacks.offsets[stack] : stacks.offsets[stack + 1]].tolist()
            frames = tuple(one for member in members if (one := told[member]) is not None)
            if frames:
                numbers[stack] = self._numbers.setdefault(frames, len(self._numbers))
        return numbers


def _moved(own: set[str], known: set[str]) -> tuple[str, str] | None:
    """The folder of a program's `own` files, and that of the same program in recordings before; None: it is the same.

    What both have in one place, such as what started the program, tells nothing.
    """
    here, there = own - known, known - own
    if not here or not there:
        return None
    folders = [commonpath([str(PurePosixPath(one).parent) for one in files]) for files in (here, there)]
    same = {_within(one, folders[0]) for one in here} & {_within(one, folders[1]) for one in there}
    return (folders[0], folders[1]) if same else None


def _within(file: str, folder: str) -> str:
    return file.removeprefix(folder)


def _told(frame: Frame, moved: tuple[str, str] | None) -> tuple[str, int, str] | None:
    """A Python frame so that two machines, or two folders, agree on it; None for C++."""
    kind, file = frame_kind(frame.filename), frame.filename
    if kind is FrameKind.CPP:
        return None
    if moved is not None and kind is FrameKind.OWN and file.startswith(moved[0]):
        file = moved[1] + _within(file, moved[0])
    return package_path(file) or file, frame.line, frame.name


def made_ready(name: str, study: DeviceStudy, at: Shape | None, keys: StackKeys) -> Recording:
    """A recording, made ready.

    Args:
        name: its file, for messages.
        study: of the device.
        at: the shape that all of it was run at; None: what the recording itself knows.
        keys: shared by all recordings of a plan.

    Raises:
        RequestError: its replay departs from it, or no shape is known.
    """
    subject = prepared(study)
    if not subject.check.exact:
        raise RequestError(
            f"{name}: replaying it does not reproduce what was recorded, so nothing can be predicted from it; "
            "`oomscope whatif` says where it departs."
        )
    program = subject.extraction.program.replaced_compactly()
    if not np.any(program.op == Op.MALLOC):
        raise RequestError(f"{name}: the trace has no allocation; record it with history from the start.")
    inferred = 0
    if at is None and not any(step.shape for step in study.snapshot.recorded.steps):
        batch, inferred = batch_of(study)
        at = {"batch": batch} if inferred else None
    units = _units(name, study, subject, at)
    shapes = tuple(dict(items) for items in dict.fromkeys(tuple(unit.shape.items()) for unit in units if unit.shape))
    stack = by_request(study.history.lifetimes.stack.astype(np.int64), subject.extraction.row, NO_STACK)
    refused = subject.extraction.row < 0
    trace = study.history.trace
    stack[refused] = trace.stack[trace.entries(Action.OOM)]
    key, at_once = keys.of(study)[stack], given_back_at_once(program)
    return Recording(name, study, subject, program, key, at_once, units, shapes, inferred)


def given_back_at_once(program: Program) -> BoolArray:
    """bool[requests]: which are followed directly by their own free."""
    found = np.zeros(program.requests, np.bool_)
    op, argument = program.op, program.argument
    if len(op) > 1:
        free = (op[1:] == Op.FREE) | (op[1:] == Op.FREE_REQUESTED)
        found[argument[:-1][(op[:-1] == Op.MALLOC) & free & (argument[:-1] == argument[1:])]] = True
    found[argument[op == Op.TRY_MALLOC]] = False
    return found


def given_back(program: Program) -> BoolArray:
    """bool[requests]: which are freed before the recording ends."""
    found = np.zeros(program.requests, np.bool_)
    found[program.argument[(program.op == Op.FREE) | (program.op == Op.FREE_REQUESTED)]] = True
    return found


def _units(name: str, study: DeviceStudy, subject: Subject, at: Shape | None) -> tuple[Unit, ...]:
    """The steps, and what stands before them, by the numbers of their requests."""
    made = _made_at(study, subject)
    begins = np.searchsorted(made, np.array(study.steps.boundaries, np.int64)).tolist()
    shapes: list[Shape] = [at or {}] * len(begins)
    if at is None:
        shapes = _recorded_shapes(name, study)
    edges = [*begins, len(made)]
    units = [Unit(0, edges[0], at or {}, -1)]
    units += [
        Unit(begin, end, shape, step)
        for step, (begin, end, shape) in enumerate(zip(edges[:-1], edges[1:], shapes, strict=True))
    ]
    return tuple(unit for unit in units if unit.end > unit.begin)


def _made_at(study: DeviceStudy, subject: Subject) -> IntArray:
    """int64[requests]: the entry at which each was made; ascending."""
    row = subject.extraction.row
    made = by_request(study.history.lifetimes.born, row)
    made[row < 0] = study.history.trace.entries(Action.OOM)
    return made


def _recorded_shapes(name: str, study: DeviceStudy) -> list[Shape]:
    """The shape of each step, as the recording has it."""
    trace = study.history.trace
    clock = np.maximum.accumulate(trace.time_us) if trace.timed else np.zeros(0, np.int64)
    known: dict[int, Shape] = {}
    for step in study.snapshot.recorded.steps:
        shape = {str(key): int(value) for key, value in step.shape.items() if _is_count(value)}
        if shape:
            known[int(np.searchsorted(clock, step.begin_us, side="left"))] = shape
    if not known:
        raise RequestError(
            f"{name}: the recording does not say at which shape it ran; tell it with --at, such as "
            "--at batch=8,seq=512, or record with recording.step(batch=8, seq=512)."
        )
    return [known.get(begin, {}) for begin in study.steps.boundaries]


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def nearest(shapes: Sequence[Shape], target: Shape) -> int:
    """The number of the shape that is nearest to `target` by the ratio of each value."""

    def distance(shape: Shape) -> float:
        ratios = [target[name] / shape[name] for name in target if shape.get(name)]
        return sum(abs(float(np.log(ratio))) for ratio in ratios)

    return min(range(len(shapes)), key=lambda number: distance(shapes[number]))
