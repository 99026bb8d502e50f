"""Which frames of a stack belong to the script: those that can hold a loop over batches.

The *script* is what lies outside every Module's call and is written in Python by the reader or a library, but not by
torch itself. What runs below a Module's call, be it ``model(x)`` or ``model.forward(x)``, goes through layers or time
steps; what an optimizer or a constructor does goes through parameters. One frame below a Module's call is kept all the
same, the first in which the stacks of that call differ: where its lines start again, the model was called again.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict

import numpy as np

from oomscope.analysis.attribution.sites import is_script
from oomscope.frozen import frozen
from oomscope.model import BoolArray, Frame, FrameKind, IntArray, StackTable, frame_kind
from oomscope.model.arrays import StackArray

MODULE = -1
"""Stands in a path where a Module is called."""
OTHER, MAIN, THREAD = range(3)
"""Whose a stack is: that of the autograd engine or of a hook, of the main thread, or of a thread of the program."""

_DROPPED, _SCRIPT, _MODULE_CALL, _BARRIER, _CONTAINER, _TORCH, _OPTIMIZER = range(7)
_CALLS = {"_call_impl", "_wrapped_call_impl", "__call__"}
_CONSTRUCTOR = "__init__"
_FORWARD = "forward"
"""What a Module does when it is called, and what some programs call by its name. Nobody loops over batches in it."""
_MODULE_FILE = re.compile(r"torch/nn/modules/module\.py$")
_BARRIER_FILE = re.compile(
    r"torch/(autograd/(__init__|graph|function)\.py|_dynamo/|_inductor/|_functorch/)|torchinductor_"
)
"""Below a backward and in compiled code nothing of the script runs."""
_OPTIMIZER_FILE = re.compile(r"torch/optim/optimizer\.py$")
"""Every optimizer's ``step`` is called through it, a reader's own as well."""
_CONTAINER_FILE = re.compile(r"torch/nn/modules/container\.py$")
_ONE_CALL_FILE = re.compile(r"torch/(functional|_tensor|nn/functional)\.py$")
"""Functions of torch that make a tensor for their caller and hold no loop over anything."""
_RUNNER_FILE = re.compile(r"(^|/)(threading\.py|concurrent/futures/thread\.py|asyncio/events\.py)$")
"""What runs several calls of the program in turn or at once."""
_THREAD_FILE = re.compile(r"(^|/)threading\.py$")


@frozen(eq=False)
class ScriptStacks:
    """The script's part of every stack.

    Attributes:
        frames: one frame for each location.
        line: int64[locations].
        function: int64[locations], the same number for all lines of one function.
        is_script: bool[locations], whether the line is one of the script's, not one of torch's.
        path_of: int64[stacks], which path.
        maker_of: int64[stacks], which path, where all below the first constructor is left out.
        paths: locations from the outermost call inwards, then `MODULE` where a Module is called, else the function of
            torch that is called, where it is one.
        wrapped: bool[paths], whether a call of another Module lies between `MODULE` and the location after it.
        alone: bool[stacks], whether the allocation is made by the script's own line, and by no loop within torch.
        thread: int64[stacks], `OTHER`, `MAIN` or `THREAD`.
        task: int64[stacks], the outermost location of the script in the call that a thread or an event loop runs, -1
            where it is run by neither.
    """

    frames: tuple[Frame, ...]
    line: IntArray
    function: IntArray
    is_script: BoolArray
    path_of: IntArray
    maker_of: IntArray
    paths: tuple[tuple[int, ...], ...]
    wrapped: BoolArray
    alone: BoolArray
    thread: IntArray
    task: IntArray

    def lines_on(self, path: tuple[int, ...]) -> tuple[int, ...]:
        """The script's own locations on a path, down to a Module's call or to the function of torch that is called."""
        above = path[: path.index(MODULE)] if MODULE in path else path
        return tuple(place for place in above if self.is_script[place])

    @property
    def calls_modules(self) -> bool:
        """Whether any Module is called; a model may as well be made of plain functions."""
        return any(MODULE in path for path in self.paths)


def find_script(stacks: StackTable) -> ScriptStacks:
    """The script's part of every stack: one look at each distinct frame, then columns."""
    count = len(stacks)
    kind = np.array([_kind(frame) for frame in stacks.frames], np.int64)[stacks.members]
    location, frames = _locations(stacks)
    members = location[stacks.members]
    position, owner = np.arange(len(kind)), np.repeat(np.arange(count), np.diff(stacks.offsets))
    barrier = np.full(count, -1, np.int64)
    forward = _forwards(frames)[members] & (kind == _SCRIPT)
    walls = np.flatnonzero((kind == _MODULE_CALL) | (kind == _BARRIER) | forward)
    barrier[owner[walls]] = position[walls]
    calls_module = (barrier >= 0) & (kind[np.maximum(barrier, 0)] != _BARRIER) if len(kind) else barrier >= 0
    # A closure may hold a whole step; else what runs in an optimizer goes through parameters.
    closure = np.zeros(count, np.bool_)
    closure[owner[np.array(["closure" in frame.name for frame in stacks.frames], np.bool_)[stacks.members]]] = True
    steps = np.flatnonzero((kind == _OPTIMIZER) & (barrier[owner] < 0) & ~closure[owner])
    barrier[owner[steps]] = position[steps]
    mine = (kind == _SCRIPT) & (position > barrier[owner])
    above = _lists(mine, members, owner, count)
    inside = ((kind == _SCRIPT) | (kind == _CONTAINER)) & (position <= barrier[owner]) & calls_module[owner]
    below = _lists(inside, members, owner, count)
    callee = _callees(kind, mine, members, position, owner, count, _functions(frames))
    telling, wrapped = _model_frames(above, below, calls_module)
    numbers: dict[tuple[tuple[int, ...], bool], int] = {}
    path_of, maker_of = np.empty(count, np.int64), np.empty(count, np.int64)
    makes = [frame.name.rpartition(".")[2] == _CONSTRUCTOR for frame in frames]
    for stack, (path, called) in enumerate(zip(above, calls_module.tolist(), strict=True)):
        whole = (*path, MODULE, *telling[stack]) if called else (*path, *callee[stack])
        maker = tuple(itertools.takewhile(lambda place: not makes[place], path))
        path_of[stack] = numbers.setdefault((whole, bool(wrapped[stack])), len(numbers))
        maker_of[stack] = numbers.setdefault((maker, False), len(numbers))
    return ScriptStacks(
        frames=frames,
        line=np.array([frame.line % (1 << 31) for frame in frames], np.int64),
        function=_functions(frames),
        is_script=np.array([_kind(frame) == _SCRIPT for frame in frames], np.bool_),
        path_of=path_of,
        maker_of=maker_of,
        paths=tuple(path for path, _ in numbers),
        wrapped=np.array([is_wrapped for _, is_wrapped in numbers], np.bool_),
        alone=_alone(stacks, kind, barrier, position, owner),
        thread=_threads(stacks, position, owner),
        task=_tasks(stacks, kind, members, position, owner),
    )


