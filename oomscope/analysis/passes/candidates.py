"""The blocks that can be growth at all, at one instant."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.attribution.by_site import NO_FRAMES_BACKWARD, ONLY_TORCH
from oomscope.analysis.attribution.sites import SiteTable
from oomscope.analysis.labels.categories import BUFFER, GRADIENT, PARAMETER, WORKSPACE
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.passes.records import Growth
from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.frozen import frozen
from oomscope.history import BEFORE, DeviceHistory
from oomscope.model import BoolArray, IntArray
from oomscope.model.arrays import StackArray
from oomscope.model.ordering import among, ascending, is_any

LEAST_BYTES = 1 << 20
LEAST_SHARE = 0.005
"""Of the allocated bytes; less is not worth a reader's time."""


@frozen(eq=False)
class Candidates:
    """One device at one instant, with the blocks that can be growth at all.

    Attributes:
        key: int64[lifetimes], one number for each site and caller; all allocations without frames share one.
        eligible: which lifetimes may be part of growth.
        earlier: which are alive from before the first entry; they are growth where later ones of their site are.
        replaced: which are from before the first entry and have gone since.
        least: bytes below which nothing is reported.
    """

    history: DeviceHistory
    at: int
    sites: SiteTable
    key: IntArray
    eligible: BoolArray
    earlier: BoolArray
    replaced: BoolArray
    least: int

    @classmethod
    def of(cls, study: DeviceStudy, at: int) -> Candidates:
        """The candidates of a device once entry `at` has happened."""
        history, categories, sites = study.history, study.categories, study.sites
        lifetimes = history.lifetimes
        key = _key(sites.sites(lifetimes.stack), sites.callers(lifetimes.stack), len(sites))
        is_cache = (study.roles.mark[lifetimes.stack] & Mark.CACHE) != 0
        made_once = is_any(categories, (PARAMETER, GRADIENT, WORKSPACE)) & ~kept_gradients(study, at)
        may_grow = ~made_once & ((categories != BUFFER) | is_cache) & ~in_private_pool(history)
        eligible = may_grow & (lifetimes.born >= 0) & (lifetimes.born <= at)
        earlier = may_grow & (lifetimes.born == BEFORE) & (lifetimes.stack >= 0) & lifetimes.allocated_at(at)
        replaced = may_grow & (lifetimes.born == BEFORE) & (lifetimes.freed >= 0) & (lifetimes.freed <= at)
        least = max(LEAST_BYTES, int(LEAST_SHARE * history.curves.at(at)[0]))
        return cls(history, at, sites, key, eligible, earlier, replaced, least)

    def growth(
        self,
        live: IntArray,
        kind: str,
        *,
        per_pass: float,
        generations: int,
        fit: float,
        spared: int,
        loop: Location | None = None,
        passes: int = 0,
        keeps_all: bool = False,
        within_step: bool = False,
        in_another_thread: bool = False,
    ) -> Growth:
        """The record for one site, of which the rows `live` are alive; its first row was made by it."""
        stack = self.history.lifetimes.stack[live[:1]]
        site = self.sites.location(int(self.sites.sites(stack)[0]))
        return Growth(
            site=site,
            caller=self.sites.location(int(self.sites.callers(stack)[0])),
            label=None if site else ONLY_TORCH if stack[0] >= 0 else NO_FRAMES_BACKWARD,
            bytes_per_step=round(per_pass),
            generations=generations,
            live_bytes=int(self.history.size[live].sum()),
            kind=kind,
            since_entry=max(int(self.history.lifetimes.born[live].min()), 0),
            fit=round(fit, 4),
            spared_bytes=spared,
            loop=loop,
            passes=passes,
            blocks=len(live),
            keeps_all=keeps_all,
            within_step=within_step,
            in_another_thread=in_another_thread,
        )

    def rows_like(self, growth: Growth) -> IntArray:
        """The lifetimes of the site and caller of `growth`."""
        count = len(self.sites)
        keys = ascending(self.key)
        same = [
            key
            for key in keys.tolist()
            if self.sites.location(key // (count + 1) - 1) == growth.site
            and self.sites.location(key % (count + 1) - 1) == growth.caller
        ]
        return np.flatnonzero(np.isin(self.key, same))


def kept_gradients(study: DeviceStudy, at: int) -> BoolArray:
    """bool[lifetimes]: gradients of sizes of which more are alive than there are parameters, but for the newest ones.

    A parameter has one gradient. Those of earlier passes that are alive beside it are kept by the program.
    """
    history, categories = study.history, study.categories
    live = history.lifetimes.allocated_at(at)
    kept = np.zeros(len(categories), np.bool_)
    parameters = np.sort(history.size[live & (categories == PARAMETER)])
    gradients = np.flatnonzero(categories == GRADIENT)
    gradients = gradients[among(history.size[gradients], parameters)]
    alive = gradients[live[gradients]]
    alive = alive[np.lexsort((-history.lifetimes.born[alive], history.size[alive]))]
    size = history.size[alive]
    newer = np.arange(len(alive)) - np.searchsorted(size, size)
    own = np.searchsorted(parameters, size, side="right") - np.searchsorted(parameters, size)
    kept[gradients[among(history.size[gradients], size[newer >= own])]] = True
    kept[alive[newer < own]] = False
    return kept


def _key(site: StackArray, caller: StackArray, count: int) -> IntArray:
    return np.asarray((site.astype(np.int64) + 1) * (count + 1) + caller + 1)


def in_private_pool(history: DeviceHistory) -> BoolArray:
    """Which blocks belong to a CUDA graph or a MemPool: such a pool keeps its blocks, and grows by being made."""
    pool = np.where(history.span >= 0, history.spans.pool[history.span], 0) if len(history.spans) else 0
    return np.asarray((history.lifetimes.pool > 0) | (np.broadcast_to(pool, len(history.lifetimes)) > 0))
