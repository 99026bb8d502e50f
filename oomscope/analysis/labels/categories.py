"""What each allocation is: parameter, gradient, optimizer state, activation and so on.

Exact where a recording brought names; everything else is inferred from the part of the program that allocated it
(`stack_roles`), from how long it lived compared with the phases around it, and from sizes that belong
together: every gradient and most optimizer states are as large as their parameter.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD, FORWARD, OPTIMIZER, OTHER, unframed_is_backward
from oomscope.analysis.labels.size_matching import (
    beyond,
    copies_all,
    first_of_size,
    last_birth,
    next_birth,
    one_for_each,
)
from oomscope.analysis.labels.stack_roles import Mark, Role, StackRoles
from oomscope.analysis.records import CATEGORIES, Steps
from oomscope.history import BEFORE, DeviceHistory
from oomscope.model import BoolArray, IntArray, Snapshot, UInt8Array
from oomscope.model.arrays import StackArray

PARAMETER, GRADIENT, OPTIMIZER_STATE, BUFFER, ACTIVATION, TEMPORARY, INPUT, WORKSPACE, UNKNOWN = range(len(CATEGORIES))

_WORKSPACES = np.array(
    [
        8_519_680,  # cuBLAS before Hopper, CUBLAS_WORKSPACE_CONFIG=:4096:2:16:8
        33_554_432,  # cuBLAS on Hopper and later, :4096:8
        1_048_576,  # cuBLASLt, 1024 KiB
    ],
    np.int64,
)

_LEAST_COPIED = 4
"""Tensors; of fewer, equal sizes may be chance."""


def categorize(
    snapshot: Snapshot, history: DeviceHistory, steps: Steps, phases: UInt8Array, roles: StackRoles
) -> tuple[UInt8Array, str]:
    """The category of each allocation.

    Args:
        snapshot: the whole snapshot.
        history: one of its devices.
        steps: its steps.
        phases: uint8[lifetimes], from `phase_of`.
        roles: of the stacks of the snapshot.

    Returns:
        uint8[lifetimes], index into `CATEGORIES`, and where it comes from: ``recorded`` if every live block was named,
        ``mixed`` if some were, else ``inferred``.
    """
    guess = _Inference(history, steps, phases, roles)
    category = guess.run()
    named = _apply_names(snapshot, history, category)
    live = history.lifetimes.freed >= history.entries
    if not named.any():
        return category, "inferred"
    return category, "recorded" if bool(named[live].all()) else "mixed"


class _Inference:
    """The rules, one a method, in the order in which each needs what the ones before it found."""

    def __init__(self, history: DeviceHistory, steps: Steps, phases: UInt8Array, roles: StackRoles) -> None:
        self.history = history
        self.steps = steps
        self.phases = phases
        lifetimes = self.lifetimes = history.lifetimes
        self.bytes = np.where(lifetimes.requested >= 0, lifetimes.requested, history.size)
        self.end = history.entries
        self.role = roles.role[lifetimes.stack]
        self.mark = roles.mark[lifetimes.stack]
        self.stream = lifetimes.stream
        self.before = lifetimes.born == BEFORE
        self.from_engine = unframed_is_backward(lifetimes, self.role)
        # Entries of the next allocation of another phase: what is freed later has outlived its own.
        self.next_forward = next_birth(lifetimes.born, self._happens(FORWARD), self.end)
        self.next_backward = next_birth(lifetimes.born, self._happens(BACKWARD), self.end)
        self.next_optimizer = next_birth(lifetimes.born, self._happens(OPTIMIZER), self.end)
        self.category = np.full(len(lifetimes), UNKNOWN, np.uint8)

    def run(self) -> UInt8Array:
        self._models()
        self._optimizers()
        self._backwards()
        self._forwards()
        self._others()
        self._workspaces()
        self._without_frames()
        self._constructed()
        self._communication()
        self._as_later_ones()
        self._copies()
        return self.category

    def _happens(self, phase: int) -> BoolArray:
        return np.asarray((self.phases == phase) & ~self.before)

    def _models(self) -> None:
        loaded = self.role == Role.LOAD
        buffer = (self.mark & Mark.BUFFER) != 0
        self.category[loaded] = np.where(buffer[loaded], BUFFER, PARAMETER)
        self.is_parameter = loaded & ~buffer & ((self.mark & Mark.CONSTRUCTOR) == 0)

    def _optimizers(self) -> None:
        """State outlives the step that made it; all else in it is temporary.

        While the step still runs at the end of the trace, the name of the function tells, or what became of earlier
        allocations of the same stack.
        """
        rows = np.flatnonzero(self.role == Role.OPTIMIZER)
        freed = self.lifetimes.freed[rows]
        after = np.minimum(self.next_forward[rows], self.next_backward[rows])
        survives = self.before[rows] | beyond(freed, after, self.end)
        ended = ~survives & (freed < self.end)
        undecided = ~survives & ~ended
        stack = self.lifetimes.stack[rows]
        temporary_stacks = np.unique(stack[ended])
        state = survives | (undecided & ((self.mark[rows] & Mark.STATE) != 0))
        state |= undecided & ~np.isin(stack, temporary_stacks)
        self.category[rows] = np.where(state, OPTIMIZER_STATE, TEMPORARY)

    def _backwards(self) -> None:
        """A gradient outlives its backward and is as large as a parameter; one that still runs, one a parameter."""
        rows = np.flatnonzero((self.role == Role.BACKWARD) | self.from_engine)
        freed = self.lifetimes.freed[rows]
        after = np.minimum(self.next_optimizer[rows], self.next_forward[rows])
        # An optimizer may allocate nothing: then what is freed once the backward makes nothing more has outlived it.
        last = last_birth(self.lifetimes.born, self._happens(BACKWARD), after, self.end)
        known = self._parameter_sizes()
        dropped = (freed > last) & (freed < self.end) & (len(known) > 0)
        survives = self.before[rows] | beyond(freed, after, self.end) | dropped
        alive = ~survives & (freed >= self.end)
        fits = np.isin(self.bytes[rows], known) if len(known) else np.ones(len(rows), np.bool_)
        category = np.full(len(rows), TEMPORARY, np.uint8)
        category[survives & fits] = GRADIENT
        stays = survives & ~fits & (self.before[rows] | beyond(freed, after, self.end))
        category[stays] = np.where(self.before[rows][stays], UNKNOWN, ACTIVATION)
        if alive.any():
            live = rows[alive]
            owed = self.bytes[self.is_parameter & (self.lifetimes.freed >= self.end)]
            category[alive] = np.where(
                one_for_each(self.bytes[live], self.lifetimes.born[live], owed), GRADIENT, TEMPORARY
            )
        self.category[rows] = category

    def _communication(self) -> None:
        """Buckets and gathered parameters are workspace; what a reduction leaves for the optimizer is the gradient.

        In a backward that still runs, what became of earlier allocations of the same stack tells.
        """
        bucket = (self.mark & Mark.COMMUNICATION) != 0
        if not bucket.any():
            return
        reduced = bucket & (self.role == Role.BACKWARD)
        after = np.minimum(self.next_optimizer, self.next_forward)
        left = reduced & beyond(self.lifetimes.freed, after, self.end)
        stack = self.lifetimes.stack
        ended = np.bincount(stack[reduced & ~left & (self.lifetimes.freed < self.end)], minlength=1)
        stayed = np.bincount(stack[left], minlength=len(ended))
        ended = np.pad(ended, (0, len(stayed) - len(ended)))
        usual = np.flatnonzero(stayed > ended)
        alive = reduced & (self.lifetimes.freed >= self.end) & np.isin(stack, usual)
        self.category[bucket] = WORKSPACE
        self.category[left | alive] = GRADIENT

    def _parameter_sizes(self) -> IntArray:
        """Distinct sizes of parameters; where the model was made before the recording, those of optimizer states."""
        sizes = self.bytes[self.is_parameter]
        if not len(sizes):
            sizes = self.bytes[(self.category == OPTIMIZER_STATE) & (self.bytes > 8)]
        return np.unique(sizes)

    def _forwards(self) -> None:
        """What a forward makes is an activation if the backward finds it, else temporary; alive, it is the former."""
        rows = np.flatnonzero(self.role == Role.FORWARD)
        rows = np.concatenate([rows, np.flatnonzero((self.role == Role.NEUTRAL) & (self.phases == FORWARD))])
        freed = self.lifetimes.freed[rows]
        kept = (freed >= self.end) | beyond(freed, self.next_backward[rows], self.end)
        self.category[rows] = np.where(kept, ACTIVATION, TEMPORARY)

    def _others(self) -> None:
        """A batch is made between two steps, or before a forward that follows at once, and goes with its step."""
        rows = np.flatnonzero((self.role == Role.NEUTRAL) & ((self.phases == OTHER) | self.before))
        if not len(rows):
            return
        freed = self.lifetimes.freed[rows]
        feeds = ~self.before[rows] & (self.next_forward[rows] < np.minimum(freed, self.end))
        again = self._recurs(self.lifetimes.stack[rows])
        self.category[rows[feeds & again]] = INPUT
        self.category[rows[~feeds & (freed < self.end)]] = TEMPORARY
        held = (self.mark[rows] & Mark.CACHE) != 0
        self.category[rows[held]] = BUFFER

    def _recurs(self, stack: StackArray) -> BoolArray:
        """Which stacks allocate in more than one step (or more than once, without steps)."""
        lifetimes = self.lifetimes
        if self.steps.count < 2:
            count = np.bincount(lifetimes.stack[lifetimes.stack >= 0], minlength=int(stack.max()) + 1)
            return np.asarray(count[stack] > 1)
        step = np.searchsorted(np.array(self.steps.boundaries), lifetimes.born, side="right")
        lowest = np.full(int(lifetimes.stack.max()) + 2, len(step) + 1)
        highest = np.full(len(lowest), -1)
        np.minimum.at(lowest, lifetimes.stack, step)
        np.maximum.at(highest, lifetimes.stack, step)
        return np.asarray(highest[stack] > lowest[stack])

    def _workspaces(self) -> None:
        """The workspaces of cuBLAS: one a handle and stream, made at a thread's first product and never given back."""
        sized = np.isin(self.bytes, _WORKSPACES) & (self.lifetimes.freed >= self.end)
        candidates = sized & ((self.phases == FORWARD) | (self.phases == BACKWARD) | self.from_engine)
        candidates &= (self.category == ACTIVATION) | (self.category == UNKNOWN) | (self.category == TEMPORARY)
        rows = np.flatnonzero(candidates)
        engine = (self.phases[rows] == BACKWARD).astype(np.int64)
        chosen = first_of_size(self.bytes[rows], self.stream[rows] * 2 + engine, self.lifetimes.born[rows])
        self.category[rows[chosen]] = WORKSPACE

    def _without_frames(self) -> None:
        """Blocks from before the recording that no stack explains, by the sizes of what came later.

        A parameter is as large as its gradient, and older (so at lower addresses) than its optimizer states.
        """
        rows = np.flatnonzero((self.role == Role.UNFRAMED) & self.before & ~self.from_engine)
        if not len(rows) or self.is_parameter.any():
            return
        sizes, owed = self._gradients_of_one_step()
        if not len(sizes):
            return
        fits = np.isin(self.bytes[rows], sizes)
        stays = self.lifetimes.freed[rows] >= self.end
        self.category[rows[fits & ~stays]] = GRADIENT
        mine = rows[fits & stays]
        first = one_for_each(self.bytes[mine], self._likeness_to_states(mine), np.repeat(sizes, owed))
        self.category[mine] = np.where(first, PARAMETER, OPTIMIZER_STATE)
        self.is_parameter[mine[first]] = True
        self._backwards()

    def _likeness_to_states(self, rows: IntArray) -> IntArray:
        """A rank that is higher where blocks look more like optimizer states than like parameters.

        States are made one after another for each parameter, so in their segments two of a size lie side by side;
        parameters of a size are parted by the others of their layer. Among equals, ordinary segments obtained later
        lie lower (the driver hands out addresses downwards), and expandable ones fill upwards.
        """
        order = np.argsort(self.lifetimes.address[rows], kind="stable")
        size, span = self.bytes[rows[order]], self.history.span[rows[order]]
        twin = np.zeros(len(rows), np.float64)
        same = (size[1:] == size[:-1]) & (span[1:] == span[:-1])
        twin[1:] += same
        twin[:-1] += same
        _, segment = np.unique(span, return_inverse=True)
        weight = np.maximum(np.bincount(segment, weights=size), 1)
        paired = (np.bincount(segment, weights=size * (twin > 0)) / weight)[segment]
        expandable = self.history.spans.is_expandable[span] & (span >= 0) if len(self.history.spans) else span < 0
        place = np.where(expandable, 1, -1) * np.arange(len(rows))
        rank = np.empty(len(rows), np.int64)
        rank[order[np.lexsort((place, np.round(paired, 1)))]] = np.arange(len(rows))
        return rank

    def _gradients_of_one_step(self) -> tuple[IntArray, IntArray]:
        """Sizes of parameters and how many there are of each: from optimizer states, else from one step's gradients."""
        state = (self.category == OPTIMIZER_STATE) & (self.bytes > 8) & (self.lifetimes.freed >= self.end)
        if state.any():
            sizes, count = np.unique(self.bytes[state], return_counts=True)
            each = max(1, len(np.unique(self.lifetimes.stack[state])))
            return sizes, np.maximum(count // min(each, 2), 1)
        gradients = np.flatnonzero(self.category == GRADIENT)
        if not len(gradients):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        round_ = self.next_forward[gradients]
        rounds, counts = np.unique(round_, return_counts=True)
        one = gradients[round_ == rounds[np.argmax(counts)]]
        return np.unique(self.bytes[one], return_counts=True)

    def _constructed(self) -> None:
        """What a constructor made is a parameter if a gradient or a state is as large, else a buffer."""
        rows = np.flatnonzero((self.role == Role.LOAD) & ((self.mark & Mark.CONSTRUCTOR) != 0))
        if not len(rows):
            return
        trained = np.unique(self.bytes[(self.category == GRADIENT) | (self.category == OPTIMIZER_STATE)])
        cached = (self.mark[rows] & Mark.CACHE) != 0
        learns = (np.isin(self.bytes[rows], trained) | (len(trained) == 0)) & ~cached
        self.category[rows] = np.where(learns, PARAMETER, BUFFER)

    def _as_later_ones(self) -> None:
        """What is alive from before a trace that wrapped is what later live blocks of the same stack are."""
        live = (self.lifetimes.freed >= self.end) & (self.role == Role.NEUTRAL)
        rows = np.flatnonzero(live & self.before & (self.category == UNKNOWN))
        later = np.flatnonzero(live & ~self.before & np.isin(self.lifetimes.stack, self.lifetimes.stack[rows]))
        if len(rows) and len(later):
            of_stack = np.full(int(self.lifetimes.stack.max()) + 1, UNKNOWN, np.uint8)
            of_stack[self.lifetimes.stack[later]] = self.category[later]
            self.category[rows] = of_stack[self.lifetimes.stack[rows]]

    def _copies(self) -> None:
        """One line that makes a tensor as large as each parameter, once, copies the model: a clone of a state dict.

        Where gradients but no optimizer are seen, it may as well be the state of one written by hand.
        """
        trains = bool(np.any(self.role == Role.BACKWARD)) or bool(self.from_engine.any())
        if trains and self.steps.source != "annotations" and not np.any(self.role == Role.OPTIMIZER):
            return
        live = self.lifetimes.freed >= self.end
        model = np.sort(self.bytes[live & self.is_parameter])
        rows = np.flatnonzero((self.role == Role.NEUTRAL) & (self.category == UNKNOWN))
        stacks, count = np.unique(self.lifetimes.stack[rows], return_counts=True)
        for stack in stacks[count >= _LEAST_COPIED].tolist():
            mine = rows[self.lifetimes.stack[rows] == stack]
            if copies_all(self.bytes[mine], model):
                self.category[mine] = PARAMETER


def _apply_names(snapshot: Snapshot, history: DeviceHistory, category: UInt8Array) -> BoolArray:
    """Put the recorded categories over the inferred ones; returns which rows were named.

    Several tensors may lie in one block (views, buckets): the largest gives its category.
    """
    named = np.zeros(len(category), np.bool_)
    rows = np.flatnonzero(history.lifetimes.freed >= history.entries)
    told = [
        (tensor.bytes or 0, tensor.address, CATEGORIES.index(tensor.category))
        for tensor in snapshot.recorded.tensors_on(history.index)
        if tensor.address is not None and tensor.category in CATEGORIES[:UNKNOWN]
    ]
    if not told or not len(rows):
        return named
    told.sort(key=lambda tensor: tensor[0])
    rows = rows[np.argsort(history.lifetimes.address[rows])]
    start = history.lifetimes.address[rows]
    address = np.array([place for _, place, _ in told], np.int64)
    at = np.searchsorted(start, address, side="right") - 1
    inside = (at >= 0) & (address < start[np.maximum(at, 0)] + history.size[rows[np.maximum(at, 0)]])
    number = np.array([kind for _, _, kind in told], np.uint8)
    category[rows[at[inside]]] = number[inside]
    named[rows[at[inside]]] = True
    return named