def _kind(frame: Frame) -> int:
    path = frame.filename.replace("\\", "/")
    if _MODULE_FILE.search(path) and frame.name.rpartition(".")[2] in _CALLS:
        return _MODULE_CALL
    if _CONTAINER_FILE.search(path) and frame.name.rpartition(".")[2] == "forward":
        return _CONTAINER
    if frame_kind(frame.filename) == FrameKind.TORCH:
        if _BARRIER_FILE.search(path):
            return _BARRIER
        return _OPTIMIZER if _OPTIMIZER_FILE.search(path) else _TORCH
    return _SCRIPT if is_script(frame) else _DROPPED


def _locations(stacks: StackTable) -> tuple[StackArray, tuple[Frame, ...]]:
    """The location of each frame, without what else was recorded of it, and one frame for each."""
    number: dict[tuple[str, int, str], int] = {}
    location = np.empty(len(stacks.frames), np.int32)
    frames: list[Frame] = []
    for index, frame in enumerate(stacks.frames):
        place = number.setdefault((frame.filename, frame.line, frame.name), len(number))
        if place == len(frames):
            frames.append(frame)
        location[index] = place
    return location, tuple(frames)


def _forwards(frames: tuple[Frame, ...]) -> BoolArray:
    return np.array([frame.name.rpartition(".")[2] == _FORWARD for frame in frames], np.bool_)


def _functions(frames: tuple[Frame, ...]) -> IntArray:
    number: dict[tuple[str, str], int] = {}
    return np.array([number.setdefault((frame.filename, frame.name), len(number)) for frame in frames], np.int64)


def _lists(chosen: BoolArray, members: StackArray, owner: IntArray, count: int) -> list[tuple[int, ...]]:
    """The chosen members of each stack, outermost first."""
    rows = np.flatnonzero(chosen)
    ends = np.searchsorted(owner[rows], np.arange(count + 1))
    values = members[rows].tolist()
    return [tuple(values[ends[one] : ends[one + 1]][::-1]) for one in range(count)]


