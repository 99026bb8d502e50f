"""All that is known of a failed request: what the causes, the remedies and the confidence ask."""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np

from oomscope.analysis.attribution.names_and_holders import named_tensors
from oomscope.analysis.labels.categories import PARAMETER
from oomscope.analysis.labels.drivers import categories_at, find_drivers
from oomscope.analysis.labels.evaluating import evaluates
from oomscope.analysis.labels.model_cost import recorded_item_size
from oomscope.analysis.labels.phases import BACKWARD
from oomscope.analysis.labels.records import Driver
from oomscope.analysis.labels.stack_roles import Role
from oomscope.analysis.memory.pins import find_pins
from oomscope.analysis.memory.records import Pin
from oomscope.analysis.passes.ended_training import find_ended_training
from oomscope.analysis.passes.failing_pass import find_failing_pass
from oomscope.analysis.passes.finished import computes_a_loss, goes_on, optimizes_within, trained_before, trains_within
from oomscope.analysis.passes.former_model import find_former_model
from oomscope.analysis.passes.growth import find_growth
from oomscope.analysis.passes.kept_models import find_kept_models
from oomscope.analysis.passes.last_pass import left_by_last_pass
from oomscope.analysis.passes.left_by_calls import LeftByCalls
from oomscope.analysis.passes.loaded_copies import find_loaded_copies
from oomscope.analysis.passes.loop_that_matters import gathers_for, loop_that_matters, went_as_far_before
from oomscope.analysis.passes.records import CallsInProgress, FailingPass, Growth
from oomscope.analysis.passes.replaced_optimizer import find_replaced_optimizer
from oomscope.analysis.passes.rising_request import RisingRequest, find_rising_request
from oomscope.analysis.passes.work_underway import functions_in_modules
from oomscope.analysis.records import CATEGORIES
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.verdict.asked import who_asked
from oomscope.analysis.verdict.calls import calls_in_progress, failed_at_once, functions_underway
from oomscope.analysis.verdict.card import other_processes
from oomscope.analysis.verdict.done_with import FailedWork, may_be_done_with, other_models
from oomscope.analysis.verdict.failed_requests import FailedRequest
from oomscope.analysis.verdict.failed_tries import from_before_a_failure, left_by_failed_tries
from oomscope.analysis.verdict.idle_models import IdleModel, find_idle_models, find_untrained_models
from oomscope.analysis.verdict.left_by_work import left_by_earlier_work, left_by_trace, left_in_a_collection
from oomscope.analysis.verdict.limits import outside_bytes
from oomscope.analysis.verdict.needs import Needs
from oomscope.analysis.verdict.piled import MOSTLY, LoopFacts, Piled, find_piled
from oomscope.analysis.verdict.places import live_at_places
from oomscope.analysis.verdict.records import Asked, Suspect
from oomscope.analysis.verdict.shortage import MARGIN, Shortage
from oomscope.analysis.verdict.suspects import find_suspects, saved_share
from oomscope.analysis.verdict.waiting import opened_within_the_call
from oomscope.analysis.verdict.walls import Wall, find_walls
from oomscope.analysis.whatif.records import WhatIf
from oomscope.model import BoolArray
from oomscope.model.ordering import ascending
from oomscope.model.recorded_stacks import RecordedSource

_NEVER_WORK = ("exception", "deferred", "optimizer")
"""Kinds of holders whose memory no pass to come needs."""
_PLAIN = re.compile(r": [\w.]+$")
"""A variable of a call, or an attribute that leads on from one, and no item of either."""
_CACHE = (" (lru_cache)", ".<_lru_cache_wrapper>")
"""How the way to what such a function remembers ends."""


