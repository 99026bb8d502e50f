"""What grows: sites whose live bytes rise from step to step and never come back.

Three ways to grow are told apart: generations (every step leaves something behind), reallocation (a block is replaced
by a larger one again and again, as `torch.cat` does with a cache), and growth over time where no steps are known.

A model, its gradients, its optimizer's states and libraries' workspaces are made once and no growth. Neither is what
one step gathers, nor a window of the last few steps, nor what a program keeps from its first steps, nor a list that was
filled by a loop that has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from oomscope.analysis.attribution.by_site import NO_FRAMES_BACKWARD, ONLY_TORCH
from oomscope.analysis.attribution.sites import SiteTable
from oomscope.analysis.labels.categories import BUFFER, GRADIENT, OPTIMIZER_STATE, PARAMETER, WORKSPACE
from oomscope.analysis.labels.phases import BACKWARD as BACKWARD_PHASE
from oomscope.analysis.labels.phases import FORWARD, OPTIMIZER
from oomscope.analysis.labels.stack_roles import Mark, Role
from oomscope.analysis.passes.reallocation import find_reallocations
from oomscope.analysis.passes.rounds import find_rounds
from oomscope.analysis.records import Growth
from oomscope.analysis.study import DeviceStudy
from oomscope.history import BEFORE, DeviceHistory
from oomscope.model import Action, BoolArray, IntArray, Snapshot, UInt8Array
from oomscope.model.arrays import FloatArray

_LEAST_BYTES = 1 << 20
_LEAST_SHARE = 0.005
"""Of the allocated bytes; less is not worth a reader's time."""
_LEAST_FIT = 0.8
_LEAST_BEFORE = 3
"""Blocks from before the trace that show that a site has left something behind all along."""
_LEAST_OVER_TIME = 16
"""Blocks; without steps there is less to go on."""


def find_growth(study: DeviceStudy, at_entry: int) -> tuple[Growth, ...]:
    """The sites that grow until `at_entry`, most live bytes first.

    Args:
        study: of the device.
        at_entry: the instant that it is about.
    """
    return study.once(("growth", at_entry), lambda: _find_growth(study, at_entry))


def _find_growth(study: DeviceStudy, at_entry: int) -> tuple[Growth, ...]:
    snapshot = study.snapshot
    subject = _Subject.of(study, at_entry)
    boundaries = np.array(study.steps.boundaries, np.int64)
    boundaries = boundaries[boundaries <= at_entry]
    found = [*_reallocated(subject)]
    for one in found:
        subject.eligible[subject.rows_like(one)] = False
    found += _by_generation(subject, boundaries)
    inner = _rounds_within(subject, boundaries, snapshot)
    if len(inner):
        known = set(map(_place, found))
        finer = [one for one in _by_generation(subject, inner) if _place(one) not in known]
        found += [replace(one, within_step=True) for one in finer]
    if len(boundaries) < 3 and not found:
        found += _over_time(subject, study)
    return tuple(sorted(found, key=lambda one: -one.live_bytes))


def _place(growth: Growth) -> tuple[object, ...]:
    return growth.site, growth.caller, growth.label