def _callees(
    kind: IntArray,
    mine: BoolArray,
    members: StackArray,
    position: IntArray,
    owner: IntArray,
    count: int,
    function: IntArray,
) -> list[tuple[int, ...]]:
    """For each stack, one location of the function of torch that the script's innermost line calls; empty for none."""
    first: dict[int, int] = {}
    one_of = np.array([first.setdefault(number, place) for place, number in enumerate(function.tolist())], np.int64)
    innermost = np.full(count, -1, np.int64)
    rows = np.flatnonzero(mine)
    innermost[owner[rows][::-1]] = position[rows][::-1]
    inside = (kind != _DROPPED) & (position < innermost[owner])
    called = _lists(inside, members, owner, count)
    return [(int(one_of[path[0]]),) if path else () for path in called]


def _model_frames(
    above: list[tuple[int, ...]], below: list[tuple[int, ...]], called: BoolArray
) -> tuple[dict[int, tuple[int, ...]], BoolArray]:
    """For each stack below a Module's call, the first frame in which stacks of that call differ (one or none)."""
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for stack in np.flatnonzero(called).tolist():
        groups[above[stack]].append(stack)
    telling: dict[int, tuple[int, ...]] = {}
    wrapped = np.zeros(len(above), np.bool_)
    for same in groups.values():
        level, paths = 0, {below[stack] for stack in same}
        while len({path[level : level + 1] for path in paths}) == 1 and any(len(path) > level + 1 for path in paths):
            level += 1
        for stack in same:
            telling[stack] = below[stack][level : level + 1]
            wrapped[stack] = level > 0
    return telling, wrapped


def _alone(stacks: StackTable, kind: IntArray, barrier: IntArray, position: IntArray, owner: IntArray) -> BoolArray:
    """Stacks that hold nothing of torch, seen from the script, but functions that make one tensor."""
    count = len(stacks)
    loops = [
        frame_kind(frame.filename) == FrameKind.TORCH and not _ONE_CALL_FILE.search(frame.filename)
        for frame in stacks.frames
    ]
    innermost = np.full(count, -1, np.int64)
    script = np.flatnonzero(kind == _SCRIPT)
    innermost[owner[script][::-1]] = position[script][::-1]
    alone = (innermost >= 0) & (barrier < 0)
    alone[owner[np.array(loops, np.bool_)[stacks.members] & (position < innermost[owner])]] = False
    return np.asarray(alone)


def _threads(stacks: StackTable, position: IntArray, owner: IntArray) -> IntArray:
    """Whose each stack is, by its outermost frame. Of several roots outside threads the most used is the main."""
    whose = np.zeros(len(stacks), np.int64)
    python = np.array([frame_kind(frame.filename) != FrameKind.CPP for frame in stacks.frames], np.bool_)[
        stacks.members
    ]
    root = np.full(len(stacks), -1, np.int64)
    root[owner[python]] = stacks.members[position[python]]
    votes: dict[tuple[str, str], list[int]] = defaultdict(list)
    for stack, member in enumerate(root.tolist()):
        if member < 0:
            continue
        frame = stacks.frames[member]
        if _THREAD_FILE.search(frame.filename.replace("\\", "/")):
            whose[stack] = THREAD
        elif frame_kind(frame.filename) != FrameKind.TORCH or "torch/distributed/" in frame.filename:
            votes[frame.filename, frame.name].append(stack)
    if votes:
        main = max(votes, key=lambda root: (root[1] == "<module>" or "runpy" in root[0], len(votes[root])))
        whose[votes[main]] = MAIN
    return whose


def _tasks(stacks: StackTable, kind: IntArray, members: StackArray, position: IntArray, owner: IntArray) -> IntArray:
    """Where the call begins that a thread or an event loop runs: the script's first frame inside it."""
    runs = [bool(_RUNNER_FILE.search(frame.filename.replace("\\", "/"))) for frame in stacks.frames]
    rows = np.flatnonzero(np.array(runs, np.bool_)[stacks.members])
    runner = np.full(len(stacks), -1, np.int64)
    runner[owner[rows[::-1]]] = position[rows[::-1]]
    task = np.full(len(stacks), -1, np.int64)
    inside = np.flatnonzero((kind == _SCRIPT) & (position < runner[owner]))
    task[owner[inside]] = members[inside]
    return task
