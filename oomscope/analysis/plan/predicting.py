"""The peaks at one shape: the scaled program replayed, as likely and at both ends of what is possible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.limits import Limit
from oomscope.allocator.program import Op, Program
from oomscope.allocator.replay import Replay, Replayer
from oomscope.analysis.labels.kinds import ACTIVATION
from oomscope.analysis.labels.phases import OTHER
from oomscope.analysis.plan.recordings import Recording, Shape
from oomscope.analysis.plan.records import Estimate
from oomscope.analysis.plan.requests.facts import LEAST_WORKSPACE
from oomscope.analysis.plan.scaling import Scaled
from oomscope.analysis.records import CATEGORIES, PHASES
from oomscope.analysis.whatif.extraction import by_request
from oomscope.frozen import frozen
from oomscope.model import BoolArray, IntArray


@frozen
class _Margins:
    """Shares by which a prediction may be off beside what the replays span. Measured in docs/plan-quality.md."""

    allocated: float
    reserved: float


_RECORDED = _Margins(0.0, 0.0)
_BORNE_OUT = _Margins(0.002, 0.015)
"""Every size is: kernels add small blocks now and then."""
_ASSUMED = _Margins(0.01, 0.1)
"""A parameter was changed that no recording varies: a few bytes that are off decide whether something fits a hole."""
_WORKSPACES = _Margins(0.03, 0.11)
"""Workspaces are chosen anew at every shape, as those of convolutions are."""
_ASSUMED_WORKSPACES = _Margins(0.03, 0.16)
_STEPS = _Margins(0.01, 0.06)
"""Some sizes grow in steps and others do not, so that other ones fit into each other's holes."""
BY_DATA = 0.25
"""Of the peak: what may follow the data before reserved memory does."""
_DATA = _Margins(0.06, 0.1)
"""Much has another size in each step, as the data will have it."""
_BLOCK, _SEGMENT = 512, 2 << 20
"""Bytes to which the allocator rounds what it hands out, and what it reserves for a large request."""


@frozen
class Peaks:
    """What is predicted for a shape.

    Attributes:
        allocated, reserved: bytes.
        sizes: int64[requests], likely and most.
        workspaces: whether workspaces of unknown size take part.
    """

    allocated: Estimate
    reserved: Estimate
    likely: IntArray
    most: IntArray
    workspaces: bool


def predict(scaled: Scaled, shape: Shape, config: AllocatorConfig) -> Peaks:
    """The peaks of the scaled program without a limit."""
    likely, least, most = scaled.sizes(shape)
    as_recorded = np.array_equal(likely, scaled.recording.program.size)
    workspaces = bool(scaled.workspace.any()) and not as_recorded
    sizes = [likely, *(_other_workspaces(scaled, shape, likely) if workspaces else ())]
    central, ends = [_replayed(scaled, one, config) for one in sizes], list[Replay]()
    if not as_recorded:
        ends += [_replayed(scaled, one, config) for one in (least, most) if not np.array_equal(one, likely)]
    follows_data = not as_recorded and _follows_data(scaled)
    margins = _RECORDED if as_recorded else _margins(scaled, shape, follows_data=follows_data)
    hole = _segment(likely[scaled.copies]) if not as_recorded else 0
    allocated = _estimate(*_each("peak_allocated", central, ends), margins.allocated)
    reserved = _estimate(*_each("peak_reserved", central, ends), margins.reserved, hole)
    if _is_assumed(scaled, shape):
        reserved = _as_wide_as(reserved, allocated)
    if follows_data:
        reserved = Estimate(reserved.bytes, min(reserved.low, allocated.low), reserved.high)
    return Peaks(
        allocated=allocated,
        reserved=reserved,
        likely=likely,
        most=likely if as_recorded else most,
        workspaces=workspaces,
    )


def _each(peak: str, central: Sequence[Replay], ends: Sequence[Replay]) -> tuple[list[int], list[int]]:
    return [getattr(one, peak) for one in central], [getattr(one, peak) for one in ends]


def _margins(scaled: Scaled, shape: Shape, *, follows_data: bool) -> _Margins:
    """Those of another shape than the recorded one."""
    assumed = _is_assumed(scaled, shape)
    margins = _ASSUMED if assumed else _BORNE_OUT
    if scaled.copies.any():
        margins = _ASSUMED_WORKSPACES if assumed else _WORKSPACES
    elif scaled.in_steps:
        margins = _STEPS
    if follows_data:
        margins = _Margins(max(margins.allocated, _DATA.allocated), max(margins.reserved, _DATA.reserved))
    alone = unmatched_share(scaled)
    return _Margins(margins.allocated + alone, margins.reserved + alone)


def _is_assumed(scaled: Scaled, shape: Shape) -> bool:
    """Whether a parameter is other than it was in all recordings."""
    own = scaled.recording.shapes[-1]
    return any(shape[name] != own.get(name) for name in scaled.parameters if name not in scaled.varied)


def _follows_data(scaled: Scaled) -> bool:
    """Whether much of the recorded peak has another size in each step, as where a graph has edges.

    How well one fits into the holes of the other is then a matter of the data: all that is sure is what is allocated.
    """
    return _share_of_recorded_peak(scaled, scaled.by_data) >= BY_DATA


def unmatched_share(scaled: Scaled) -> float:
    """Of the bytes at the recorded peak, those that no other recording has."""
    return _share_of_recorded_peak(scaled, ~scaled.matched)


def untold_share(scaled: Scaled, parameter: str) -> float:
    """Of the bytes at the recorded peak, those whose sizes do not tell how they grow with a parameter."""
    return _share_of_recorded_peak(scaled, ~scaled.carried[:, scaled.parameters.index(parameter)])


