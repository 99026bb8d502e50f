"""Running a program through the allocator."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np

from oomscope.allocator.addresses import Addresses
from oomscope.allocator.compiled import CHOICE
from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.device import UNBOUNDED, DeviceCachingAllocator
from oomscope.allocator.limits import NO_LIMIT, Limit
from oomscope.allocator.plain import PlainRun, Prepared
from oomscope.allocator.program import Program
from oomscope.allocator.repeats import Forms
from oomscope.allocator.torch_releases import LATEST, Release
from oomscope.frozen import frozen
from oomscope.model import Action, IntArray


@frozen
class Failure:
    """A request that could not be served.

    Attributes:
        request: its number.
        entry: the trace entry it comes from.
        missing: bytes by which the limit was too small, as it was compared.
        recorded: whether the recorded run was refused the same request.
    """

    request: int
    entry: int
    missing: int
    recorded: bool


@frozen(eq=False)
class Replay:
    """What became of a program. Bytes.

    Attributes:
        config: the settings it ran under.
        limit: what it could reserve.
        peak_reserved, final_reserved: memory obtained from the device; final where the program ended or failed.
        peak_allocated: the most in use at once.
        segment_allocs: how often memory was obtained from the device.
        retries: how often all cached blocks were released to serve a request (num_alloc_retries).
        same_caps: (least, end): under any cap from `least` to below `end` the replay is the same; None where garbage
            collection makes every cap different. `end` is None where nothing was refused.
        refused: whether the limit ever refused memory, be it that the request was served after a release.
        failures: the requests that could not be served. The program ends at the first that the recorded one was
            served; it goes on after those that it was refused itself.
        addresses: int64: for each request in the order of the program, where its block lay; -1 where it failed. Empty
            if they were not to be noted.
        segment_events: (action, address, size) of every change of the reserved memory.
        may_depend_on_addresses: whether another order of segment addresses could have given another result.
        steps: how many were taken for it, whoever took them; those that only repeat are not.
    """

    config: AllocatorConfig
    limit: Limit
    peak_reserved: int
    final_reserved: int
    peak_allocated: int
    segment_allocs: int
    retries: int
    same_caps: tuple[int, int | None] | None
    refused: bool
    failures: tuple[Failure, ...]
    addresses: IntArray = field(repr=False)
    segment_events: list[tuple[Action, int, int]] = field(repr=False)
    may_depend_on_addresses: bool = True
    steps: int = 0

    @property
    def survived(self) -> bool:
        """Whether every request was served."""
        return not self.failures

    def serves(self, entry: int) -> bool:
        """Whether the request of trace entry `entry` is served; not where the replay ended before it."""
        return all(failed.entry != entry and (failed.recorded or failed.entry > entry) for failed in self.failures)


def replay(
    program: Program,
    config: AllocatorConfig,
    limit: Limit = NO_LIMIT,
    addresses: Addresses | None = None,
    release: Release = LATEST,
) -> Replay:
    """Run `program` once; see `Replayer.run`."""
    return Replayer(program, release).run(config, limit, addresses)


class Replayer:
    """Runs one program as often as wanted."""

    def __init__(self, program: Program, release: Release = LATEST) -> None:
        """Prepare a program.

        Args:
            program: what is asked for.
            release: whose rules hold.
        """
        self.program = program
        self._capturing = {number for number, pool in enumerate(program.pools) if release.captures(pool)}

    @cached_property
    def _forms(self) -> Forms:
        return Forms(self.program)

    @cached_property
    def _prepared(self) -> dict[tuple[int, ...], Prepared]:
        return {}

    def _form(self, together: tuple[int, ...]) -> Prepared:
        found = self._prepared.get(together)
        if found is None:
            found = self._prepared[together] = Prepared(self._forms.form(together), self._capturing)
        return found

    @property
    def steps(self) -> int:
        """How many a replay takes where what repeats need not be replayed."""
        return len(self._form(self._forms.shortest).program.op)

    def run(
        self,
        config: AllocatorConfig,
        limit: Limit = NO_LIMIT,
        addresses: Addresses | None = None,
        *,
        stop_at_failure: bool = False,
        note_addresses: bool = False,
        compiled: bool | None = None,
    ) -> Replay:
        """Run the program under `config` until it ends or a request fails that the recorded run was served.

        Args:
            config: the settings.
            limit: what may be reserved.
            addresses: where new segments lie; ascending if None.
            stop_at_failure: whether to end at any request that fails.
            note_addresses: whether to keep the address of every block.
            compiled: whether the compiled core does it, which answers the same; None: where it is worth it.
        """
        # By garbage collection blocks age, so that no pass is like another.
        ages = limit.cap is not None and config.garbage_collection_threshold > 0
        together = tuple(0 for _ in self._forms.loops) if ages else self._forms.shortest
        form = self._form(together)
        if compiled is None:
            compiled = CHOICE.of(len(form.program.op)) is not None
        begin = _begin_compiled if compiled and not (config.base_alignment and config.expandable_segments) else PlainRun
        run = begin(form, config, limit, addresses, note_addresses)
        self._take(run, together, stop_at_failure)
        replay = _outcome(run, config, limit)
        run.let_go()
        return replay

    def _take(self, run: PlainRun, together: tuple[int, ...], stop_at_failure: bool) -> None:
        """Take the steps of a form of the program, and of a longer one where that does not stand for the whole."""
        at = 0
        for number in range(len(together)):
            while (check := run.prepared.folded.checks.get(number)) is not None:
                if not run.steps(at, check.begin, stop_at_failure):
                    return
                before = run.standing()
                if not run.steps(check.begin, check.end, stop_at_failure):
                    return
                at = check.end
                if check.holds(before, run.standing()):
                    break
                together = self._forms.longer(together, number)
                run.go_on_as(self._form(together))
        run.steps(at, len(run.prepared.program.op), stop_at_failure)


def _begin_compiled(*arguments: Any) -> Any:
    core = CHOICE.load()
    if core is None:
        raise ModuleNotFoundError("The compiled core needs numba: pip install 'oomscope[fast]'.")
    return core.CompiledRun(*arguments)


def _outcome(run: PlainRun, config: AllocatorConfig, limit: Limit) -> Replay:
    allocator, program, folded = run.allocator, run.prepared.program, run.prepared.folded
    failures = tuple(_failure(program, folded.request, *refused) for refused in run.refused)
    several = any(count > 1 for count in allocator.expandable_segments.values())
    return Replay(
        config=config,
        limit=limit,
        peak_reserved=allocator.peak_reserved,
        final_reserved=allocator.reserved,
        peak_allocated=allocator.peak_allocated,
        segment_allocs=allocator.num_device_alloc,
        retries=allocator.num_alloc_retries,
        same_caps=_same_caps(allocator),
        refused=allocator.missing > 0,
        failures=failures,
        addresses=_of_all(folded.asked, run.addresses()),
        segment_events=allocator.segment_events,
        # One range of addresses a stream and pool leaves nothing to choose between.
        may_depend_on_addresses=several or not config.expandable_segments or program.initial is not None,
        steps=run.taken,
    )


def _failure(program: Program, request_of: IntArray, request: int, recorded: bool, missing: int) -> Failure:
    entry = int(program.entry[np.flatnonzero(program.asks_for(request))[0]])
    return Failure(request=int(request_of[request]), entry=entry, missing=missing, recorded=recorded)


def _of_all(asked: IntArray, found: IntArray) -> IntArray:
    """What was found for the requests that were made, for those too that they stand for."""
    if not len(found) or len(asked) == len(found):
        return found
    beyond = np.flatnonzero(asked >= len(found))
    return found[asked[: beyond[0]] if len(beyond) else asked]


def _same_caps(allocator: DeviceCachingAllocator) -> tuple[int, int | None] | None:
    if allocator.collects_garbage:
        return None
    refused = allocator.least_refused
    return allocator.most_allowed, None if refused == UNBOUNDED else refused
