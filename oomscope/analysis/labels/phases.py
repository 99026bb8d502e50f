"""Which phase of the program made each allocation: forward, backward, optimizer or other."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.stack_roles import Role, StackRoles
from oomscope.analysis.records import PHASES
from oomscope.analysis.said.naming import phases_said
from oomscope.analysis.said.ranges import Ranges
from oomscope.history import BEFORE, DeviceHistory, Lifetimes
from oomscope.model import BoolArray, IntArray, UInt8Array
from oomscope.model.ordering import is_any

BEFORE_RECORDING, FORWARD, BACKWARD, OPTIMIZER, OTHER = range(len(PHASES))

_PHASE_OF_ROLE = np.full(len(Role), OTHER, np.uint8)
_PHASE_OF_ROLE[[Role.FORWARD, Role.BACKWARD, Role.OPTIMIZER]] = FORWARD, BACKWARD, OPTIMIZER


def phase_of(history: DeviceHistory, roles: StackRoles, ranges: Ranges | None = None) -> UInt8Array:
    """The phase that allocated each block.

    A stack tells most of it. The autograd engine's threads have no Python frames, so where stacks were recorded at all,
    an allocation without frames was made in a backward. A loss computed outside any module is told by its place:
    between a forward and its backward; where the program marked it with a range that names a phase, by that.

    Args:
        history: of one device.
        roles: of the stacks of its snapshot.
        ranges: of that device; None: none were marked.

    Returns:
        uint8[lifetimes], index into `PHASES`.
    """
    lifetimes = history.lifetimes
    role = roles.role[lifetimes.stack]
    phase = _PHASE_OF_ROLE[role]
    before = lifetimes.born == BEFORE
    if (from_engine := unframed_is_backward(lifetimes, role)).any():
        phase[from_engine] = BACKWARD
    phase[before & ~from_engine & (phase == OTHER)] = BEFORE_RECORDING
    marked = _fill_marked(phase, role, lifetimes, ranges)
    _fill_between(phase, role, lifetimes, marked)
    return phase


def _fill_marked(phase: UInt8Array, role: UInt8Array, lifetimes: Lifetimes, ranges: Ranges | None) -> BoolArray:
    """Give allocations whose stack tells nothing the phase that the program named; returns which those are."""
    marked = np.zeros(len(phase), np.bool_)
    if ranges is None or not len(ranges):
        return marked
    said = phases_said(ranges, PHASES, OTHER)
    _drop_contradicted(said, phase, lifetimes)
    silent = (role == Role.NEUTRAL) | (role == Role.UNFRAMED)
    rows = np.flatnonzero(silent & (phase == OTHER) & (lifetimes.born > BEFORE))
    marked[rows] = said[lifetimes.born[rows]] != OTHER
    phase[rows] = said[lifetimes.born[rows]]
    return marked


CONTRADICTED = 0.1
"""Of what stacks tell inside ranges of one phase: so much of another phase, and the name means something else."""


def _drop_contradicted(said: UInt8Array, phase: UInt8Array, lifetimes: Lifetimes) -> None:
    """Forget the phases that ranges name where stacks inside them tell of others: a whole step may bear such a name."""
    rows = np.flatnonzero((lifetimes.born > BEFORE) & is_any(phase, (FORWARD, BACKWARD, OPTIMIZER)))
    told, named = phase[rows], said[lifetimes.born[rows]]
    for one in (FORWARD, BACKWARD, OPTIMIZER):
        inside = named == one
        if np.count_nonzero(inside & (told != one)) > CONTRADICTED * np.count_nonzero(inside):
            said[said == one] = OTHER


def unframed_is_backward(lifetimes: Lifetimes, role: UInt8Array) -> BoolArray:
    """Which allocations without Python frames must come from the autograd engine.

    Those during the recording, if other allocations have frames and anything speaks of training. Those from before it,
    if the model's own blocks have frames: then the recorder was on when it was made, and has been since.
    """
    unframed = role == Role.UNFRAMED
    before = lifetimes.born == BEFORE
    trains = bool(np.any((role == Role.BACKWARD) | (role == Role.OPTIMIZER)))
    runs = bool(np.any(role == Role.FORWARD))
    during = unframed & ~before & (trains or runs)
    if not (trains and bool(np.any(before & (role == Role.LOAD)))):
        return np.asarray(during)
    # Under ``context="all"`` a block that is gone has lost the stack it was allocated with, which is no sign.
    gone = before & (lifetimes.block < 0)
    lost = gone if not np.any(gone & ~unframed) else np.zeros(len(gone), np.bool_)
    return np.asarray(during | (unframed & before & ~lost))


def _fill_between(phase: UInt8Array, role: UInt8Array, lifetimes: Lifetimes, marked: BoolArray) -> None:
    """Give allocations whose frames tell nothing the phase they lie in: after a forward and before its backward."""
    rows = lifetimes.by_birth()
    neutral = (role[rows] == Role.NEUTRAL) & ~marked[rows]
    if not neutral.any() or neutral.all():
        return
    told = np.flatnonzero(~neutral)
    previous = np.cumsum(~neutral) - 1
    following = previous + neutral
    last = phase[rows[told[np.maximum(previous, 0)]]]
    coming = phase[rows[told[np.minimum(following, len(told) - 1)]]]
    has_next = following < len(told)
    is_loss = neutral & (previous >= 0) & (last == FORWARD) & (~has_next | (coming == BACKWARD))
    in_loop = neutral & (previous >= 0) & (last == OPTIMIZER) & has_next & (coming == OPTIMIZER)
    between_modules = _within_one_forward(neutral, last, coming, previous, has_next, role[rows[told]])
    phase[rows[is_loss | between_modules]] = FORWARD
    phase[rows[in_loop]] = OPTIMIZER


def _within_one_forward(
    neutral: BoolArray,
    last: UInt8Array,
    coming: UInt8Array,
    previous: IntArray,
    has_next: BoolArray,
    told: UInt8Array,
) -> BoolArray:
    """Neutral allocations between two forwards, which a later backward or optimizer shows to be of one step.

    Without any backward (inference) they may as well be the next batch, and stay what they are.
    """
    if not np.any(told == Role.BACKWARD) and not np.any(told == Role.UNFRAMED):
        return np.zeros(len(neutral), np.bool_)
    return np.asarray(neutral & (previous >= 0) & has_next & (last == FORWARD) & (coming == FORWARD))
