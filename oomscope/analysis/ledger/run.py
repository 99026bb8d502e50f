"""The recorded run as remedies see it: what each request is, and when the parts of each step begin."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

import numpy as np

from oomscope.analysis.labels import own_layers
from oomscope.analysis.labels.kinds import ACTIVATION, GRADIENT, OPTIMIZER_STATE, PARAMETER, TEMPORARY
from oomscope.analysis.labels.phases import BACKWARD, FORWARD, OPTIMIZER, OTHER
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.draft import NEVER, SPACING, Draft
from oomscope.analysis.plan.recordings import Recording, StackKeys, made_ready
from oomscope.analysis.plan.requests.below_optimizer import below_optimizer
from oomscope.analysis.plan.requests.hints import hints
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.whatif.allowance import Allowance
from oomscope.analysis.whatif.extraction import by_request
from oomscope.model import NO_STACK, Action, BoolArray, IntArray
from oomscope.model.ordering import among, ascending

TRAINED = 0.45
"""Of the bytes of parameters, of which an average of the weights has half."""
SCALAR = 1024
"""Bytes up to which a state is a counter."""


class Run:
    """Columns of one row a request.

    Attributes:
        study: of the device.
        recording: its program.
        draft: the same, to be changed.
        category, phase: indices into `CATEGORIES` and `PHASES`; what was refused counts as an activation.
        stack: the number of its stack.
        mark: `Mark` bits.
        allowance: what replays of it are counted by.
    """

    def __init__(self, study: DeviceStudy) -> None:
        self.study = study
        self.allowance = Allowance()
        self.recording: Recording = made_ready("the snapshot", study, {"batch": 2}, StackKeys())
        self.draft = Draft.of(self.recording.program)
        row = self.recording.subject.extraction.row
        self.category = by_request(study.categories.astype(np.int64), row, ACTIVATION)
        self.phase = by_request(study.phases.astype(np.int64), row, FORWARD)
        self.stack = by_request(study.history.lifetimes.stack.astype(np.int64), row, NO_STACK)
        trace = study.history.trace
        self.stack[row < 0] = trace.stack[trace.entries(Action.OOM)]
        self.mark = own_layers.marks(study)[self.stack]
        self.size, self.begin, self.end = self.draft.size, self.draft.begin, self.draft.end

    def marked(self, mark: Mark) -> BoolArray:
        """Which stacks bear a mark."""
        return np.asarray((self.mark & int(mark)) != 0)

    def of(self, *categories: int) -> BoolArray:
        """Which are of `categories`."""
        return np.isin(self.category, categories)

    def during(self, *phases: int) -> BoolArray:
        """Which were made in `phases`."""
        return np.isin(self.phase, phases)

    @cached_property
    def step(self) -> IntArray:
        """int64[requests]: the number of the step that each was made in; -1 before the first."""
        found = np.full(len(self.size), -1, np.int64)
        for unit in self.recording.units:
            found[unit.begin : unit.end] = unit.step
        return found

    @cached_property
    def steps(self) -> int:
        """How many steps there are; without any known, everything is one."""
        return int(self.step.max(initial=-1)) + 1

    def rows_of_step(self, step: int) -> IntArray:
        """The requests that a step made."""
        units = [unit for unit in self.recording.units if unit.step == step]
        return np.arange(units[0].begin, units[0].end) if units else np.zeros(0, np.int64)

    def step_begins(self, step: int) -> int:
        """The moment at which a step's first request is made."""
        return int(self.begin[self.rows_of_step(step)].min(initial=NEVER))

    def first_of(self, step: int, *phases: int) -> int:
        """The moment at which a step makes its first request in one of `phases`; `NEVER` where it makes none."""
        rows = self.rows_of_step(step)
        return int(self.begin[rows[np.isin(self.phase[rows], phases)]].min(initial=NEVER))

    def last_of(self, step: int, *phases: int) -> int:
        """The moment behind the last request that a step makes in one of `phases`; -1 where it makes none."""
        rows = self.rows_of_step(step)
        rows = rows[np.isin(self.phase[rows], phases)]
        return int(self.begin[rows].max()) + SPACING if len(rows) else -1

    def last_of_own_step(self, *phases: int, otherwise: int = -1) -> IntArray:
        """int64[requests]: what `last_of` says of the step of each; `otherwise` before the first."""
        return np.array([*(self.last_of(step, *phases) for step in range(self.steps)), otherwise], np.int64)[self.step]

    @cached_property
    def trains(self) -> bool:
        """Whether there is a backward, or the recording saw what was saved for one."""
        saved = any(tensor.saved_for for tensor in self.study.snapshot.recorded.tensors)
        return saved or bool(self.during(BACKWARD).any())

    @cached_property
    def gradients(self) -> BoolArray:
        """Gradients of parameters: of a step at most one for each, that which is there to the last.

        Weights that are used twice have a gradient from each use, which are added. Where gradients are zeroed in place,
        later steps add to those that an earlier one has left.
        """
        found = self.of(GRADIENT)
        every = Counter(self.size[self.parameters].tolist())
        for step in range(self.steps):
            rows = self.rows_of_step(step)
            rows = rows[found[rows]]
            earlier = np.flatnonzero(found & (self.step < step))
            for size in (one for one in ascending(self.size[rows]).tolist() if every[one]):
                alike = rows[self.size[rows] == size]
                kept = (self.size[earlier] == size) & (self.end[earlier] > self.end[alike].max())
                left = max(every[size] - int(kept.sum()), 0)
                found[alike[np.argsort(self.end[alike], kind="stable")][: max(len(alike) - left, 0)]] = False
        return found

    @cached_property
    def states(self) -> BoolArray:
        """Optimizer state, without its counters."""
        return self.of(OPTIMIZER_STATE) & (self.size > SCALAR)

    @cached_property
    def parameters(self) -> BoolArray:
        """The model's parameters."""
        return self.of(PARAMETER)

    @cached_property
    def optimizer_temporaries(self) -> BoolArray:
        """What the optimizer makes and gives back within its step."""
        return self.during(OPTIMIZER) & self.of(TEMPORARY)

    @cached_property
    def saved(self) -> BoolArray:
        """What a forward makes and its backward finds."""
        return self.during(FORWARD, OTHER) & self.of(ACTIVATION)

    @cached_property
    def grows_with_batch(self) -> BoolArray:
        """What is proportional to the batch, as far as one recording tells: see `plan.hints`."""
        found: BoolArray = hints(self.recording, ("batch",)).degree[:, 0] > 0
        return found

    @cached_property
    def below_optimizer(self) -> BoolArray:
        """What is made below the optimizer's step, as an evaluation is: no part of its micro-batches."""
        return below_optimizer(self.study.snapshot.stacks, self.stack, self.during(OPTIMIZER))

    @cached_property
    def own_begins(self) -> IntArray:
        """int64[steps]: the moment at which each step's own part begins, behind an evaluation below the optimizer."""
        found = np.full(self.steps, NEVER, np.int64)
        own = np.flatnonzero((self.step >= 0) & ~self.below_optimizer)
        np.minimum.at(found, self.step[own], self.begin[own])
        return found

    @cached_property
    def trained_alone(self) -> IntArray:
        """int64: bytes of each gradient of the step that has most.

        Without those of a twin of the model, an average of its weights, that no ``zero_grad`` reaches.
        """
        sizes = [np.sort(self.size[self._zeroed(self.gradients & (self.step == step))]) for step in range(self.steps)]
        return max(sizes, key=lambda one: int(one.sum()), default=np.zeros(0, np.int64))

    def _zeroed(self, gradients: BoolArray) -> BoolArray:
        """Those of a step's `gradients` that are let go, if they are about half of all or more; else all."""
        let_go = gradients & (self.end < NEVER)
        return let_go if self.size[let_go].sum() >= TRAINED * self.size[gradients].sum() else gradients

    @cached_property
    def trained(self) -> IntArray:
        """int64: bytes of each trained parameter, by the gradients of the step that has most, else all parameters."""
        most = self.trained_alone
        known = np.sort(self.size[self.parameters])
        return most if most.sum() >= TRAINED * known.sum() else known

    @cached_property
    def like_parameter(self) -> BoolArray:
        """What is as large as a parameter."""
        return among(self.size, self.trained) & (self.size > SCALAR)
