"""No headline contradicts its own numbers, whatever failed: made-up programs, and captures of real ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomscope.analysis.passes.records import NO_LONGER
from oomscope.analysis.passes.same_call import LEAST_LARGER
from oomscope.analysis.study import SnapshotStudy
from oomscope.analysis.verdict.calls import LEAST_CALLS
from oomscope.analysis.verdict.causes import CAUSE_MODULES
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.decide import decide
from oomscope.analysis.verdict.failed_requests import failed_requests
from oomscope.analysis.verdict.hooks import LEAST_HOOKS
from oomscope.analysis.verdict.judge import judge
from oomscope.analysis.verdict.outsized import TIMES
from oomscope.analysis.verdict.records import Verdict
from oomscope.model import Note, Snapshot
from oomscope.wording import say
from oomscope.wording.causes import CAUSES
from tests.analysis.oom_programs import KINDS, holes_of_another_stream, larger_batch, tight, walls_at_a_higher_limit
from tests.shared import SHARED
from tests.verdict.known import TESTS, captures_in, programs, recorded, shared

Values: TypeAlias = Mapping[str, Any]
Check: TypeAlias = Callable[[Values, Circumstances], bool]

PROGRAMS = [*KINDS.values(), tight, holes_of_another_stream, walls_at_a_higher_limit, larger_batch]
CAPTURES = [
    *(one.path for one in captures_in(TESTS / "captures") if one.cause),
    *(one.path for one in programs().values()),
    *([one.path for one in shared()] if SHARED.is_dir() else []),
]


def within(part: int, whole: int) -> bool:
    return 0 < part <= whole


def room(about: Circumstances) -> int:
    """What could still be reserved."""
    return max(about.request.limit.low - about.request.totals.reserved, 0)


def kept(values: Values, about: Circumstances) -> bool:
    return within(values["retained"], values["live"]) and values["live"] == about.request.totals.allocated


def kept_beside(values: Values, about: Circumstances) -> bool:
    return 0 < values["retained"] + values.get("more", 0) <= about.piled.retained - about.piled.debris[0].retained


def grown_beside(values: Values, about: Circumstances) -> bool:
    holder = about.piled.holder
    return holder is not None and 0 < values["retained"] <= about.piled.grown - holder.earlier_bytes


def piled(values: Values, about: Circumstances) -> bool:
    return values["passes"] > 0 and within(values["bytes"], about.request.totals.active)


def fragmented(values: Values, about: Circumstances) -> bool:
    withheld = values["usable"] + values["room"]
    return values["largest"] < values["size"] <= withheld and values["spare"] == withheld - values["size"]


def asked(values: Values, about: Circumstances) -> bool:
    return values["size"] == about.request.size > values["limit"] > 0


def had_room(values: Values, about: Circumstances) -> bool:
    return values["free"] >= about.request.size > 0


def always(values: Values, about: Circumstances) -> bool:
    return True


CHECKS: dict[str, Check] = {
    "causes.oversized_request.cap": asked,
    "causes.oversized_request.card": asked,
    "causes.oversized_request.limit": asked,
    "causes.oversized_request.refused": asked,
    "causes.growth.holder": lambda values, about: (
        kept(values, about) and values["tensors"] > 0 < (values["passes"] or 1) and (values["per_pass"] or 1) > 0
    ),
    "causes.growth.views": lambda values, about: (
        kept(values, about) and values["tensors"] > 0 < (values["passes"] or 1) and (values["per_pass"] or 1) > 0
    ),
    "causes.growth.exceptions": kept,
    "causes.growth.models": piled,
    "causes.growth.parameters": piled,
    "causes.growth.cycle": lambda values, about: kept(values, about) and values["passes"] > 0,
    "causes.growth.hooks": lambda values, about: kept(values, about) and values["hooks"] >= LEAST_HOOKS,
    "causes.growth.passes": lambda values, about: piled(values, about) and values["per_pass"] > 0,
    "causes.growth.every": lambda values, about: piled(values, about) and values["each"] > 0 and values["every"] > 1,
    "causes.growth.rising": lambda values, about: (
        values["joins"] > 0 < values["per_join"] and within(values["bytes"], about.request.totals.active)
    ),
    "causes.growth.reallocation": lambda values, about: (
        values["per_pass"] > 0 and within(values["bytes"], about.request.totals.active)
    ),
    "causes.growth.time": lambda values, about: within(values["bytes"], about.request.totals.active),
    "causes.growth.reached": lambda values, about: within(values["bytes"], about.request.totals.active),
    "causes.growth.without": lambda values, about: 0 <= values["needs"] <= values["limit"],
    "causes.growth.without_capped": lambda values, about: (
        0 <= values["needs"] <= values["limit"] and had_room(values, about)
    ),
    "causes.capacity.loading": lambda values, about: within(values["bytes"], about.request.totals.active),
    "causes.capacity.first_step": lambda values, about: 0 <= values["made"] < values["needs"],
    "causes.capacity.history": lambda values, about: 0 < values["bytes"] <= about.request.totals.active,
    "causes.capacity.as_larger": lambda values, about: (
        values["ratio"] > NO_LONGER and values["bytes"] > about.request.totals.active
    ),
    "causes.retained.view": kept,
    "causes.retained.beside_holes": lambda values, about: values["largest"] < about.request.size,
    "causes.in_pieces": lambda values, about: values["largest"] < about.request.size <= values["usable"],
    "causes.retained.exception": kept,
    "causes.retained.cycle": kept,
    "causes.retained.optimizer": kept,
    "causes.retained.finished": kept,
    "causes.retained.ended_training": kept,
    "causes.retained.loaded": kept,
    "causes.growth.beside": grown_beside,
    "causes.retained.also": kept_beside,
    "causes.retained.also_frozen": kept_beside,
    "causes.retained.also_frozen_states": kept_beside,
    "causes.retained.calls": kept,
    "causes.retained.collection": kept,
    "causes.retained.statements": kept,
    "causes.retained.pass": kept,
    "causes.retained.former_model": kept,
    "causes.retained.replaced_optimizer": kept,
    "causes.retained.frozen": kept,
    "causes.retained.frozen_states": kept,
    "causes.retained.graph": kept,
    "causes.retained.unread": kept,
    "causes.retained.by_hooks": lambda values, about: within(values["retained"], about.piled.debris[0].retained),
    "causes.retained.deferred": kept,
    "causes.retained.history": kept,
    "causes.retained.failed_tries": kept,
    "causes.private_pools": lambda values, about: (
        values["pools"] > 0 and within(values["size"], values["walled"] + room(about))
    ),
    "causes.private_pools_closely": lambda values, about: (
        values["pools"] > 0 and within(values["size"], values["walled"] + room(about))
    ),
    "causes.capacity.outsized": lambda values, about: (
        values["times"] >= TIMES and within(values["size"], about.request.size)
    ),
    "causes.private_pools.each_pass": lambda values, about: values["passes"] == about.failing_pass.finished > 0,
    "causes.private_pools.most": lambda values, about: 0 < values["free"] <= about.request.free.walled,
    "causes.other_stream.opened": lambda values, about: within(values["size"], values["opened"]),
    "causes.other_stream.free": lambda values, about: within(about.request.size, values["free"] + room(about)),
    "causes.other_stream.pending": lambda values, about: within(about.request.size, values["pending"] + room(about)),
    "causes.other_stream.both": lambda values, about: (
        values["free"] > 0 < values["pending"]
        and about.request.size <= values["free"] + values["pending"] + room(about)
    ),
    "causes.outside_allocator": lambda values, about: (
        values["outside"] > 0 and values["outside"] + values["reserved"] <= values["total"]
    ),
    "causes.fragmentation": fragmented,
    "causes.fragmentation.pinned_all": lambda values, about: values["blocks"] > 0,
    "causes.fragmentation.pinned": lambda values, about: (
        values["blocks"] > 0 and within(values["bytes"], about.request.totals.reserved)
    ),
    "causes.fragmentation.holder": lambda values, about: within(values["bytes"], about.request.totals.active),
    "causes.other_stream.kept_by": lambda values, about: (
        values["blocks"] > 0
        and within(values["bytes"], about.request.totals.active)
        and within(values["kept"], about.request.totals.reserved)
    ),
    "causes.capacity.keeper": kept,
    "causes.capacity.drivers": lambda values, about: (
        sum(count for _, count in values["parts"]) <= values["live"] and all(count > 0 for _, count in values["parts"])
    ),
    "causes.capacity.needs": lambda values, about: (
        values["needs"] > values["limit"] > 0 and values["over"] == values["needs"] - values["limit"]
    ),
    "causes.capacity.like_last": lambda values, about: (
        values["needs"] > values["limit"] > 0 and about.needs.still_to_come > about.request.size
    ),
    "causes.capacity.nearly": lambda values, about: 0 < values["needs"] <= values["limit"],
    "causes.capacity.underway": lambda values, about: (
        within(values["made"], about.request.totals.active) and (values["before"] or 0) < values["made"]
    ),
    "causes.capacity.rest_unknown": lambda values, about: 0 < values["bytes"] < about.needs.at_work,
    "causes.capacity.tensor": lambda values, about: within(values["bytes"], about.request.totals.allocated),
    "causes.capacity.rising": lambda values, about: values["bytes"] == about.needs.rise > 0,
    "causes.capacity.idle_model": lambda values, about: within(values["bytes"], about.request.totals.allocated),
    "causes.capacity.untrained_model": lambda values, about: within(values["bytes"], about.request.totals.allocated),
    "causes.capacity.asked": lambda values, about: values["size"] == about.request.size,
    "causes.capacity.allocated": lambda values, about: values["bytes"] == about.request.totals.allocated,
    "causes.capacity.short": lambda values, about: values["bytes"] > 0,
    "causes.capacity.close": lambda values, about: values["bytes"] > 0,
    "causes.capacity.nothing_left": lambda values, about: values["bytes"] == 0,
    "causes.failed_at_once": lambda values, about: within(values["bytes"], about.request.totals.allocated),
    "causes.in_progress": lambda values, about: values["calls"] >= LEAST_CALLS,
    "causes.pass.first": always,
    "causes.pass.after": lambda values, about: values["completed"] > 0,
    "causes.pass.gathers": lambda values, about: (
        values["passes"] > 0 and (values["backward"] is not None or values["before"] is not None)
    ),
    "causes.pass.left": lambda values, about: within(values["bytes"], about.request.totals.allocated),
    "causes.pass.keeps": lambda values, about: (
        values["completed"] > 0 and values["before"] < values["bytes"] <= about.request.totals.allocated
    ),
    "causes.pass.longer": lambda values, about: (
        values["completed"] > 0 < NO_LONGER < min(values["ratio"], values.get("times", values["ratio"]))
    ),
    "causes.pass.larger_call": lambda values, about: values["ratio"] >= LEAST_LARGER,
    "causes.pass.input": lambda values, about: (
        values["ratio"] > NO_LONGER and all(side > 0 for side in values["shape"])
    ),
    "causes.pass.staircase": lambda values, about: 0 < values["first"] < values["last"],
    "causes.cap": lambda values, about: had_room(values, about) and values["cap"] > 0,
    "causes.cap.inferred": lambda values, about: had_room(values, about) and values["limit"] > 0,
}
"""What the values of each sentence must satisfy to be true of themselves and of the request."""


def test_every_sentence_of_a_headline_is_checked() -> None:
    assert set(CHECKS) == set(CAUSES)


def numbers(value: Any) -> Iterator[float]:
    """All numbers within a value."""
    if isinstance(value, (int, float)):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from numbers(one)


def check(snapshot: Snapshot) -> None:
    """Check the verdict on each request that failed."""
    for study in SnapshotStudy(snapshot).devices:
        for request in failed_requests(study):
            about = Circumstances(study, request)
            check_verdict(about, judge(about))


def check_verdict(about: Circumstances, verdict: Verdict) -> None:
    tested = replace(decide(about.shortage), cause=verdict.cause, qualifying=verdict.qualifying)
    assert CAUSE_MODULES[verdict.cause].holds(about, tested)
    assert verdict.headline
    for one in verdict.headline:
        check_note(one, about)
    assert all(one.bytes >= 0 for one in verdict.evidence)
    assert all(one.retained <= about.request.totals.allocated for one in verdict.suspects)


def check_note(one: Note, about: Circumstances) -> None:
    assert CHECKS[one.code](one.values, about), (one, about.shortage)
    stream = {"stream"}  # an address
    assert not [
        value for key, value in one.values.items() if key not in stream for value in numbers(value) if value < 0
    ]
    text = say(one)
    assert text.endswith(".")
    assert not re.search(r"[-−]\d|None|\{|\}", text), text


@settings(max_examples=80)
@given(st.sampled_from(PROGRAMS), st.integers(0, 10_000), st.booleans())
def test_headlines_on_made_up_programs(make: Callable[[int], Any], seed: int, with_context: bool) -> None:
    check(make(seed).snapshot(with_context=with_context))


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name.partition(".pickle")[0])
def test_headlines_on_captures(path: Path) -> None:
    check(recorded(path))
    check(replace(recorded(path), context=None))
