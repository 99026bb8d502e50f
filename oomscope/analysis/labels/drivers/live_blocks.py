"""The blocks that are alive at one instant, with what is known of each."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from oomscope.analysis.labels import kinds, own_layers
from oomscope.analysis.labels.stack_roles import Mark, Role
from oomscope.analysis.passes.records import Growth
from oomscope.analysis.study import DeviceStudy
from oomscope.history.spans import locate
from oomscope.model import BoolArray, IntArray


class LiveBlocks:
    """Columns of one row a live block.

    Attributes:
        study: of the device.
        growth: what grows until the instant.
        rows: int64[blocks], their rows in the history's `lifetimes`.
        bytes: int64, what was asked for; where that is not known, the block.
        stack: where each was allocated; role, mark: what that stack tells.
        category, phase: indices into `CATEGORIES` and `PHASES`.
    """

    def __init__(self, study: DeviceStudy, at_entry: int, growth: tuple[Growth, ...] = ()) -> None:
        lifetimes, roles = study.history.lifetimes, study.roles
        self.study, self.growth = study, growth
        rows = self.rows = np.flatnonzero(lifetimes.allocated_at(at_entry))
        self.bytes = np.where(lifetimes.requested[rows] >= 0, lifetimes.requested[rows], study.history.size[rows])
        self.stack = lifetimes.stack[rows]
        self.role, self.mark = roles.role[self.stack], own_layers.marks(study)[self.stack]
        self.category, self.phase = study.categories[rows], study.phases[rows]

    def __len__(self) -> int:
        return len(self.rows)

    def none(self) -> BoolArray:
        """No block."""
        return np.zeros(len(self), np.bool_)

    def of(self, *categories: int) -> BoolArray:
        """The blocks of `categories`."""
        return np.isin(self.category, categories)

    def marked(self, mark: Mark) -> BoolArray:
        """The blocks whose stack bears `mark`."""
        return np.asarray((self.mark & int(mark)) != 0)

    @cached_property
    def passing(self) -> BoolArray:
        """What a pass makes, kept for its backward or not."""
        return self.of(kinds.ACTIVATION, kinds.TEMPORARY)

    @cached_property
    def pool(self) -> IntArray:
        """The number of the pool that each block lies in; 0 is the default one, and what is not known."""
        history = self.study.history
        lifetimes, spans = history.lifetimes, history.spans
        span = locate(spans, lifetimes.address[self.rows], lifetimes.born[self.rows])
        return np.where(span >= 0, np.append(spans.pool, 0)[span], 0).astype(np.int64)

    @cached_property
    def site(self) -> IntArray:
        """The number of each block's site."""
        return self.study.sites.sites(self.stack).astype(np.int64)

    @cached_property
    def caller(self) -> IntArray:
        """The number of each block's caller."""
        return self.study.sites.callers(self.stack).astype(np.int64)

    @cached_property
    def only_infers(self) -> bool:
        """Whether there is a model and nothing trains it."""
        roles = self.study.roles.role[self.study.history.lifetimes.stack]
        trains = np.isin(roles, [Role.BACKWARD, Role.OPTIMIZER]).any()
        return not trains and bool(np.any(self.category == kinds.PARAMETER))

    @cached_property
    def before_first_run(self) -> BoolArray:
        """The blocks that were made when a model was loaded and had not run yet, the first or a later one.

        None of them where no model ever ran.
        """
        lifetimes, roles = self.study.history.lifetimes, self.study.roles.role
        runs = np.sort(lifetimes.born[(roles[lifetimes.stack] == Role.FORWARD) & (lifetimes.born >= 0)])
        if not len(runs):
            return self.none()
        born = lifetimes.born[self.rows]
        loads = np.sort(lifetimes.born[self.study.categories == kinds.PARAMETER])
        return np.asarray(_last_before(born, loads) >= _last_before(born, runs))

    def growing(self, growth: Growth) -> BoolArray:
        """The blocks of a growing site that are no part of the model."""
        sites = self.study.sites
        kept = self.of(kinds.ACTIVATION, kinds.TEMPORARY, kinds.INPUT, kinds.UNKNOWN, kinds.BUFFER)
        found = self.none()
        for site, caller in sorted(set(zip(self.site[kept].tolist(), self.caller[kept].tolist(), strict=True))):
            if sites.location(site) == growth.site and sites.location(caller) == growth.caller:
                found |= kept & (self.site == site) & (self.caller == caller)
        return found

    @cached_property
    def generations(self) -> BoolArray:
        """The blocks of all sites where pass after pass leaves something behind."""
        found = self.none()
        for one in self.growth:
            if one.kind != "reallocation":
                found |= self.growing(one)
        return found


def _last_before(born: IntArray, entries: IntArray) -> IntArray:
    """For each of `born` the last of `entries`, in order, that is not behind it; -1 where there is none."""
    return np.concatenate([[-1], entries])[np.searchsorted(entries, born, side="right")]