@dataclass(frozen=True, slots=True, eq=False)
class _Subject:
    """One device at one instant, with the blocks that can be growth at all.

    Attributes:
        key: int64[lifetimes], one number for each site and caller; all allocations without frames share one.
        eligible: which lifetimes may be part of growth.
        earlier: which are alive from before the first entry; they are growth where later ones of their site are.
        least: bytes below which nothing is reported.
    """

    history: DeviceHistory
    phases: UInt8Array
    at: int
    sites: SiteTable
    key: IntArray
    eligible: BoolArray
    earlier: BoolArray
    least: int

    @classmethod
    def of(
        cls,
        study: DeviceStudy,
        at: int,
    ) -> _Subject:
        history, categories, phases, sites = study.history, study.categories, study.phases, study.sites
        lifetimes = history.lifetimes
        key = (
            (sites.sites(lifetimes.stack).astype(np.int64) + 1) * (len(sites) + 1) + sites.callers(lifetimes.stack) + 1
        )
        is_cache = (study.roles.mark[lifetimes.stack] & Mark.CACHE) != 0
        made_once = np.isin(categories, [PARAMETER, GRADIENT, OPTIMIZER_STATE, WORKSPACE])
        may_grow = ~made_once & ((categories != BUFFER) | is_cache) & ~_in_private_pool(history)
        eligible = may_grow & (lifetimes.born >= 0) & (lifetimes.born <= at)
        earlier = may_grow & (lifetimes.born == BEFORE) & (lifetimes.stack >= 0) & lifetimes.allocated_at(at)
        least = max(_LEAST_BYTES, int(_LEAST_SHARE * history.curves.at(at)[0]))
        return cls(history, phases, at, sites, key, eligible, earlier, least)

    def growth(
        self, row: int, kind: str, live: IntArray, per_step: float, generations: int, fit: float, spared: int
    ) -> Growth:
        """The record for the site of lifetime `row`, of which the rows `live` are alive."""
        stack = self.history.lifetimes.stack[row : row + 1]
        site = self.sites.location(int(self.sites.sites(stack)[0]))
        return Growth(
            site=site,
            caller=self.sites.location(int(self.sites.callers(stack)[0])),
            label=None if site else ONLY_TORCH if stack[0] >= 0 else NO_FRAMES_BACKWARD,
            bytes_per_step=round(per_step),
            generations=generations,
            live_bytes=int(self.history.size[live].sum()),
            kind=kind,
            since_entry=max(int(self.history.lifetimes.born[live].min()), 0),
            fit=round(fit, 4),
            spared_bytes=spared,
        )

    def rows_like(self, growth: Growth) -> IntArray:
        """The lifetimes of the site and caller of `growth`."""
        stacks = self.history.lifetimes.stack
        site, caller = self.sites.sites(stacks), self.sites.callers(stacks)
        same = [
            number
            for number in np.unique(self.key).tolist()
            if self.sites.location(number // (len(self.sites) + 1) - 1) == growth.site
            and self.sites.location(number % (len(self.sites) + 1) - 1) == growth.caller
        ]
        return np.flatnonzero(np.isin((site.astype(np.int64) + 1) * (len(self.sites) + 1) + caller + 1, same))


def _in_private_pool(history: DeviceHistory) -> BoolArray:
    """Which blocks belong to a CUDA graph or a MemPool: such a pool keeps its blocks, and grows by being made."""
    pool = np.where(history.span >= 0, history.spans.pool[history.span], 0) if len(history.spans) else 0
    return np.asarray((history.lifetimes.pool > 0) | (np.broadcast_to(pool, len(history.lifetimes)) > 0))


def _by_generation(subject: _Subject, boundaries: IntArray) -> list[Growth]:
    """Sites of which blocks from several earlier steps are alive, more of them after every step."""
    steps = len(boundaries)
    if steps < 3 or _is_over(subject, boundaries):
        return []
    lifetimes = subject.history.lifetimes
    live = np.flatnonzero(subject.eligible & lifetimes.allocated_at(subject.at) & (lifetimes.born >= boundaries[0]))
    step = np.searchsorted(boundaries, lifetimes.born[live], side="right") - 1
    old = step < steps - 1
    keys, where = np.unique(subject.key[live], return_inverse=True)
    enough = np.bincount(where[old], weights=subject.history.size[live[old]], minlength=len(keys)) >= subject.least / 2
    return [
        found
        for number in np.flatnonzero(enough).tolist()
        if (found := _generations(subject, boundaries, live[where == number], step[where == number])) is not None
    ]


def _generations(subject: _Subject, boundaries: IntArray, live: IntArray, step: IntArray) -> Growth | None:
    """Whether one site grows: `live` are its live rows, `step` the steps that made them."""
    current = len(boundaries) - 1
    alive = np.unique(step)
    old = alive[alive < current]
    if not len(old):
        return None
    earlier = _generations_before(subject, live[step < current])
    # Every step so far left something, or those before the trace did as well.
    goes_on = len(old) == current or len(earlier) >= _LEAST_BEFORE
    if len(old) < (2 if goes_on else 3):
        return None
    period = float(np.median(np.diff(alive))) if len(alive) > 1 else 1.0
    if alive[-1] < current - max(1.0, period) or len(alive) < 0.6 * ((alive[-1] - alive[0]) / period + 1):
        return None
    size = subject.history.size[live]
    curve = _at_step_ends(subject, boundaries, int(subject.key[live[0]]))[int(old[0]) :]
    # In the midst of a step, what the site makes for this step alone stands on top of what earlier ones left.
    ended = curve[:-1] if len(curve) > 3 or len(earlier) >= _LEAST_BEFORE else curve
    slope, fit = _line(ended)
    if slope <= 0 or fit < _LEAST_FIT or ended[-1] < 0.98 * ended.max() or slope * len(ended) < 0.3 * ended[-1]:
        return None
    spared = int(size[step < alive[-1]].sum())
    if int(size.sum()) < subject.least:
        return None
    earlier = earlier if old[0] <= period else live[:0]
    before = int(subject.history.size[earlier].sum())
    count = len(alive) + round(before * len(old) / int(size[step < current].sum()))
    together = np.concatenate([live, earlier])
    return subject.growth(int(live[0]), "generations", together, slope, count, fit, spared + before)


def _generations_before(subject: _Subject, live: IntArray) -> IntArray:
    """Blocks that the site of the growing rows `live` left behind before the first entry of a trace that wrapped."""
    size = subject.history.size
    same = subject.earlier & (subject.key == subject.key[live[0]])
    return np.flatnonzero(same & (size >= size[live].min()) & (size <= size[live].max()))


def _is_over(subject: _Subject, boundaries: IntArray) -> bool:
    """Whether the loop of these rounds has ended: what came last is none of its code, and longer than a round.

    A training loop is never over: what an evaluation or the next epoch then needs is short of what the steps left.
    """
    lifetimes, trace = subject.history.lifetimes, subject.history.trace
    rows = np.flatnonzero((lifetimes.born >= boundaries[0]) & (lifetimes.born <= subject.at))
    rows = rows[np.argsort(lifetimes.born[rows])]
    phase, stack = subject.phases[rows], lifetimes.stack[rows]
    if np.any((phase == BACKWARD_PHASE) | (phase == OPTIMIZER)):
        return False
    within = lifetimes.born[rows] < boundaries[-1]
    loop = np.unique(stack[within])
    after = np.isin(stack, loop)[::-1]
    strange = int(np.argmax(after)) if after.any() else len(rows)
    if trace.action[subject.at] == Action.OOM:
        if trace.stack[subject.at] in loop:
            return False
        strange += 1
    usual = float(np.median(np.diff(np.searchsorted(lifetimes.born[rows], boundaries))))
    # A loop without a forward only fills something; there is no next batch to wait for.
    return strange > usual * (2 if np.any(phase[within] == FORWARD) else 1)


def _at_step_ends(subject: _Subject, boundaries: IntArray, key: int) -> FloatArray:
    """The live bytes of one site at the end of every finished step, and now."""
    lifetimes = subject.history.lifetimes
    rows = np.flatnonzero(subject.eligible & (subject.key == key))
    size = subject.history.size[rows].astype(np.float64)
    steps = len(boundaries)
    born = np.maximum(np.searchsorted(boundaries, lifetimes.born[rows], side="right") - 1, 0)
    freed = np.searchsorted(boundaries, np.minimum(lifetimes.freed[rows], subject.at + 1), side="right") - 1
    ends = (lifetimes.freed[rows] <= subject.at).astype(np.float64)
    change = np.bincount(born, weights=size, minlength=steps) - np.bincount(
        np.maximum(freed, 0), weights=size * ends, minlength=steps
    )
    return np.asarray(np.cumsum(change)[:steps])


def _line(curve: FloatArray) -> tuple[float, float]:
    """Slope and R² of the straight line through `curve`."""
    if len(curve) < 2 or np.ptp(curve) == 0:
        return 0.0, 0.0
    place = np.arange(len(curve), dtype=np.float64)
    slope = float(np.polyfit(place, curve, 1)[0])
    correlation = float(np.corrcoef(place, curve)[0, 1])
    return slope, correlation * correlation


def _rounds_within(subject: _Subject, boundaries: IntArray, snapshot: Snapshot) -> IntArray:
    """Rounds of a loop inside a last step that is far longer than the others: such as an evaluation after training.

    A step of its usual length may gather what it likes; that is no leak.
    """
    if not len(boundaries):
        return np.zeros(0, np.int64)
    born = subject.history.lifetimes.born
    births = np.flatnonzero((born >= boundaries[-1]) & (born <= subject.at))
    if len(boundaries) > 1:
        made = np.sort(born[born >= boundaries[0]])
        usual = float(np.median(np.diff(np.searchsorted(made, boundaries))))
        if len(births) < 3 * usual:
            return np.zeros(0, np.int64)
    elif np.any(subject.phases[births] >= 2):
        return np.zeros(0, np.int64)
    return find_rounds(births[np.argsort(born[births])], subject.history, snapshot.stacks)


def _reallocated(subject: _Subject) -> list[Growth]:
    found = []
    for one in find_reallocations(subject.history, subject.eligible, subject.at):
        early = int(subject.history.size[one.live].sum()) - one.grown
        if one.grown >= subject.least and one.grown >= 0.1 * early:
            found.append(
                subject.growth(
                    int(one.live[0]), "reallocation", one.live, one.per_round, one.rounds, one.fit, one.grown
                )
            )
    return found


def _over_time(subject: _Subject, study: DeviceStudy) -> list[Growth]:
    """Sites outside any forward that gain blocks all the time, while other blocks come and go in between."""
    lifetimes = subject.history.lifetimes
    role = study.roles.role[lifetimes.stack]
    candidate = subject.eligible & lifetimes.allocated_at(subject.at) & (role == Role.NEUTRAL)
    live = np.flatnonzero(candidate)
    passing = np.sort(lifetimes.born[(lifetimes.born >= 0) & (lifetimes.freed <= subject.at)])
    if len(live) < _LEAST_OVER_TIME or not len(passing):
        return []
    keys, where = np.unique(subject.key[live], return_inverse=True)
    found = []
    for number in range(len(keys)):
        rows = live[where == number]
        rows = rows[np.argsort(lifetimes.born[rows])]
        if len(rows) < _LEAST_OVER_TIME or subject.history.size[rows].sum() < subject.least:
            continue
        born = lifetimes.born[rows]
        others = np.setdiff1d(passing, lifetimes.born[subject.key == keys[number]], assume_unique=True)
        between = np.diff(np.searchsorted(others, born))
        lasting = born[-1] - born[0] >= 0.5 * subject.at and subject.at - born[-1] <= 3 * np.diff(born).max()
        gathered = np.cumsum(subject.history.size[rows]).astype(np.float64)
        correlation = float(np.corrcoef(born, gathered)[0, 1]) ** 2
        if lasting and np.mean(between > 0) >= 0.7 and correlation >= 0.95:
            per_block = float(gathered[-1]) / len(rows)
            spared = int(gathered[-1] - subject.history.size[rows[-1]])
            found.append(subject.growth(int(rows[0]), "time", rows, per_block, len(rows), correlation, spared))
    return found