def _share_of_recorded_peak(scaled: Scaled, rows: BoolArray) -> float:
    """What part of the bytes at the recorded peak these requests are."""
    size = scaled.recording.program.size
    live, _ = live_at_peak(scaled.recording.program, size)
    return float(size[live][rows[live]].sum()) / max(float(size[live].sum()), 1.0)


def slack(scaled: Scaled, shape: Shape, size: IntArray) -> int:
    """By how many bytes more may be allocated at `shape` than a replay with these sizes does."""
    if np.array_equal(size, scaled.recording.program.size):
        return 0
    live, _ = live_at_peak(scaled.recording.program, size)
    margins = _margins(scaled, shape, follows_data=_follows_data(scaled))
    return round(margins.allocated * float(size[live].sum()))


def _estimate(central: list[int], ends: list[int], margin: float, hole: int = 0) -> Estimate:
    """The mean of the replays that are equally likely; the range spans all, the margin, and the largest `hole`."""
    middle = round(sum(central) / len(central))
    low, high = min(*central, *ends, middle), max(*central, *ends, middle)
    room = max(round(middle * margin), hole)
    return Estimate(middle, max(min(low, middle - room), 0), max(high, middle + room))


def _as_wide_as(reserved: Estimate, allocated: Estimate) -> Estimate:
    """Reserved memory is no surer than what it is reserved for."""
    low = min(reserved.low, reserved.bytes - (allocated.bytes - allocated.low))
    return Estimate(reserved.bytes, low, max(reserved.high, reserved.bytes + allocated.high - allocated.bytes))


def _segment(workspaces: IntArray) -> int:
    """Bytes of the segment of the largest workspace: a hole that takes it or not is that much reserved memory."""
    return -(-int(workspaces.max(initial=0)) // _SEGMENT) * _SEGMENT


def _other_workspaces(scaled: Scaled, shape: Shape, likely: IntArray) -> list[IntArray]:
    """Sizes that are as likely, with other workspaces: what kernels take at another shape is not known.

    What depends on the kernel alone may be gone with it, and another kernel may take half of all. Kernels for images
    may even do without any copies where there is less to do, but not those that three shapes bear out; and those for
    volumes have none that can.
    """
    if scaled.of_volumes and not scaled.varied:
        return []
    unsure = scaled.workspace
    in_proportion = np.where(unsure, scaled.in_proportion(shape), likely)
    found = [likely] if np.array_equal(in_proportion, likely) else [likely, in_proportion]
    every = scaled.copies if _is_assumed(scaled, shape) else scaled.changing
    smaller = likely[every].sum() < scaled.recording.program.size[every].sum()
    if smaller and not scaled.of_volumes:
        return [*found[1:], _shrunk(likely, every, 2), _shrunk(likely, every, 0)]
    return [*found[1:], *(_shrunk(sizes, unsure, 2) for sizes in found)]


def _shrunk(size: IntArray, rows: BoolArray, part: int) -> IntArray:
    """`size` with that of `rows` divided by `part`; with 0, as small as a workspace that does not count."""
    shrunk = size // part if part else np.full_like(size, LEAST_WORKSPACE // 2)
    return np.where(rows, np.minimum(size, np.maximum(shrunk, 1)), size)


def _replayed(scaled: Scaled, size: IntArray, config: AllocatorConfig, limit: Limit | None = None) -> Replay:
    recording = scaled.recording
    total = recording.subject.limit.limit.device_total
    return replayer_of(recording, scaled.program(size)).run(
        config, limit or Limit(device_total=total), recording.subject.addresses()
    )


def survives(scaled: Scaled, size: IntArray, config: AllocatorConfig, usable: int) -> Replay:
    """The replay on a card that gives the process so many bytes."""
    total = scaled.recording.subject.limit.limit.device_total
    return _replayed(scaled, size, config, Limit(capacity=max(usable, 0), device_total=total))


def replayer_of(recording: Recording, program: Program) -> Replayer:
    """Replays a program under the rules of the recording's release."""
    return Replayer(program, recording.subject.release)


def at_peak(recording: Recording, size: IntArray) -> tuple[dict[str, int], str]:
    """Bytes by category at the peak of allocated memory, largest first; and the phase in which it lies."""
    live, request = live_at_peak(recording.program, size)
    row = recording.subject.extraction.row
    category = by_request(recording.study.categories.astype(np.int64), row, ACTIVATION)
    phase = by_request(recording.study.phases.astype(np.int64), row, OTHER)
    total = np.bincount(category[live], weights=size[live], minlength=len(CATEGORIES)).astype(np.int64)
    order = np.argsort(-total, kind="stable").tolist()
    return {CATEGORIES[one]: int(total[one]) for one in order if total[one]}, PHASES[int(phase[request])]


def live_at_peak(program: Program, size: IntArray) -> tuple[IntArray, int]:
    """The requests that are live when most bytes are, and the one that makes it so. Sizes count as rounded to 512."""
    rounded = (np.maximum(size, 1) + _BLOCK - 1) // _BLOCK * _BLOCK
    op, argument = program.op, program.argument
    made = op == Op.MALLOC
    ended = (op == Op.FREE) | (op == Op.FREE_REQUESTED)
    change = np.where(made, rounded[argument], np.where(ended, -rounded[argument], 0))
    step = int(np.argmax(np.cumsum(change)))
    live = np.zeros(program.requests, np.bool_)
    live[argument[: step + 1][made[: step + 1]]] = True
    live[argument[: step + 1][ended[: step + 1]]] = False
    return np.flatnonzero(live), int(argument[step])
