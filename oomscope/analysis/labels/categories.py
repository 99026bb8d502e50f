"""What each allocation is: parameter, gradient, optimizer state, activation and so on.

Exact where a recording brought names; everything else is inferred from the part of the program that allocated it
(`stack_roles`), from how long it lived compared with the phases around it, and from sizes that belong
together: every gradient and most optimizer states are as large as their parameter.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.before_recording import settle
from oomscope.analysis.labels.dropped_graphs import dropped_graphs
from oomscope.analysis.labels.kinds import (
    ACTIVATION,
    BUFFER,
    GRADIENT,
    INPUT,
    OPTIMIZER_STATE,
    PARAMETER,
    TEMPORARY,
    UNKNOWN,
    WORKSPACE,
)
from oomscope.analysis.labels.lifetime_facts import LifetimeFacts
from oomscope.analysis.labels.module_moves import find_gradient_buffers, find_moves
from oomscope.analysis.labels.phases import BACKWARD, FORWARD, OTHER
from oomscope.analysis.labels.size_matching import SCALAR, beyond, copies_all, last_birth, one_for_each
from oomscope.analysis.labels.stack_roles import Mark, Role, StackRoles
from oomscope.analysis.labels.workspaces import settle_workspaces
from oomscope.analysis.passes.records import Steps
from oomscope.analysis.records import CATEGORIES
from oomscope.history import DeviceHistory
from oomscope.model import NO_STACK, Action, BoolArray, IntArray, Snapshot, UInt8Array
from oomscope.model.arrays import StackArray
from oomscope.model.ordering import among, ascending, is_any, places

__all__ = [
    "ACTIVATION", "BUFFER", "GRADIENT", "INPUT", "OPTIMIZER_STATE", "PARAMETER", "TEMPORARY", "UNKNOWN", "WORKSPACE",
    "categorize",
]  # fmt: skip

_SMALL, _MOST_MADE = 4096, 0.9
"""Bytes of a vector, as of a norm; and of the sizes of gradients, how many must be there as weights."""
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
    category = _Inference(LifetimeFacts(history, phases, roles), steps, roles).run()
    named = _apply_names(snapshot, history, category)
    live = history.lifetimes.freed >= history.entries
    if not named.any():
        return category, "inferred"
    return category, "recorded" if bool(named[live].all()) else "mixed"


class _Inference:
    """The rules, one a method, in the order in which each needs what the ones before it found."""

    def __init__(self, facts: LifetimeFacts, steps: Steps, roles: StackRoles) -> None:
        self.facts, self.steps, self.roles = facts, steps, roles
        self.lifetimes, self.end, self.bytes = facts.lifetimes, facts.end, facts.bytes
        self.role, self.phases, self.before = facts.role, facts.phases, facts.before
        self.category = np.full(len(facts), UNKNOWN, np.uint8)

    def run(self) -> UInt8Array:
        self._models()
        self._optimizers()
        self._backwards()
        self._forwards()
        self._others()
        self._without_frames()
        settle_workspaces(self.facts, self.category)
        self._constructed()
        self._constructed_for_a_container()
        self._made_by_functions()
        self._communication()
        self._as_later_ones()
        self._copies()
        return self.category

    def _models(self) -> None:
        loaded = self.role == Role.LOAD
        gradient, buffer = find_moves(self.facts, self.roles.recursive_line)
        gradient = gradient | (loaded & find_gradient_buffers(self.facts))
        self.category[loaded] = PARAMETER
        self.category[gradient] = GRADIENT
        self.category[buffer] = BUFFER
        self.is_parameter = loaded & ~gradient & ~buffer & ~self.facts.marked(Mark.CONSTRUCTOR)

    def _optimizers(self) -> None:
        """State outlives the step that made it; all else in it is temporary.

        While the step still runs at the end of the trace, the name of the function tells, or what became of earlier
        allocations of the same stack.
        """
        rows = np.flatnonzero(self.role == Role.OPTIMIZER)
        freed = self.lifetimes.freed[rows]
        after = np.minimum(self.facts.next_forward[rows], self.facts.next_backward[rows])
        survives = self.before[rows] | beyond(freed, after, self.end)
        ended = ~survives & (freed < self.end)
        undecided = ~survives & ~ended
        stack = self.lifetimes.stack[rows]
        was_freed = np.zeros(int(stack.max(initial=NO_STACK)) + 2, np.bool_)
        was_freed[stack[ended]] = True
        passing = self.facts.marked(Mark.UPDATE)[rows] | was_freed[stack]
        state = survives | (undecided & (self.facts.marked(Mark.STATE)[rows] | ~passing))
        self.category[rows] = np.where(state, OPTIMIZER_STATE, TEMPORARY)

    def _backwards(self) -> None:
        """A gradient outlives its backward and is as large as a parameter; one that still runs, one a parameter."""
        engine = self.facts.from_engine & ~self.before  # sizes tell of those from before
        rows = np.flatnonzero((self.role == Role.BACKWARD) | engine)
        freed = self.lifetimes.freed[rows]
        after = np.minimum(self.facts.next_optimizer[rows], self.facts.next_forward[rows])
        # An optimizer may allocate nothing: then what is freed once the backward makes nothing more has outlived it.
        last = last_birth(self.facts.births(self.facts.happens(BACKWARD)), after, self.end)
        known = self._parameter_sizes()
        dropped = (freed > last) & (freed < self.end) & (len(known) > 0)
        survives = self.before[rows] | beyond(freed, after, self.end) | dropped
        alive = ~survives & (freed >= self.end)
        fits = among(self.bytes[rows], known) if len(known) else np.ones(len(rows), np.bool_)
        category = np.full(len(rows), TEMPORARY, np.uint8)
        category[survives & fits] = GRADIENT
        stays = survives & ~fits & (self.before[rows] | beyond(freed, after, self.end))
        category[stays] = np.where(self.before[rows][stays], UNKNOWN, ACTIVATION)
        if alive.any():
            live = rows[alive]
            owed = self.bytes[self.is_parameter & self.facts.lives]
            if not self.is_parameter.any():
                owed = self._leaves(int(self.lifetimes.born[live].min()))
            category[alive] = np.where(
                one_for_each(self.bytes[live], self.lifetimes.born[live], owed), GRADIENT, TEMPORARY
            )
        self.category[rows] = category

    def _leaves(self, backward: int) -> IntArray:
        """Bytes of live tensors from before the entry `backward` that no module made, which may have gradients.

        None where a request has failed since: then a backward is underway, and what lives may only pass.
        """
        failed = self.facts.history.trace.entries(Action.OOM)
        made = self.facts.lives & (self.role == Role.NEUTRAL) & (self.lifetimes.born < backward)
        return np.asarray(self.bytes[made & ~np.any(failed > backward)])

    def _communication(self) -> None:
        """Buckets and gathered parameters are workspace; what a reduction leaves for the optimizer is the gradient.

        In a backward that still runs, what became of earlier allocations of the same stack tells.
        """
        self.category[self.facts.marked(Mark.REPLICA)] = PARAMETER
        bucket = self.facts.marked(Mark.COMMUNICATION)
        if not bucket.any():
            return
        reduced = bucket & (self.role == Role.BACKWARD)
        after = np.minimum(self.facts.next_optimizer, self.facts.next_forward)
        left = reduced & beyond(self.lifetimes.freed, after, self.end)
        stack = self.lifetimes.stack
        ended = np.bincount(stack[reduced & ~left & (self.lifetimes.freed < self.end)], minlength=1)
        stayed = np.bincount(stack[left], minlength=len(ended))
        ended = np.pad(ended, (0, len(stayed) - len(ended)))
        usual = np.flatnonzero(stayed > ended)
        alive = reduced & (self.facts.lives) & np.isin(stack, usual)
        self.category[bucket] = WORKSPACE
        self.category[left | alive] = GRADIENT

    def _parameter_sizes(self) -> IntArray:
        """Distinct sizes of parameters; where the model was made before the recording, those of optimizer states."""
        sizes = self.bytes[self.is_parameter]
        if not len(sizes):
            sizes = self.bytes[(self.category == OPTIMIZER_STATE) & (self.bytes > SCALAR)]
        return ascending(sizes)

    def _forwards(self) -> None:
        """What a forward makes is an activation if the backward finds it, else temporary.

        What is alive where the forward ends early, at the end of the trace or by an OOM, is the former; and so is what
        was kept for a backward that never came.
        """
        rows = np.flatnonzero(self.role == Role.FORWARD)
        rows = np.concatenate([rows, np.flatnonzero((self.role == Role.NEUTRAL) & (self.phases == FORWARD))])
        freed = self.lifetimes.freed[rows]
        kept = (freed >= self.end) | beyond(freed, self.facts.next_backward[rows], self.end)
        kept |= self.facts.until_unwound(rows)
        kept[~kept] = dropped_graphs(self.facts, rows[~kept])
        self.category[rows] = np.where(kept, ACTIVATION, TEMPORARY)

    def _others(self) -> None:
        """A batch is made between two steps, or before a forward that follows at once, and goes with its step.

        What is computed in between is none, nor is what a line leaves behind in every step.
        """
        rows = np.flatnonzero((self.role == Role.NEUTRAL) & ((self.phases == OTHER) | self.before))
        if not len(rows):
            return
        freed = self.lifetimes.freed[rows]
        feeds = ~self.before[rows] & (self.facts.next_forward[rows] < np.minimum(freed, self.end))
        feeds &= ~self.facts.marked(Mark.COMPUTED)[rows]
        again = self._recurs(self.lifetimes.stack[rows]) & ~self._stays(rows)
        self.category[rows[feeds & again]] = INPUT
        self.category[rows[~feeds & (freed < self.end)]] = TEMPORARY
        self.category[rows[~feeds & self.facts.freed_amid_backward(rows)]] = ACTIVATION
        held = self.facts.marked(Mark.CACHE)[rows]
        self.category[rows[held]] = BUFFER

    def _stays(self, rows: IntArray) -> BoolArray:
        """Which `rows` come from a stack that leaves a block in each step, while another one's go with their step.

        A batch is dropped once the next one is there. Where the forward leaves something as well, a graph may keep
        the batch; and where no line's blocks go, they may be batches made in advance.
        """
        nothing = np.zeros(len(rows), np.bool_)
        if self.steps.count < 2:
            return nothing
        boundaries = np.append(self.steps.boundaries, self.end)
        step = places(boundaries, self.lifetimes.born, "right")
        after_next = boundaries[np.minimum(step + 1, len(boundaries) - 1)]
        told = ~self.before & (after_next < self.end)
        outlives = told & (self.lifetimes.freed > after_next)
        if np.any(outlives & (self.role == Role.FORWARD)):
            return nothing
        stack = self.lifetimes.stack[rows]
        count = np.bincount(stack[told[rows]], minlength=int(stack.max()) + 1)
        kept = np.bincount(stack[outlives[rows]], minlength=len(count))
        goes = (count > 0) & (kept == 0)
        return np.asarray((kept == count) & (kept > 0))[stack] if goes.any() else nothing

    def _recurs(self, stack: StackArray) -> BoolArray:
        """Which stacks allocate in more than one step (or more than once, without steps)."""
        lifetimes = self.lifetimes
        if self.steps.count < 2:
            count = np.bincount(lifetimes.stack[lifetimes.stack >= 0], minlength=int(stack.max()) + 1)
            return np.asarray(count[stack] > 1)
        step = places(np.array(self.steps.boundaries), lifetimes.born, "right")
        lowest = np.full(int(lifetimes.stack.max()) + 2, len(step) + 1)
        highest = np.full(len(lowest), -1)
        np.minimum.at(lowest, lifetimes.stack, step)
        np.maximum.at(highest, lifetimes.stack, step)
        return np.asarray(highest[stack] > lowest[stack])

    def _without_frames(self) -> None:
        found = settle(self.facts, self.category, self.is_parameter)
        if found.any():
            self.is_parameter |= found
            self._backwards()

    def _constructed(self) -> None:
        """What a constructor made is a parameter if a gradient or a state is as large, else a buffer.

        Where nothing is trained, a model is made by constructors within constructors, or it is all that a forward has
        to run on; what a single one puts on the device beside a model may be a data set.
        """
        made = (self.role == Role.LOAD) & self.facts.marked(Mark.CONSTRUCTOR)
        rows = np.flatnonzero(made & ~self.facts.marked(Mark.GRADIENT_BUFFER))
        if not len(rows):
            return
        trained = ascending(self.bytes[(self.category == GRADIENT) | (self.category == OPTIMIZER_STATE)])
        runs = bool(np.any(self.role == Role.FORWARD)) and not self.is_parameter.any()
        if len(trained):
            learns, other = np.isin(self.bytes[rows], trained), BUFFER
        else:
            learns, other = self.facts.marked(Mark.NESTED)[rows] | runs, UNKNOWN
        cached = self.facts.marked(Mark.CACHE)[rows]
        self.category[rows] = np.where(cached, BUFFER, np.where(learns, PARAMETER, other))

    def _constructed_for_a_container(self) -> None:
        """What constructors within constructors make, and is trained, is a parameter in whatever a container does.

        ``ModuleList(Layer() for …)`` makes layers while a method of torch's container runs, as a forward does.
        """
        made = (self.role == Role.FORWARD) & self.facts.marked(Mark.NESTED)
        trained = ascending(self.bytes[(self.category == GRADIENT) | (self.category == OPTIMIZER_STATE)])
        found = made & is_any(self.category, (UNKNOWN, ACTIVATION)) & np.isin(self.bytes, trained)
        if found.any():
            self.category[found] = PARAMETER
            self.is_parameter |= found
            self._backwards()

    def _made_by_functions(self) -> None:
        """What is there from before all forwards to the last, as large as gradients, if nothing else is a parameter.

        As of a program of plain functions, which makes its weights with ``torch.empty`` and keeps them in a dictionary.
        """
        if np.any(self.category == PARAMETER) or not self.facts.trains:
            return
        forwards = self.lifetimes.born[self.role == Role.FORWARD]
        first, last = forwards.min(initial=self.end), forwards.max(initial=0)
        made = is_any(self.category, (UNKNOWN, TEMPORARY)) & (self.role == Role.NEUTRAL) & ~self.before
        rows = np.flatnonzero(made & (self.lifetimes.born < first) & (self.lifetimes.freed > last))
        gradients = ascending(self.bytes[(self.category == GRADIENT) & (self.bytes > _SMALL)])
        there = np.isin(gradients, self.bytes[rows])
        if len(gradients) and there.mean() >= _MOST_MADE:
            self.category[rows[np.isin(self.bytes[rows], self.bytes[self.category == GRADIENT])]] = PARAMETER

    def _as_later_ones(self) -> None:
        """What is alive from before a trace that wrapped is what later live blocks of the same stack are."""
        live = (self.facts.lives) & (self.role == Role.NEUTRAL)
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
        if self.facts.trains and self.steps.source != "annotations" and not np.any(self.role == Role.OPTIMIZER):
            return
        live = self.facts.lives
        model = np.sort(self.bytes[live & self.is_parameter])
        rows = np.flatnonzero((self.role == Role.NEUTRAL) & (self.category == UNKNOWN))
        stacks, count = np.unique(self.lifetimes.stack[rows], return_counts=True)
        for stack in stacks[count >= _LEAST_COPIED].tolist():
            mine = rows[self.lifetimes.stack[rows] == stack]
            if copies_all(self.bytes[mine], model):
                self.category[mine] = PARAMETER


def _apply_names(snapshot: Snapshot, history: DeviceHistory, category: UInt8Array) -> BoolArray:
    """Put the recorded categories over the inferred ones; returns which rows were named.

    Several tensors may lie in one block (views, buckets): the largest gives its category. The recording names all
    buffers of modules, so that a tensor that it has seen, and calls nothing, is none.
    """
    named = np.zeros(len(category), np.bool_)
    rows = np.flatnonzero(history.lifetimes.freed >= history.entries)
    tensors = [one for one in snapshot.recorded.tensors_on(history.index) if one.address is not None]
    told = [
        (tensor.bytes or 0, tensor.address, CATEGORIES.index(tensor.category))
        for tensor in tensors
        if tensor.category in CATEGORIES[:UNKNOWN]
    ]
    if not told or not len(rows):
        return named
    nameless = np.array([one.address for one in tensors if one.category not in CATEGORIES[:UNKNOWN]], np.int64)
    category[rows[(category[rows] == BUFFER) & among(history.lifetimes.address[rows], nameless)]] = UNKNOWN
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