class Circumstances:
    """A failed request and its device at that instant. Each part is found when it is first asked for.

    Args:
        study: of the device.
        request: the request that failed.
        whatif: the replays under other settings; None where not made.
    """

    def __init__(self, study: DeviceStudy, request: FailedRequest, whatif: WhatIf | None = None) -> None:
        self.study, self.request, self.whatif = study, request, whatif
        recorded = study.snapshot.recorded.device(study.index)
        self.total, self.cap = recorded.total, recorded.cap

    @cached_property
    def live(self) -> BoolArray:
        """bool[lifetimes]: what was allocated when the request failed."""
        return self.study.history.lifetimes.allocated_at(self.request.entry)

    @cached_property
    def growth(self) -> tuple[Growth, ...]:
        """What grew until then, by site."""
        return find_growth(self.study, self.request.entry)

    @cached_property
    def suspects(self) -> tuple[Suspect, ...]:
        """The Python objects that keep memory alive and are no part of a model, as the recording knows them."""
        return find_suspects(self.study, self.request.entry)

    @cached_property
    def rising(self) -> RisingRequest | None:
        """The series of ever larger tensors that the request continues, if it does."""
        return find_rising_request(self.study, self.request.entry)

    @cached_property
    def piled(self) -> Piled:
        """What finished passes have left behind, and what the program has finished with."""
        underway = functions_underway(self.study, self.in_progress)
        return find_piled(self.growth, self.suspects, underway, self.loop)

    @property
    def leaks_for_sure(self) -> bool:
        """Whether what piles up cannot be what later work needs: each pass is a whole step, or it keeps graphs.

        So does an exception's, and what a function's unbounded cache keeps, and hooks if passes need more and more;
        what a loop that only computes stores in a collection may be read later.
        """
        loop, holder = self.loop, self.piled.holder
        if holder is not None and holder.kind == "hooks":
            return self.needs.rise > 0
        if loop.trains_within or self.piled.models is not None:
            return True
        if holder is None:
            return loop.keeps_graph
        return holder.keeps_graph or holder.kind in _NEVER_WORK or holder.holder.endswith(_CACHE)

    @cached_property
    def keeps_graphs(self) -> bool:
        """Whether autograd graphs are what is alive: by the trace, or since the recording saw blocks saved for them."""
        graphs = any(driver.slug == "retained_graph" for driver in self.drivers)
        return graphs or saved_share(self.study, self.request.entry) >= MOSTLY

    @cached_property
    def left_by_trace(self) -> int:
        """Bytes that the trace shows to be left over by an earlier training, whatever the recording knows of names."""
        return left_by_trace(self.study, self.request.entry)

    @property
    def sources(self) -> tuple[RecordedSource, ...]:
        """The lines of source that the recording brought."""
        return self.study.snapshot.recorded.sources

    @cached_property
    def loop(self) -> LoopFacts:
        """What is known of the loop whose passes are counted."""
        study, entry = self.study, self.request.entry
        unframed, run = bool(self.growth) and self.growth[0].site is None, loop_that_matters(study, entry)
        # Where the batch has grown, what passes fitted beside is not why the last one did not.
        traced = self.failing_pass is None or not self.failing_pass.is_larger
        return LoopFacts(
            goes_on(study, entry),
            trains_within(study, entry),
            trained_before(study, entry),
            self.keeps_graphs or unframed,
            find_kept_models(study, entry),
            self.rising,
            left_by_failed_tries(study, entry),
            find_ended_training(study, entry) if traced else None,
            optimizes_within(study, entry),
            find_loaded_copies(study, entry) if traced else None,
            find_former_model(study, entry) if traced else None,
            self._left_unread if traced else None,
            self.names_known or computes_a_loss(study, entry),
            run is not None and gathers_for(study, study.loops.location(run)) is not None,
            find_replaced_optimizer(study, entry) if traced else None,
            self.failed_at_once,
        )

    @property
    def _left_unread(self) -> LeftByCalls | None:
        if not self.is_in_forward or self.in_progress:
            return None
        if self.reads_known:
            return left_in_a_collection(self.study, self.request, self.suspects)
        passes = None if self.names_known else self.failing_pass  # where names are known, what keeps it is told
        return left_by_earlier_work(self.study, self.request, self.growth, passes)

    @cached_property
    def idle_models(self) -> tuple[IdleModel, ...]:
        """The models that take no part in the forward underway, or have no gradients in an optimizer's step."""
        if self.asked.phase == "optimizer":
            return find_untrained_models(self.study)
        return () if self.trains or not self.is_in_forward else find_idle_models(self.study)

    @cached_property
    def drivers(self) -> tuple[Driver, ...]:
        """What the live bytes were."""
        return find_drivers(self.study, self.request.entry, self.growth)

    @cached_property
    def pins(self) -> tuple[Pin, ...]:
        """What kept the stranded bytes."""
        return find_pins(self.study, self.request.entry, self.request.layout)

    @cached_property
    def movable_pins(self) -> tuple[Pin, ...]:
        """Those that are no model's parameters, which stay where they are."""
        return tuple(one for one in self.pins if not self._is_a_models(one))

    def _is_a_models(self, pin: Pin) -> bool:
        made = live_at_places(self.study, self.live, {(pin.site, pin.caller)})
        parameters = made & (self.study.categories == PARAMETER)
        return 2 * int(self.study.history.size[parameters].sum()) > pin.live_bytes

    @cached_property
    def walls(self) -> tuple[Wall, ...]:
        """The private pools whose free bytes the request was not allowed to use, the one with the most first."""
        return find_walls(self.study, self.request)

    @cached_property
    def asked(self) -> Asked:
        """Which part of the program made the request."""
        return who_asked(self.study, self.request)

    @cached_property
    def categories(self) -> dict[str, int]:
        """Live bytes by category."""
        return self.study.live_by(
            categories_at(self.study, self.request.entry, self.growth), CATEGORIES, self.request.entry
        )

    @cached_property
    def outside(self) -> int | None:
        """Bytes of the card that others hold; None unknown."""
        request = self.request
        return outside_bytes(
            self.study.snapshot,
            self.study.history,
            device_free=request.device_free,
            reserved=request.totals.reserved,
        )

    @cached_property
    def others(self) -> tuple[tuple[str, int], ...]:
        """The other processes on the card, largest first, as (name, bytes); empty where they are not known."""
        return other_processes(self.study)

    @cached_property
    def shortage(self) -> Shortage:
        """The request in numbers."""
        request = self.request
        return Shortage(
            size=request.size,
            reserved=request.totals.reserved,
            limit=request.limit,
            free=request.free,
            grown=self.piled.grown,
            filling=self._may_be_filling,
            retained=self.piled.retained,
            garbage=self._garbage,
            opened=opened_within_the_call(self.study.history, request),
            outside=self.outside,
            total=self.total,
            cap=self.cap,
        )

    @property
    def _garbage(self) -> int:
        """What no code can read, beside what piles up and may be what later work needs."""
        if self.leaks_for_sure:
            return 0
        return sum(one.retained for one in self.piled.debris if one.unread is None or one.kind == "exception")

    @property
    def _may_be_filling(self) -> bool:
        """Whether what grows may be a result: no graphs, no whole steps, and if its holder is known, a plain list."""
        holder, loop = self.piled.holder, self.loop
        if holder is None:
            known = self.names_known and loop.goes_on  # what a loop has filled that ended is in use
            return not (known or loop.keeps_graph or loop.trains_within)
        kinds = ("list",) if loop.goes_on else ("list", "dict")  # a dict that a loop goes on to fill may be a cache
        return holder.kind in kinds and not holder.keeps_graph and _PLAIN.search(holder.holder) is not None

    @cached_property
    def failing_pass(self) -> FailingPass | None:
        """How far the loop had come, and how its last pass compares with this one."""
        return find_failing_pass(self.study, self.request.entry)

    @cached_property
    def in_progress(self) -> tuple[CallsInProgress, ...]:
        """Calls of one function that were underway at the same time, most first."""
        return calls_in_progress(self.study, self.request.entry)

    @cached_property
    def failed_at_once(self) -> bool:
        """Whether many calls were in progress at the first failure: what their errors keep, they had needed at once."""
        return failed_at_once(self.study, self.request.entry)

    @cached_property
    def needs(self) -> Needs:
        """What the pass underway holds and needs."""
        return Needs(self.study, self.request, self.asked.phase, self.failing_pass)

    @property
    def parameter_item(self) -> int | None:
        """Bytes of one element of most parameters, where the recording knows them."""
        return recorded_item_size(self.study.snapshot, self.study.index)

    @cached_property
    def uncertain_bytes(self) -> int:
        """By how much block sizes may be off, for blocks from before the recording."""
        history = self.study.history
        return int(history.slack[history.lifetimes.active_at(self.request.entry)].sum())

    @cached_property
    def names_known(self) -> bool:
        """Whether the recording names tensors and their holders."""
        return bool(named_tensors(self.study.snapshot, self.study.index))

    @property
    def reads_known(self) -> bool:
        """Whether the recording tells which variables are not read again, as older ones do not."""
        recorded = self.study.snapshot.recorded
        return self.names_known and recorded.tells_unread and recorded.walk.complete is not False

    @cached_property
    def varied_sizes(self) -> int:
        """How many different sizes the stack that failed has asked for."""
        lifetimes, stack = self.study.history.lifetimes, self._stack
        return len(ascending(lifetimes.requested[lifetimes.stack == stack])) if stack >= 0 else 0

    @property
    def in_forward(self) -> bool:
        """Whether the request was made in a forward pass."""
        return self._stack >= 0 and bool(self.study.roles.role[self._stack] == Role.FORWARD)

    @cached_property
    def trains(self) -> bool:
        """Whether the work underway is a training step: by its phase, or by the finished passes of its loop.

        Work outside of any loop, and the first pass of a loop after a training, may as well be an evaluation.
        """
        if self.asked.phase in ("backward", "optimizer"):
            return True
        if not np.any(self.study.phases == BACKWARD) or evaluates(self.study.snapshot, self._stack):
            return False
        first = self.failing_pass is None or not self.failing_pass.completed
        return not self.loop.trained_before if first else self.loop.trains_within

    @property
    def may_be_kept(self) -> bool:
        """Whether what was there at an earlier failure would have been enough, and it is not known who keeps it."""
        if self.names_known:
            return False
        low = self.request.limit.low
        kept = from_before_a_failure(self.study, self.request.entry)
        return kept > 0 and self.shortage.spare(kept, low) >= MARGIN * low

    @cached_property
    def may_be_done_with(self) -> int:
        """Bytes that the work underway may not need."""
        return may_be_done_with(self._work, self.suspects, self.drivers)

    @cached_property
    def other_models(self) -> int:
        """Bytes of parameters of which it is not known whether the forward underway needs them."""
        return other_models(self._work)

    @property
    def _work(self) -> FailedWork:
        in_loop = self.failing_pass is not None
        return FailedWork(self.study, self.request.entry, self.asked, self.trains, in_loop, self.names_known)

    @cached_property
    def went_as_far_before(self) -> bool:
        """Whether loops of whatever grows have had as many passes before, and ended."""
        rows = [one for one in self.growth if not one.within_step]
        return bool(rows) and all(went_as_far_before(self.study, one.since_entry, self.request.entry) for one in rows)

    @property
    def is_in_forward(self) -> bool:
        """Whether a module's forward was running, as far as the stack of the request tells."""
        return self.asked.phase == "forward"

    @cached_property
    def functions_in_modules(self) -> frozenset[str]:
        """The functions that were running within a module's call, by name."""
        return functions_in_modules(self.study, self.request.entry)

    @cached_property
    def wasted(self) -> int:
        """Bytes of the allocated blocks that nobody asked for: rounding, and remainders that were not split off."""
        history, known = self.study.history, self.live & (self.study.history.lifetimes.requested > 0)
        return int((history.size[known] - history.lifetimes.requested[known]).clip(min=0).sum())

    @cached_property
    def left_by_last_pass(self) -> int:
        """Bytes of the last finished pass of the loop that are still alive while the next one runs."""
        return left_by_last_pass(self.study, self.request.entry)

    @cached_property
    def keeper_of_last_pass(self) -> Suspect | None:
        """The object that reaches most of them, where the recording knows it."""
        least = self.left_by_last_pass // 2
        found = [one for one in self.suspects if max(one.reaches, one.retained) >= max(least, 1) and one.passes]
        return max(found, key=lambda one: max(one.reaches, one.retained), default=None)

    @property
    def card_unknown(self) -> bool:
        """Whether something outside this allocator may have filled the card: a bare snapshot does not tell."""
        return self.request.limit.source == "device" and self.outside is None

    @property
    def _stack(self) -> int:
        return int(self.study.history.trace.stack[self.request.entry])
