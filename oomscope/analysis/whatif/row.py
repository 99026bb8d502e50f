"""One setting's row: the replay, the orders of addresses, the least memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial

from oomscope.allocator.addresses import Addresses
from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.limits import Limit
from oomscope.allocator.program import Program
from oomscope.allocator.replay import Failure, Replay, Replayer
from oomscope.analysis.whatif.address_orders import other_orders
from oomscope.analysis.whatif.allowance import Allowance
from oomscope.analysis.whatif.least import Least, least_memory
from oomscope.analysis.whatif.preparation import Subject
from oomscope.analysis.whatif.records import WhatIfRow
from oomscope.analysis.whatif.settings import Setting
from oomscope.frozen import frozen
from oomscope.model import Action, Note, note

UP_TO_THE_LAST = note("whatif.up_to_the_last_entry")
SEARCH_REPLAYS = 12
"""About as many whole replays as a search for the least memory costs; those that fail early cost less."""
MOST_REFUSED = 8
"""Retry loops fail hundreds of times: so many of the last are looked at."""
WORKSPACE = note("whatif.workspace")
LESS_WORKSPACE = note("whatif.less_workspace")
FROM_THE_FIRST = note("whatif.recorded_window")


@frozen
class Effort:
    """How much is done for a row.

    Attributes:
        orders: how many orders of addresses are tried, the trace's own among them.
        least_memory: whether the least memory is searched for.
        allowance: what ends the work.
    """

    orders: int
    least_memory: bool
    allowance: Allowance = field(default_factory=Allowance)


@frozen(eq=False)
class Case:
    """What is replayed for a row.

    Attributes:
        subject: the recorded run.
        replayer: its program, as the row changes it.
        setting: the row's setting.
        limit: what may be reserved.
        alternative: where the recorded cap is known only between two bounds, the larger one; else None.
        notes: what holds for the row beforehand.
        as_recorded: whether this is the recorded run itself, whose addresses are known.
        estimate: whether the program is not the recorded one.
    """

    subject: Subject
    replayer: Replayer
    setting: Setting
    limit: Limit
    alternative: Limit | None = None
    notes: tuple[Note, ...] = ()
    as_recorded: bool = False
    estimate: bool = False

    @property
    def config(self) -> AllocatorConfig:
        """The settings."""
        return self.setting.config


def answer(case: Case, effort: Effort, known: Replay | None = None) -> WhatIfRow:
    """The row of a case.

    Args:
        case: what is asked.
        effort: how much is done for it.
        known: the replay in the trace's own order, where it was made before.
    """
    own = known or case.replayer.run(case.config, case.limit, case.subject.addresses())
    others, skipped = _other_replays(case, own, effort)
    notes = [UP_TO_THE_LAST if case.subject.complete else FROM_THE_FIRST, *case.notes]
    notes += _about_the_cap(case, own)
    higher = _at_the_higher_cap(case, own)
    oom, verdict_note = _verdict(case, own, others, higher)
    least, least_notes = _least(case, effort, own)
    failure = own.failures[0] if own.failures else None
    optional = failure is not None and not failure.recorded and _is_optional(case, failure)
    notes += [*filter(None, (verdict_note, skipped)), *least_notes, *([WORKSPACE] if optional else [])]
    ranges = {
        name: _span([getattr(replay, name) for replay in (own, *others)])
        for name in ("peak_reserved", "final_reserved", "peak_allocated", "retries")
    }
    agree = all(low == high for low, high in ranges.values()) and oom is not None
    if not agree and oom is not None:
        notes.append(note("whatif.order_matters", orders=1 + len(others)))
    bound = case.limit.bytes
    return WhatIfRow(
        setting=case.setting.text,
        limit=bound,
        peak_reserved=own.peak_reserved,
        final_reserved=own.final_reserved,
        peak_allocated=own.peak_allocated,
        segment_allocs=own.segment_allocs,
        retries=own.retries,
        oom=oom,
        failed_allocation=None if failure is None else case.subject.allocations_before(failure.entry),
        served=_served(case, [own, *others, *([higher] if higher else [])]),
        conf=case.config.text,
        headroom=_headroom(own, bound),
        least_memory=None if least is None else least.cap,
        least_memory_retries=None if least is None else least.retries,
        range=ranges,
        exact=agree and not (case.estimate or optional) and skipped is None and _holds_for_all_caps(case, own),
        notes=tuple(notes),
    )


def _is_optional(case: Case, failure: Failure) -> bool:
    return case.replayer.program.gives_back_at_once(failure.request)


def _other_replays(case: Case, own: Replay, effort: Effort) -> tuple[list[Replay], Note | None]:
    """Replays in other orders of addresses, where the order can matter; and what was left out."""
    if case.as_recorded or not own.may_depend_on_addresses:
        return [], None
    makers: Sequence[Callable[[], Addresses]] = other_orders(effort.orders - 1)
    replays: list[Replay] = []
    for maker in makers:
        if not effort.allowance.allows(case.replayer.steps):
            return replays, note("whatif.orders_cut_short", orders=1 + len(replays))
        replays.append(case.replayer.run(case.config, case.limit, maker()))
    return replays, None if replays else note("whatif.one_order")


def _at_the_higher_cap(case: Case, own: Replay) -> Replay | None:
    """The replay at the highest that the recorded cap may have been; None where it cannot differ."""
    if own.survived or _holds_for_all_caps(case, own):
        return None
    assert case.alternative is not None
    return case.replayer.run(case.config, case.alternative, case.subject.addresses())


def _verdict(
    case: Case, own: Replay, others: Sequence[Replay], higher: Replay | None
) -> tuple[bool | None, Note | None]:
    """Whether it runs out of memory; None, with the reason, where that is not certain."""
    outcomes = [not replay.survived for replay in (own, *others)]
    if any(outcomes) and not all(outcomes):
        return None, note("whatif.fails_in_some_orders", failed=sum(outcomes), orders=len(outcomes))
    if higher is not None and higher.survived:
        return None, note("whatif.depends_on_the_cap", fails=case.limit.bytes or 0, survives=higher.limit.bytes or 0)
    return outcomes[0], None


def _served(case: Case, replays: Sequence[Replay]) -> dict[int, bool | None]:
    """What becomes of the last requests that the recorded run was refused, where all replays agree."""
    refused = case.subject.device.trace.entries(Action.OOM)[-MOST_REFUSED:].tolist()
    fates = {entry: {replay.serves(entry) for replay in replays} for entry in refused}
    return {entry: fate.pop() if len(fate) == 1 else None for entry, fate in fates.items()}


def _about_the_cap(case: Case, own: Replay) -> list[Note]:
    """What follows for a row from not knowing the recorded cap."""
    if case.alternative is None:
        return []
    low, high = case.limit.bytes or 0, case.alternative.bytes or 0
    if _holds_for_all_caps(case, own):
        return [note("whatif.any_cap_gives_the_same", low=low, high=high)]
    return [note("whatif.lowest_cap_taken", low=low, high=high)]


def _holds_for_all_caps(case: Case, own: Replay) -> bool:
    """Whether the replay is the same whatever the recorded cap was."""
    if case.alternative is None or case.alternative.cap is None:
        return True
    return own.same_caps is not None and (own.same_caps[1] is None or own.same_caps[1] > case.alternative.cap)


def _least(case: Case, effort: Effort, own: Replay) -> tuple[Least | None, list[Note]]:
    """The least memory, and what to know of it; or, with the reason, none."""
    if not effort.least_memory:
        return None, []
    if case.replayer.program.initial is not None:
        return None, [note("whatif.least_memory_unknown")]
    # Near the least memory it comes and goes in each pass, so that no pass is left out.
    steps = len(case.replayer.program.op)
    if not effort.allowance.allows(SEARCH_REPLAYS * steps):
        return None, [note("whatif.least_memory_not_searched")]
    # Whatever card is asked for, the ranges of expandable segments are those of the recorded one.
    total = case.subject.limit.limit.device_total
    known = own if case.limit.address_space == Limit(device_total=total).address_space else None
    may_go_on = partial(effort.allowance.allows, steps)
    found = least_memory(case.replayer, case.config, case.subject.addresses, total, may_go_on, known)
    return found, _about_the_least(case.replayer.program, found)


def _about_the_least(program: Program, found: Least) -> list[Note]:
    notes = []
    if found.lives_at is not None:
        notes.append(note("whatif.survives_with_less", bytes=found.cap - found.lives_at))
    if found.proven_to == found.cap:
        notes.append(note("whatif.least_memory_here_only"))
    elif found.proven_to is not None:
        notes.append(note("whatif.least_memory_proven_to", limit=found.proven_to))
    if found.refused is not None and program.gives_back_at_once(found.refused):
        notes.append(LESS_WORKSPACE)
    return notes


def _headroom(replay: Replay, bound: int | None) -> int | None:
    if bound is None:
        return None
    if replay.failures:
        return -replay.failures[0].missing
    # A cap is compared with requests, so the last page of an expandable segment may go beyond it.
    return max(bound - replay.peak_reserved, 0)


def _span(values: Sequence[int]) -> tuple[int, int]:
    return min(values), max(values)


def unanswered(setting: Setting, limit: Limit, why: Note | None) -> WhatIfRow:
    """The row of a setting that cannot be answered."""
    return WhatIfRow(setting=setting.text, limit=limit.bytes, notes=(note("whatif.not_answered", why=why),))
