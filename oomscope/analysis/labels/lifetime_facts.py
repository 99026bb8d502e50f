"""What the rules about categories ask of every allocation, found once: what its stack says, and what outlived what."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD, FORWARD, OPTIMIZER, unframed_is_backward
from oomscope.analysis.labels.size_matching import beyond, next_birth
from oomscope.analysis.labels.stack_roles import Mark, Role, StackRoles
from oomscope.history import BEFORE, DeviceHistory
from oomscope.model import Action, BoolArray, IntArray, UInt8Array
from oomscope.model.ordering import places


class LifetimeFacts:
    """Columns of one row an allocation.

    Attributes:
        history: of the device.
        phases: uint8[lifetimes], indices into `PHASES`.
        bytes: int64, what was asked for; where that is not known, the block.
        role: uint8, `Role` numbers; mark: int64, `Mark` bits.
        apply_line, site_line: int64, as `StackRoles` has them.
        before: whether it was there when the recording began.
        lives: whether it is allocated at the end.
        from_engine: whether it has no frames because a thread of the autograd engine made it.
        end: the number of entries.
    """

    def __init__(self, history: DeviceHistory, phases: UInt8Array, roles: StackRoles) -> None:
        lifetimes = self.lifetimes = history.lifetimes
        self.history, self.phases, self._roles = history, phases, roles
        self.end = history.entries
        self.bytes = np.where(lifetimes.requested >= 0, lifetimes.requested, history.size)
        self.role = roles.role[lifetimes.stack]
        self.mark = roles.mark[lifetimes.stack]
        self.apply_line, self.site_line = roles.apply_line[lifetimes.stack], roles.site_line[lifetimes.stack]
        self.before: BoolArray = lifetimes.born == BEFORE
        self.lives: BoolArray = lifetimes.freed >= self.end
        self.from_engine = unframed_is_backward(lifetimes, self.role)

    def __len__(self) -> int:
        return len(self.lifetimes)

    def marked(self, mark: Mark) -> BoolArray:
        """Which rows bear `mark`."""
        return np.asarray((self.mark & int(mark)) != 0)

    def happens(self, phase: int) -> BoolArray:
        """Which rows were allocated in `phase` within the recording."""
        return np.asarray((self.phases == phase) & ~self.before)

    def births(self, rows: BoolArray) -> IntArray:
        """The entries that made `rows`, all within the recording, ascending: each entry makes one block."""
        makes = np.zeros(self.end, np.bool_)
        makes[self.lifetimes.born[rows]] = True
        return np.flatnonzero(makes)

    # Entries of the next allocation of another phase: what is freed later has outlived its own.
    @cached_property
    def next_forward(self) -> IntArray:
        """For each row, the entry of the first allocation of a forward after its birth; `end` where there is none."""
        return next_birth(self.lifetimes.born, self.births(self.happens(FORWARD)), self.end)

    @cached_property
    def next_backward(self) -> IntArray:
        """Likewise, of a backward."""
        return next_birth(self.lifetimes.born, self.births(self.happens(BACKWARD)), self.end)

    @cached_property
    def next_optimizer(self) -> IntArray:
        """Likewise, of an optimizer."""
        return next_birth(self.lifetimes.born, self.births(self.happens(OPTIMIZER)), self.end)

    def until_unwound(self, rows: IntArray) -> BoolArray:
        """Which of `rows` were freed while the exception of a failed request went up: no forward lies in between.

        Where the forward goes on, the request was one that the program can do without (cuDNN tries its workspaces).
        """
        born, freed = self.lifetimes.born[rows], self.lifetimes.freed[rows]
        failed = self.history.trace.entries(Action.OOM)
        last = places(failed, freed) - 1
        oom = np.append(failed, -1)[last]
        forwards = self.births(self.happens(FORWARD))
        goes_on = places(forwards, oom) < places(forwards, freed)
        return np.asarray((oom > born) & ~goes_on)

    def freed_amid_backward(self, rows: IntArray) -> BoolArray:
        """Which of `rows`, made with no forward of a module before the next backward, were freed while that went on.

        A backward frees what was saved for it as soon as it has used it, and then makes more.
        """
        freed = self.lifetimes.freed[rows]
        backwards = self.births(self.happens(BACKWARD))
        begins, goes_on = self.next_backward[rows], np.append(backwards, self.end)[places(backwards, freed)]
        others = self.births(~self.before & ~self.happens(BACKWARD))
        same = places(others, begins) == places(others, goes_on)
        found = beyond(freed, begins, self.end) & (goes_on < self.end) & (self.next_forward[rows] > begins)
        return np.asarray(found & same)

    @cached_property
    def trains(self) -> bool:
        """Whether a backward or an optimizer is seen."""
        framed = bool(np.any((self.role == Role.BACKWARD) | (self.role == Role.OPTIMIZER)))
        return framed or bool(self.from_engine.any())

    def freed_by_optimizer(self, rows: IntArray) -> BoolArray:
        """Which of `rows`, all freed at an entry of the recording, were freed in an optimizer's step.

        The entry of the free tells with its own stack (``context="all"``); without one, the allocations around it do.
        """
        freed = self.lifetimes.freed[rows]
        stack = self.history.trace.stack[freed]
        role, mark = self._roles.role[stack], self._roles.mark[stack]
        told = (role == Role.OPTIMIZER) & ((mark & int(Mark.ZERO_GRAD)) == 0)
        order = self.lifetimes.by_birth()
        made = places(self.lifetimes.born[order], freed)  # how many before it
        in_optimizer = np.append(self.phases[order] == OPTIMIZER, False)  # at both ends there is none
        amid = in_optimizer[made - 1] & in_optimizer[made]
        return np.asarray(np.where(role == Role.UNFRAMED, amid, told))
