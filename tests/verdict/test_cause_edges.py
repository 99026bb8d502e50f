"""The thresholds of the causes and their sentences, each just below and just above."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oomscope.analysis.labels.categories import ACTIVATION, GRADIENT, OPTIMIZER_STATE, PARAMETER
from oomscope.analysis.passes.left_by_calls import LeftByCalls
from oomscope.analysis.passes.records import NO_LONGER, CallsInProgress, FailingPass
from oomscope.analysis.passes.rising_request import RisingRequest
from oomscope.analysis.records import Location
from oomscope.analysis.verdict import circumstances as facts
from oomscope.analysis.verdict import clauses, decide, idle_models, judge, left_by_work, shortage
from oomscope.analysis.verdict.causes import (
    CAUSE_MODULES,
    capacity,
    fragmentation,
    growth,
    other_stream,
    outside_allocator,
    oversized_request,
    private_pools,
    retained,
)
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.evidence import gather_evidence
from oomscope.analysis.verdict.idle_models import IdleModel
from oomscope.analysis.verdict.judge import confidence_with
from oomscope.analysis.verdict.left_by_work import MUCH_OLDER
from oomscope.analysis.verdict.piled import LoopFacts, Piled
from oomscope.analysis.verdict.records import Asked, Suspect
from oomscope.analysis.verdict.walls import Wall
from oomscope.model.recorded_holders import RecordedHolder
from oomscope.wording import say
from tests.analysis.test_counterfactuals import GIB, case, free
from tests.verdict import stand_ins
from tests.verdict.stand_ins import circumstances, driver, outcome, pin, suspect

MIB = GIB >> 10
STUDY: Any = None
"""Where all that asks it is replaced."""


def codes(notes: Any) -> list[str]:
    return [note.code for note in notes]


@pytest.mark.parametrize(("outside", "withheld"), [(shortage.NORMAL_OUTSIDE, 0), (shortage.NORMAL_OUTSIDE + 1, 1)])
def test_more_than_a_normal_context_is_somebody_elses(outside: int, withheld: int) -> None:
    assert outside_allocator.withheld(case(outside=outside, total=80 * GIB)) == withheld


@pytest.mark.parametrize(("outside", "device"), [(None, 80), (0, 80), (1, 79), (2, 79)])
def test_only_a_normal_context_makes_a_card_smaller(outside: int | None, device: int) -> None:
    one = case(outside=None if outside is None else outside * shortage.NORMAL_OUTSIDE, total=80 * GIB)
    assert one.device == device * GIB


@pytest.mark.parametrize(("size", "cause"), [(80 * GIB, "capacity"), (80 * GIB + 1, "oversized_request")])
def test_a_request_is_oversized_from_the_first_byte_beyond_the_card(size: int, cause: str) -> None:
    assert decide.decide(case(size=size, total=80 * GIB)).cause == cause


@pytest.mark.parametrize(("usable", "cause"), [(6 * GIB, "growth"), (6 * GIB + 1, "fragmentation")])
def test_what_withheld_far_more_goes_before_what_has_piled_up(usable: int, cause: str) -> None:
    assert decide.FAR_MORE == 2
    found = decide.decide(case(grown=3 * GIB, free=free(usable=usable)))
    assert found.cause == cause
    assert {one.cause for one in found.qualifying} == {"growth", "fragmentation"}


@pytest.mark.parametrize(
    ("usable", "grown", "cause"),
    [
        (2500 * MIB, 4 * GIB, "fragmentation"),
        (2500 * MIB - 1, 4 * GIB, "growth"),
        (4 * GIB, 8 * GIB, "fragmentation"),
        (4 * GIB - 1, 8 * GIB, "growth"),
    ],
)
def test_a_result_that_is_gathered_goes_behind_holes_that_are_enough_for_half_of_it_again(
    usable: int, grown: int, cause: str
) -> None:
    assert decide.FULL_OF_HOLES == 0.25
    gathered = case(size=1 * GIB, low=10_000 * MIB, grown=grown, free=free(usable=usable), filling=True)
    assert decide.decide(gathered).cause == cause
    assert decide.decide(case(size=1 * GIB, low=10_000 * MIB, grown=grown, free=free(usable=usable))).cause == "growth"


def test_what_nothing_uses_any_more_is_no_result() -> None:
    one = case(grown=0, retained=4 * GIB, free=free(usable=5 * GIB), filling=True)
    assert decide.decide(one).cause == "retained"


@pytest.mark.parametrize(
    ("holder", "names_known", "loop", "filling"),
    [
        (stand_ins.suspect("main: signals", "list"), True, LoopFacts(trains_within=True), True),
        (stand_ins.suspect("main: server.signals", "list"), True, LoopFacts(), True),
        (stand_ins.suspect("main: servers[*].signals", "list"), True, LoopFacts(), False),
        (stand_ins.suspect("main: signals", "dict"), True, LoopFacts(), False),
        (stand_ins.suspect("main: signals", "dict"), True, LoopFacts(goes_on=False), True),
        (stand_ins.suspect("main: signals", "closure"), True, LoopFacts(goes_on=False), False),
        (stand_ins.suspect("main: signals", "list", keeps_graph=True), True, LoopFacts(), False),
        (None, True, LoopFacts(), False),
        (None, True, LoopFacts(goes_on=False), True),
        (None, False, LoopFacts(), True),
        (None, False, LoopFacts(trains_within=True), False),
        (None, False, LoopFacts(keeps_graph=True), False),
    ],
)
def test_a_plain_list_of_a_call_may_be_its_result(
    holder: Suspect | None, names_known: bool, loop: LoopFacts, filling: bool
) -> None:
    one: Any = SimpleNamespace(loop=loop, piled=Piled(holder=holder), names_known=names_known)
    assert Circumstances._may_be_filling.fget(one) is filling  # type: ignore[attr-defined]


@pytest.mark.parametrize(("garbage", "cause"), [(2 * GIB, "retained"), (2 * GIB - 1, "growth")])
def test_what_may_be_read_some_day_goes_behind_as_much_garbage(garbage: int, cause: str) -> None:
    one = case(grown=4 * GIB, retained=3 * GIB, garbage=garbage)
    assert decide.decide(one).cause == cause


@pytest.mark.parametrize(
    ("sure", "unread", "garbage"), [(False, None, 1000), (True, None, 0), (False, "proven", 0), (False, "likely", 0)]
)
def test_garbage_is_what_no_code_can_read(sure: bool, unread: str | None, garbage: int) -> None:
    debris = (stand_ins.suspect("reference cycle: A → A", "cycle", unread=unread),)
    one: Any = SimpleNamespace(leaks_for_sure=sure, piled=Piled(debris=debris))
    assert Circumstances._garbage.fget(one) == garbage  # type: ignore[attr-defined]


@pytest.mark.parametrize("pile", decide.PILES)
def test_one_pile_is_never_put_behind_the_other(pile: str) -> None:
    piles = {"grown": 3 * GIB, "retained": 9 * GIB} if pile == "growth" else {"retained": 3 * GIB}
    assert decide.decide(case(**piles)).cause == pile


@pytest.mark.parametrize(("spare", "confidence"), [(300, "high"), (299, "medium")])
def test_a_wall_is_sure_with_margin(spare: int, confidence: str) -> None:
    assert shortage.MARGIN == 0.03
    found = confidence_with(clauses.doubt_of_wall(circumstances(), outcome("private_pools", spare), 2000))
    assert found == confidence


@pytest.mark.parametrize(("piece", "confidence"), [(2000, "high"), (1999, "medium")])
def test_a_wall_is_sure_where_one_piece_behind_it_would_do(piece: int, confidence: str) -> None:
    assert confidence_with(clauses.doubt_of_wall(circumstances(), outcome("private_pools"), piece)) == confidence


@pytest.mark.parametrize(("uncertain", "confidence"), [(300, "high"), (301, "medium")])
def test_a_wall_is_not_sure_where_sizes_are_uncertain(uncertain: int, confidence: str) -> None:
    one = circumstances(uncertain_bytes=uncertain)
    assert confidence_with(clauses.doubt_of_wall(one, outcome("private_pools"), 2000)) == confidence


@pytest.mark.parametrize(("ratio", "code"), [(1.05, "causes.pass.after"), (1.06, "causes.pass.longer")])
def test_a_pass_is_longer_from_a_twentieth_on(ratio: float, code: str) -> None:
    assert NO_LONGER == 1.05
    found = FailingPass(stand_ins.PLACE, 3, 3, ratio=ratio)
    assert codes(clauses.failing_pass(circumstances(failing_pass=found))) == [code]


@pytest.mark.parametrize(("position", "named"), [(clauses.MOST_ASKED, True), (clauses.MOST_ASKED + 1, False)])
def test_the_keeper_of_pins_is_looked_for_among_few(
    monkeypatch: pytest.MonkeyPatch, position: int, named: bool
) -> None:
    suspects = tuple(suspect(f"object{number}") for number in range(1, 8))
    rows = {f"object{position}": np.array([0])}
    monkeypatch.setattr(clauses, "live_at_places", lambda *_: np.array([True]))
    monkeypatch.setattr(clauses, "held_rows", lambda _, __, name: rows.get(name, np.zeros(0, np.int64)))
    study = stand_ins.SimpleNamespace(history=stand_ins.SimpleNamespace(size=np.array([100])))
    found = clauses.holder_of(circumstances(study=study, suspects=suspects), pin(live_bytes=100))
    assert bool(found) is named


@pytest.mark.parametrize(("live", "named"), [(200, True), (201, False)])
def test_the_keeper_of_pins_keeps_half_of_them(monkeypatch: pytest.MonkeyPatch, live: int, named: bool) -> None:
    monkeypatch.setattr(clauses, "live_at_places", lambda *_: np.array([True]))
    monkeypatch.setattr(clauses, "held_rows", lambda *_: np.array([0]))
    study = stand_ins.SimpleNamespace(history=stand_ins.SimpleNamespace(size=np.array([100])))
    found = clauses.holder_of(circumstances(study=study, suspects=(suspect(),)), pin(live_bytes=live))
    assert bool(found) is named


@pytest.mark.parametrize(
    ("kind", "reaches", "named"), [("graph", 500, True), ("graph", 499, False), ("call", 500, False)]
)
def test_who_reaches_half_of_what_has_grown_is_named(kind: str, reaches: int, named: bool) -> None:
    one = circumstances(suspects=(suspect(kind=kind, reaches=reaches),))
    assert bool(clauses.also_held(one, 1000)) is named


@pytest.mark.parametrize(
    ("size", "confidence"), [(oversized_request.LARGEST_CARD, "medium"), (oversized_request.LARGEST_CARD + 1, "high")]
)
def test_what_no_card_could_hold_is_sure(size: int, confidence: str) -> None:
    found = outcome("oversized_request", certain=False)
    assert confidence_with(oversized_request.doubt(circumstances(size), found)) == confidence


def passed(completed: int = 3, ratio: float | None = 1.0) -> Any:
    """Finished passes of the loop, and how much longer this one is."""
    return FailingPass(stand_ins.PLACE, completed, completed, ratio=ratio)


@pytest.mark.parametrize(("spare", "confidence"), [(1000, "high"), (999, "medium")])
def test_holes_are_sure_where_a_tenth_would_have_been_left(spare: int, confidence: str) -> None:
    assert fragmentation.SURE_OF_HOLES == 0.10
    one = circumstances(failing_pass=passed())
    assert confidence_with(fragmentation.doubt(one, outcome("fragmentation", spare))) == confidence


@pytest.mark.parametrize(("spare", "confidence"), [(1500, "high"), (1499, "medium")])
def test_holes_of_a_first_pass_are_sure_where_more_would_have_been_left(spare: int, confidence: str) -> None:
    assert fragmentation.CERTAIN_OF_HOLES == 0.15
    assert confidence_with(fragmentation.doubt(circumstances(), outcome("fragmentation", spare))) == confidence


@pytest.mark.parametrize(
    ("completed", "ratio", "holds"),
    [(1, 1.05, True), (1, 1.06, False), (1, 0.4, True), (0, 1.0, False), (1, None, False)],
)
def test_little_to_spare_counts_where_such_a_pass_has_fitted(completed: int, ratio: float | None, holds: bool) -> None:
    assert NO_LONGER == 1.05
    one = circumstances(free=free(usable=2300), failing_pass=passed(completed, ratio))
    assert fragmentation.holds(one, outcome("fragmentation", 999)) is holds


@pytest.mark.parametrize(("done_with", "confidence"), [(2299, "high"), (2300, "medium")])
def test_capacity_is_not_sure_where_something_may_be_done_with(done_with: int, confidence: str) -> None:
    one = circumstances(may_be_done_with=done_with)
    assert confidence_with(capacity.doubt(one, outcome("capacity"))) == confidence


@pytest.mark.parametrize(("left", "confidence"), [(2299, "high"), (2300, "medium")])
def test_nor_where_the_trace_shows_that_an_earlier_training_left_much(left: int, confidence: str) -> None:
    assert confidence_with(capacity.doubt(circumstances(left_by_trace=left), outcome("capacity"))) == confidence


@pytest.mark.parametrize(("per_pass", "holds"), [(100, True), (101, False)])
def test_holes_are_no_cause_where_relief_lasts_for_few_passes(per_pass: int, holds: bool) -> None:
    assert fragmentation.LASTING_PASSES == 10
    one = circumstances(free=free(usable=3000), piled=Piled(per_pass=per_pass))
    assert fragmentation.holds(one, outcome("fragmentation", 1000)) is holds


def test_what_a_loop_has_filled_that_ended_takes_no_more_room() -> None:
    one = circumstances(free=free(usable=3000), piled=Piled(per_pass=101), loop=LoopFacts(goes_on=False))
    assert fragmentation.holds(one, outcome("fragmentation", 1000))


@pytest.mark.parametrize(("rise", "holds"), [(100, True), (101, False)])
def test_holes_are_no_cause_where_passes_need_ever_more(rise: int, holds: bool) -> None:
    one = circumstances(free=free(usable=3000), rise=rise)
    assert fragmentation.holds(one, outcome("fragmentation", 1000)) is holds


@pytest.mark.parametrize(("state", "holds"), [(2000, True), (2001, False)])
def test_holes_are_no_cause_where_the_rest_of_the_state_needs_more(state: int, holds: bool) -> None:
    one = circumstances(free=free(usable=3000), allocated=8000, state_to_come=(1000, 1000 + state))
    assert fragmentation.holds(one, outcome("fragmentation", 1000)) is holds


@pytest.mark.parametrize(
    ("at_work", "like_it", "holds"), [(1111, False, True), (1112, False, False), (1112, True, True)]
)
def test_a_first_forward_may_ask_for_as_much_again(at_work: int, like_it: bool, holds: bool) -> None:
    assert fragmentation.AS_MUCH_AGAIN == 0.9
    one = circumstances(
        free=free(usable=3000), at_work=at_work, failing_pass=passed(ratio=1.0) if like_it else None
    )  # fmt: skip
    assert fragmentation.holds(one, outcome("fragmentation", 1000)) is holds


@pytest.mark.parametrize(
    ("passes", "usable", "confidence"),
    [(10, 3000, "medium"), (11, 3000, "high"), (10, 2999, "high")],
)
def test_a_short_list_beside_large_holes_is_not_sure_to_grow(passes: int, usable: int, confidence: str) -> None:
    assert growth.FEW_PASSES == 10
    assert growth.AMPLE == 0.1
    one = circumstances(free=free(usable=usable), piled=Piled(grown=5000, steady=5000, passes=passes))
    assert confidence_with(growth.doubt(one, outcome("growth"))) == confidence


@pytest.mark.parametrize(
    ("passes", "before", "confidence"), [(10, True, "medium"), (11, True, "high"), (10, False, "high")]
)
def test_few_passes_of_a_loop_that_went_as_far_before_are_not_sure_to_grow(
    passes: int, before: bool, confidence: str
) -> None:
    one = circumstances(piled=Piled(grown=5000, steady=5000, passes=passes), went_as_far_before=before)
    assert confidence_with(growth.doubt(one, outcome("growth"))) == confidence


def test_what_later_work_may_need_is_not_sure_to_leak() -> None:
    one = circumstances(piled=Piled(grown=5000, steady=5000, passes=40), leaks_for_sure=False)
    assert confidence_with(growth.doubt(one, outcome("growth"))) == "medium"


@pytest.mark.parametrize(
    ("loop", "holder", "sure"),
    [
        (LoopFacts(), None, False),
        (LoopFacts(trains_within=True), None, True),
        (LoopFacts(keeps_graph=True), None, True),
        (LoopFacts(keeps_graph=True), stand_ins.suspect(kind="list"), False),
        (LoopFacts(trains_within=True), stand_ins.suspect(kind="list"), True),
        (LoopFacts(), stand_ins.suspect(kind="list", keeps_graph=True), True),
        (LoopFacts(), stand_ins.suspect(kind="exception"), True),
        (LoopFacts(), stand_ins.suspect(kind="deferred"), True),
        (LoopFacts(), stand_ins.suspect(kind="dict", holder="job.py: mask (lru_cache)"), True),
        (LoopFacts(trains_within=True), stand_ins.suspect(kind="hooks"), False),
    ],
)
@pytest.mark.parametrize("rise", [0, 1])
def test_what_cannot_be_needed_leaks_for_sure(loop: LoopFacts, holder: Suspect | None, sure: bool, rise: int) -> None:
    one: Any = SimpleNamespace(loop=loop, piled=Piled(holder=holder), needs=SimpleNamespace(rise=rise))
    if holder is not None and holder.kind == "hooks":
        sure = rise > 0
    assert Circumstances.leaks_for_sure.fget(one) is sure  # type: ignore[attr-defined]


@pytest.mark.parametrize(("largest", "usable", "holds"), [(1999, 2000, True), (2000, 2000, False), (1999, 1999, False)])
def test_no_hole_fits_and_all_together_do(largest: int, usable: int, holds: bool) -> None:
    one = circumstances(free=free(usable=usable, largest=largest), failing_pass=passed())
    assert fragmentation.holds(one, outcome("fragmentation", 300)) is holds


@pytest.mark.parametrize(("stranded", "told"), [(300, True), (299, False)])
def test_a_line_that_keeps_a_tenth_of_the_holes_is_told(
    monkeypatch: pytest.MonkeyPatch, stranded: int, told: bool
) -> None:
    assert fragmentation.WORTH_TELLING == 0.1
    monkeypatch.setattr(clauses, "holder_of", lambda *_: ())
    one = circumstances(free=free(usable=3000), pins=(pin(stranded_bytes=stranded),))
    found = codes(fragmentation.headline(one, outcome("fragmentation")))
    assert found[1:] == (["causes.fragmentation.pinned"] if told else [])


@pytest.mark.parametrize(("bytes_", "code"), [(500, "causes.capacity.allocated"), (501, "causes.capacity.drivers")])
def test_what_is_worth_naming(bytes_: int, code: str) -> None:
    assert capacity.WORTH_NAMING == 0.05
    one = circumstances(drivers=(driver("logits", bytes_),))
    assert codes(capacity.headline(one, outcome("capacity")))[1] == code


NEEDS, KEEPER, DRIVERS = "causes.capacity.needs", "causes.capacity.keeper", "causes.capacity.drivers"


@pytest.mark.parametrize(
    ("retained", "expected"),
    [
        (1999, [NEEDS, DRIVERS]),
        (2000, [NEEDS, DRIVERS, KEEPER]),
        (4999, [NEEDS, DRIVERS, KEEPER]),
        (5000, [KEEPER, NEEDS]),
    ],
)
def test_an_object_that_keeps_much_is_named_and_one_that_keeps_most_comes_first(
    retained: int, expected: list[str]
) -> None:
    assert (capacity.MUCH_KEPT, capacity.MOST_KEPT) == (0.2, 0.5)
    one = circumstances(drivers=(driver("logits", 9000),), suspects=(suspect(retained=retained),))
    assert codes(capacity.headline(one, outcome("capacity")))[: len(expected)] == expected


@pytest.mark.parametrize(("usable", "largest", "told"), [(2000, 1999, True), (2000, 2000, False), (1999, 999, False)])
def test_free_memory_that_lies_in_pieces_is_told_beside_what_piled_up(usable: int, largest: int, told: bool) -> None:
    piled = Piled(grown=5000, holder=suspect())
    one = circumstances(free=free(usable=usable, largest=largest), piled=piled)
    assert ("causes.in_pieces" in codes(growth.headline(one, outcome("growth")))) is told


@pytest.mark.parametrize(("usable", "told"), [(1000, True), (999, False)])
def test_little_that_is_free_in_pieces_is_not_worth_a_sentence(usable: int, told: bool) -> None:
    assert clauses.WORTH_TELLING == 0.1
    one = circumstances(size=500, free=free(usable=usable, largest=400))
    assert bool(clauses.in_pieces(one)) is told


@pytest.mark.parametrize(("bytes_", "confidence"), [(2299, "high"), (2300, "medium")])
def test_capacity_is_not_sure_where_a_model_that_takes_no_part_may_wait_elsewhere(bytes_: int, confidence: str) -> None:
    one = circumstances(idle_models=(IdleModel("encoder", bytes_),))
    assert confidence_with(capacity.doubt(one, outcome("capacity"))) == confidence


def test_a_model_without_gradients_is_told_as_one() -> None:
    one = circumstances(idle_models=(IdleModel("teacher", 3000, untrained=True),))
    assert "causes.capacity.untrained_model" in codes(capacity.headline(one, outcome("capacity")))


@pytest.mark.parametrize(
    ("phase", "trains", "in_forward", "found"),
    [
        ("optimizer", True, False, "untrained"), ("forward", False, True, "idle"), ("forward", True, True, None),
        ("other", False, False, None),
    ],
)  # fmt: skip
def test_which_models_may_take_no_part(
    monkeypatch: pytest.MonkeyPatch, phase: str, trains: bool, in_forward: bool, found: str | None
) -> None:
    monkeypatch.setattr(facts, "find_idle_models", lambda _: ("idle",))
    monkeypatch.setattr(facts, "find_untrained_models", lambda _: ("untrained",))
    one: Any = SimpleNamespace(asked=Asked(phase), trains=trains, is_in_forward=in_forward, study=None)
    assert Circumstances.idle_models.func(one) == ((found,) if found else ())


@pytest.mark.parametrize(
    ("more", "least"),
    [
        ({}, 6000),  # 2,000 are missing, and 4,000 of 10,000 are ample
        ({"growth": (stand_ins.growth(),)}, None), ({"is_in_forward": False}, None),
        ({"in_progress": (CallsInProgress("serve", "serve.py", 5, 20),)}, None),
    ],
)  # fmt: skip
def test_what_is_older_than_a_forward_is_left_over_where_there_would_be_ample_room(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], least: int | None
) -> None:
    assert MUCH_OLDER == 0.4
    monkeypatch.setattr(left_by_work, "find_left_by_calls", lambda *_: None)
    monkeypatch.setattr(left_by_work, "find_left_by_statements", lambda _study, _entry, asked: asked)
    one = circumstances(**{"reads_known": False, **more})
    assert Circumstances._left_unread.fget(one) == least  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("more", "least"),
    [
        ({"failing_pass": passed()}, 6000), ({"failing_pass": passed(), "names_known": True}, None),
        ({"failing_pass": None}, None), ({"failing_pass": SimpleNamespace(gathers=True)}, None),
    ],
)  # fmt: skip
def test_so_is_what_the_last_pass_has_left_if_the_loop_does_not_gather(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], least: int | None
) -> None:
    for name in ("find_left_by_calls", "find_left_by_statements"):
        monkeypatch.setattr(left_by_work, name, lambda *_: None)
    monkeypatch.setattr(left_by_work, "find_left_by_last_pass", lambda _study, _entry, asked: asked)
    one = circumstances(**{"names_known": False, "reads_known": False, **more})
    assert Circumstances._left_unread.fget(one) == least  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("more", "bytes_"),
    [
        ({}, 5000), ({"retained": 3000}, 3000), ({"retained": 2999}, None), ({"share": 0.49}, None),
        ({"passes": 2}, None), ({"unread": "likely"}, None), ({"kind": "attribute"}, None), ({"is_full": True}, None),
        ({"holder": "main: tokens"}, None),
    ],
)  # fmt: skip
def test_what_a_loop_that_has_ended_left_in_an_object(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], bytes_: int | None
) -> None:
    assert (left_by_work.LEAST_PASSES, left_by_work.MOSTLY) == (3, 0.5)
    place = Location("train.py", 7, "validate")
    monkeypatch.setattr(left_by_work, "find_left_by_calls", lambda *_: LeftByCalls(6000, place))
    values = {"holder": "main: probe.tokens", "retained": 5000, "share": 0.5, "passes": 3, "kind": "list", **more}
    one = circumstances(reads_known=True, suspects=(suspect(**values),))
    left = Circumstances._left_unread.fget(one)  # type: ignore[attr-defined]
    assert left == (None if bytes_ is None else LeftByCalls(bytes_, place, holder=values["holder"]))


def test_models_without_gradients_are_those_beside_one_that_has_some(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        RecordedHolder(name, kind, 0, size, size, 3)
        for name, kind, size in [
            ("unet", "parameter", 50), ("unet", "gradient", 50), ("vae", "parameter", 20), ("text", "parameter", 30),
            (None, "parameter", 9), ("main: batch", "tensor", 9),
        ]
    ]  # fmt: skip
    monkeypatch.setattr(idle_models, "holders_in_blocks", lambda _: rows)
    assert idle_models.find_untrained_models(STUDY) == (("text", 30, True), ("vae", 20, True))
    rows[1] = rows[0]
    assert idle_models.find_untrained_models(STUDY) == ()


@pytest.mark.parametrize(("gradients", "expected"), [([30], 20), ([50], 0), ([60], 0), ([], 0)])
def test_bytes_of_parameters_without_gradients(gradients: list[int], expected: int) -> None:
    sizes = np.array([50, *gradients, 7])
    known = np.array([PARAMETER, *([GRADIENT] * len(gradients)), ACTIVATION])
    lifetimes = SimpleNamespace(allocated_at=lambda _: np.ones(len(sizes), np.bool_))
    study: Any = SimpleNamespace(history=SimpleNamespace(size=sizes, lifetimes=lifetimes), categories=known)
    assert idle_models.bytes_without_gradients(study, 0) == expected


@pytest.mark.parametrize(
    ("more", "confidence"),
    [({}, "medium"), ({"history_of_steps": 100}, "high"), ({"failing_pass": passed(ratio=4.0)}, "high")],
)
def test_capacity_is_not_sure_where_passes_need_more_and_more(more: dict[str, Any], confidence: str) -> None:
    assert confidence_with(capacity.doubt(circumstances(rise=30, **more), outcome("capacity"))) == confidence


@pytest.mark.parametrize(("bytes_", "told"), [(2000, True), (1999, False)])
def test_the_largest_model_that_takes_no_part_is_told_where_it_is_much(bytes_: int, told: bool) -> None:
    assert capacity.MUCH_KEPT == 0.2
    one = circumstances(idle_models=(IdleModel("encoder", bytes_), IdleModel("judge", 1500)))
    found = [note.values for note in capacity.headline(one, outcome("capacity")) if "idle_model" in note.code]
    assert found == ([{"holder": "encoder", "bytes": bytes_, "live": 10_000, "share": 0.2}] if told else [])


@pytest.mark.parametrize(("rise", "told"), [(30, True), (29, False)])
def test_needs_that_rise_from_pass_to_pass_are_told(rise: int, told: bool) -> None:
    assert capacity.LASTING_PASSES == 10
    assert ("causes.capacity.rising" in codes(capacity.headline(circumstances(rise=rise), outcome("capacity")))) is told


CALLS = "causes.in_progress"


@pytest.mark.parametrize(
    ("held", "kept", "expected"),
    [
        (999, 3000, [NEEDS, DRIVERS, KEEPER]),
        (1000, 3000, [NEEDS, DRIVERS, KEEPER, CALLS]),
        (4999, 3000, [NEEDS, DRIVERS, KEEPER, CALLS]),
        (5000, 3000, [CALLS, NEEDS, "causes.capacity.asked", KEEPER]),
        (5000, 4499, [CALLS, NEEDS, "causes.capacity.asked", KEEPER]),
        (5000, 4500, [CALLS, NEEDS, "causes.capacity.asked"]),
    ],
)
def test_calls_at_once_that_hold_most_come_first_and_what_keeps_the_same_is_told_in_them(
    monkeypatch: pytest.MonkeyPatch, held: int, kept: int, expected: list[str]
) -> None:
    assert (capacity.MOST_KEPT, capacity.THE_SAME, clauses.WORTH_TELLING) == (0.5, 0.9, 0.1)
    monkeypatch.setattr("oomscope.analysis.verdict.clauses.bytes_of_calls", lambda *_: held)
    one = circumstances(
        drivers=(driver("logits", 9000),), suspects=(suspect(retained=kept),),
        in_progress=(CallsInProgress("serve", "serve.py", 5, 20),),
    )  # fmt: skip
    assert codes(capacity.headline(one, outcome("capacity"))) == expected


@pytest.mark.parametrize(("largest", "named"), [(4000, True), (3999, False)])
def test_one_tensor_that_is_much_of_it_is_named(monkeypatch: pytest.MonkeyPatch, largest: int, named: bool) -> None:
    assert capacity.MOST_OF_ALL == 0.4
    monkeypatch.setattr(capacity, "own_rows", lambda *_: np.array([0]))
    study = SimpleNamespace(history=SimpleNamespace(size=np.array([largest])))
    held = suspect("main: scores", kind="tensor", retained=1000, at=Location("/home/me/a.py", 1, "main"))
    found = codes(capacity.headline(circumstances(suspects=(held,), study=study), outcome("capacity")))
    assert ("causes.capacity.tensor" in found) is named


@pytest.mark.parametrize(("left", "place"), [(1999, None), (2000, 2), (5000, 0)])
def test_two_passes_alive_at_once_are_told_and_come_first_where_most_is_of_the_one_before(
    left: int, place: int | None
) -> None:
    found = codes(capacity.headline(circumstances(left_by_last_pass=left), outcome("capacity")))
    assert (found.index("causes.pass.left") if "causes.pass.left" in found else None) == place


@pytest.mark.parametrize(("still", "holds"), [(3000, True), (3001, False)])
def test_holes_are_no_cause_where_the_pass_underway_needs_more_than_all_of_them(still: int, holds: bool) -> None:
    one = circumstances(free=free(usable=3000), allocated=7000, still_to_come=still)
    assert fragmentation.holds(one, outcome("fragmentation", 1000)) is holds


@pytest.mark.parametrize(("passes", "named"), [(2, False), (3, True)])
def test_a_graph_is_named_once_it_spans_passes(passes: int, named: bool) -> None:
    one = circumstances(suspects=(suspect(kind="graph", retained=9000, passes=passes),))
    assert (KEEPER in codes(capacity.headline(one, outcome("capacity")))) is named


@pytest.mark.parametrize(("usable", "code"), [(1999, "short"), (2000, "nothing_left"), (2001, "close")])
def test_what_one_piece_would_have_left(usable: int, code: str) -> None:
    one = circumstances(free=free(usable=usable), allocated=8000)
    found = codes(capacity.headline(one, outcome("capacity")))
    assert found[0] == "causes.capacity.nearly"
    assert f"causes.capacity.{code}" in found


@pytest.mark.parametrize(
    ("usable", "at_work", "like_it", "underway"),
    [
        (2300, 334, False, True),
        (2300, 333, False, False),
        (2299, 334, False, False),
        (2300, 334, True, False),
    ],
)
def test_of_a_first_forward_it_is_said_that_its_rest_is_not_known(
    usable: int, at_work: int, like_it: bool, underway: bool
) -> None:
    one = circumstances(
        free=free(usable=usable), allocated=7000, at_work=at_work, failing_pass=passed() if like_it else None
    )  # fmt: skip
    found = codes(capacity.headline(one, outcome("capacity")))
    assert ("causes.capacity.underway" in found) is ("causes.capacity.rest_unknown" in found) is underway


@pytest.mark.parametrize(("largest", "confidence"), [(1999, "high"), (2000, "low")])
def test_a_hole_that_would_have_served_makes_capacity_doubtful(largest: int, confidence: str) -> None:
    one = circumstances(free=free(largest=largest))
    assert confidence_with(capacity.doubt(one, decide.decide(case()))) == confidence


@pytest.mark.parametrize(("steady", "confidence"), [(2300, "high"), (2299, "medium")])
def test_growth_is_sure_where_what_rises_beyond_doubt_is_enough(steady: int, confidence: str) -> None:
    one = circumstances(piled=Piled(grown=5000, steady=steady))
    assert confidence_with(growth.doubt(one, outcome("growth"))) == confidence


@pytest.mark.parametrize(("grown", "confidence"), [(5000, "high"), (4999, "medium")])
def test_what_is_less_than_half_may_be_a_buffer_that_is_not_full_yet(grown: int, confidence: str) -> None:
    one = circumstances(piled=Piled(grown=grown, steady=grown))
    assert confidence_with(growth.doubt(one, outcome("growth"))) == confidence
    named = Piled(grown=grown, steady=grown, holder=suspect(retained=grown, kind="list"))
    assert confidence_with(growth.doubt(circumstances(piled=named), outcome("growth"))) == "high"


@pytest.mark.parametrize(("models", "confidence"), [(5, "high"), (6, "medium")])
def test_of_more_models_than_one_a_pass_some_may_be_in_use(
    monkeypatch: pytest.MonkeyPatch, models: int, confidence: str
) -> None:
    holder = suspect(retained=5000, kind="collection", passes=4)
    monkeypatch.setattr(growth, "kept_models", lambda _: [(holder, models)])
    one = circumstances(piled=Piled(grown=5000, steady=5000, holder=holder))
    assert confidence_with(growth.doubt(one, outcome("growth"))) == confidence


@pytest.mark.parametrize(("finished", "told"), [(900, 7), (899, None)])
def test_passes_are_told_where_they_made_nearly_all_that_is_kept(finished: int, told: int | None) -> None:
    assert growth.NEARLY_ALL == 0.9
    keeper = stand_ins.suspect(retained=1000, passes=7, finished_bytes=finished)
    piled = Piled(grown=1000, passes=7, holder=keeper)
    first = growth.headline(stand_ins.circumstances(piled=piled), stand_ins.outcome("growth"))[0]
    assert first.values["passes"] == told


@pytest.mark.parametrize(("before", "said"), [(0, "any of the 4 that fitted."), (21, "any of the 25 that fitted.")])
def test_passes_of_all_runs_of_the_loop_have_fitted(before: int, said: str) -> None:
    failing = FailingPass(stand_ins.PLACE, 4, 4, ratio=5.86, before=before)
    (one,) = clauses.failing_pass(circumstances(failing_pass=failing))
    assert say(one).endswith(said)


@pytest.mark.parametrize(
    ("ratio", "completed", "said"),
    [
        (5.86, 4, "5.86 × as much memory as any of the 4 recorded before it."),
        (5.86, 1, "5.86 × as much memory as the one recorded before it."),
        (1.0, 4, "At least 4 passes of the loop in train (train.py:31) had fitted before."),
    ],
)
def test_of_passes_before_the_recording_nothing_is_said(ratio: float, completed: int, said: str) -> None:
    failing = FailingPass(stand_ins.PLACE, completed, completed, ratio=ratio, is_part=True)
    (one,) = clauses.failing_pass(circumstances(failing_pass=failing))
    assert say(one).endswith(said)


def test_the_first_pass_of_a_recording_that_begins_in_the_loop_is_not_called_the_first() -> None:
    failing = FailingPass(stand_ins.PLACE, 0, 0, is_part=True)
    assert clauses.failing_pass(circumstances(failing_pass=failing)) == ()
    assert not failing.is_first


@pytest.mark.parametrize(("before", "code"), [(0, "causes.pass.first"), (1, "causes.pass.after")])
def test_the_first_pass_of_a_later_run_is_not_the_first(before: int, code: str) -> None:
    failing = FailingPass(stand_ins.PLACE, 0, 0, before=before)
    (one,) = clauses.failing_pass(circumstances(failing_pass=failing))
    assert one.code == code


@pytest.mark.parametrize(("whole", "told"), [(12_360, False), (12_361, True)])
def test_what_a_larger_pass_comes_to_is_told_where_it_is_more_than_the_request_shows(whole: int, told: bool) -> None:
    one = circumstances(as_larger=whole, failing_pass=passed(ratio=1.5))
    assert ("causes.capacity.as_larger" in codes(capacity.headline(one, outcome("capacity")))) is told


@pytest.mark.parametrize(("kind", "named"), [("list", True), ("graph", False), ("call", False), ("in_flight", False)])
def test_work_underway_is_no_keeper_of_pins(monkeypatch: pytest.MonkeyPatch, kind: str, named: bool) -> None:
    monkeypatch.setattr(clauses, "live_at_places", lambda *_: np.array([True]))
    monkeypatch.setattr(clauses, "held_rows", lambda *_: np.array([0]))
    study = SimpleNamespace(history=SimpleNamespace(size=np.array([100])))
    found = clauses.holder_of(circumstances(study=study, suspects=(suspect(kind=kind),)), pin(live_bytes=100))
    assert bool(found) is named


@pytest.mark.parametrize(("spare", "holds"), [(0, True), (-1, False)])
def test_a_wall_holds_to_the_last_byte(spare: int, holds: bool) -> None:
    one = circumstances(free=free(walled=2000, other_streams=2000))
    assert private_pools.holds(one, outcome("private_pools", spare)) is holds
    assert other_stream.holds(one, outcome("other_stream", spare)) is holds


@pytest.mark.parametrize(
    ("name", "walled", "pools", "told"),
    [("pool", 4000, 2, True), (None, 4000, 2, False), ("pool", 4001, 2, False), ("pool", 4000, 1, False)],
)
def test_the_pool_that_walls_in_half_of_it_is_named(name: str | None, walled: int, pools: int, told: bool) -> None:
    walls = (Wall((0, 1), name, "graph", 2000, 0), Wall((0, 2), "other", "mempool", 1000, 0))[:pools]
    one = circumstances(free=free(walled=walled), walls=walls)
    one.request.layout = SimpleNamespace(segments=SimpleNamespace(pool=np.array([0, 1, 2])))
    found = private_pools.headline(one, outcome("private_pools"))
    most = [note.values for note in found if note.code == "causes.private_pools.most"]
    assert most == ([{"free": 2000, "name": name, "kind": "graph"}] if told else [])


def walled(pools: int, passes: int) -> Any:
    one = circumstances(
        free=free(walled=4000, walled_piece=4000), failing_pass=FailingPass(stand_ins.PLACE, passes, passes)
    )
    one.request.layout = SimpleNamespace(segments=SimpleNamespace(pool=np.arange(pools + 1)))
    return one


@pytest.mark.parametrize(
    ("pools", "passes", "told"), [(3, 3, True), (3, 2, True), (2, 2, False), (4, 6, False), (6, 4, False)]
)
def test_a_loop_that_makes_a_pool_each_pass_is_told(pools: int, passes: int, told: bool) -> None:
    found = codes(private_pools.headline(walled(pools, passes), outcome("private_pools")))
    assert ("causes.private_pools.each_pass" in found) is told


@pytest.mark.parametrize(("pools", "doubted"), [(16, False), (17, True)])
def test_a_pool_for_each_request_that_comes_has_no_end(pools: int, doubted: bool) -> None:
    assert private_pools.MOST_SIZES == 16
    reason = private_pools.doubt(walled(pools, pools), outcome("private_pools"))
    assert (reason is not None and reason.code == "doubts.another_each_pass") is doubted


@pytest.mark.parametrize(("source", "code"), [("recorded", "limit"), ("bracket", "refused")])
def test_what_refused_a_request_larger_than_an_unknown_card(source: str, code: str) -> None:
    (one,) = codes(oversized_request.headline(circumstances(20_000, source=source), outcome("oversized_request")))
    assert one == f"causes.oversized_request.{code}"


@pytest.mark.parametrize(
    ("total", "cap", "code", "limit"),
    [(9000, None, "card", 9000), (9000, 9500, "card", 9000), (9500, 9000, "cap", 9000), (None, 9000, "cap", 9000)],
)
def test_the_smaller_of_cap_and_card_refused_what_is_larger_than_it(
    total: int | None, cap: int | None, code: str, limit: int
) -> None:
    known = circumstances(20_000, total=total, cap=cap, caller=stand_ins.OTHER)
    (one,) = oversized_request.headline(known, outcome("oversized_request"))
    assert one.code == f"causes.oversized_request.{code}"
    assert (one.values["limit"], one.values["site"]) == (limit, stand_ins.OTHER)


@pytest.mark.parametrize(("high", "told"), [(20_000, True), (10_000, False)])
def test_a_known_range_of_the_cap_is_evidence_where_it_has_two_ends(high: int, told: bool) -> None:
    bracket = circumstances(source="bracket", low=10_000, high=high).shortage
    found = gather_evidence(bracket, outcome("growth"), 9000, CAUSE_MODULES["growth"])
    assert [one.bytes for one in found if one.slug == "upper_bound"] == ([high + 1] if told else [])


@pytest.mark.parametrize(("grown", "told"), [(700, 700), (1200, 900)])
def test_an_optimizer_that_keeps_what_grows_by_site_reaches_no_more_than_either(
    monkeypatch: pytest.MonkeyPatch, grown: int, told: int
) -> None:
    monkeypatch.setattr(clauses, "live_at_places", lambda *_: np.array([True, False]))
    held = [RecordedHolder("LBFGS", "optimizer_state", 0, 900, 900, 3)]
    monkeypatch.setattr(clauses, "holders_in_blocks", lambda _: held)
    study = SimpleNamespace(
        history=SimpleNamespace(size=np.array([900, 4000])), categories=np.array([OPTIMIZER_STATE, OPTIMIZER_STATE])
    )
    known = circumstances(study=study, growth=(stand_ins.growth(),), piled=Piled(grown=grown))
    found = growth.headline(known, outcome("growth"))
    assert [note.values["bytes"] for note in found if note.code == "causes.growth.reached"] == [told]


@pytest.mark.parametrize(
    ("reaches", "retained", "passes", "keeps"),
    [(500, 0, 2, True), (0, 500, 2, True), (499, 499, 2, False), (500, 500, 0, False)],
)
def test_what_keeps_half_of_the_last_pass_is_its_keeper(reaches: int, retained: int, passes: int, keeps: bool) -> None:
    kept = suspect(reaches=reaches, retained=retained, passes=passes)
    one: Any = SimpleNamespace(left_by_last_pass=1000, suspects=(kept,))
    assert (Circumstances.keeper_of_last_pass.func(one) is kept) is keeps


@pytest.mark.parametrize(
    ("ratio", "retained", "expected"),
    [
        (1.5, 1000, ["causes.pass.longer", "causes.capacity.needs", "causes.capacity.allocated"]),
        (1.5, 5000, ["causes.capacity.keeper", "causes.capacity.needs", "causes.capacity.asked", "causes.pass.longer"]),
        (1.0, 1000, ["causes.capacity.needs", "causes.capacity.allocated", "causes.pass.after"]),
    ],
)
def test_a_longer_pass_comes_first_unless_one_object_keeps_most(
    ratio: float, retained: int, expected: list[str]
) -> None:
    one = circumstances(failing_pass=passed(ratio=ratio), suspects=(suspect(retained=retained),))
    assert codes(capacity.headline(one, outcome("capacity"))) == expected


@pytest.mark.parametrize(("grown", "code"), [(2000, "rising"), (2001, "passes")])
def test_a_series_is_told_where_nothing_else_has_grown_more(
    monkeypatch: pytest.MonkeyPatch, grown: int, code: str
) -> None:
    monkeypatch.setattr(clauses, "state_of", lambda *_: ())
    joined = RisingRequest(live=1000, risen=900, grown=2000, per_join=100, joins=9, since=0)
    one = circumstances(rising=joined, growth=(stand_ins.growth(),), piled=Piled(grown=grown))
    first = codes(growth.headline(one, outcome("growth")))[0]
    assert first == f"causes.growth.{code}"


@pytest.mark.parametrize(("retained", "it"), [(5000, "it"), (5001, growth.EARLIER)])
def test_an_object_that_keeps_no_more_than_has_grown_is_promised_whole(retained: int, it: str) -> None:
    holder = suspect(retained=retained, passes=7, finished_bytes=1000, earlier_bytes=1000)
    one = circumstances(piled=Piled(grown=5000, passes=7, holder=holder))
    (said,) = (note for note in growth.headline(one, outcome("growth")) if note.code == "causes.growth.without")
    assert (said.values["needs"], said.values["it"]) == (7000, it)


@pytest.mark.parametrize("caller", [stand_ins.OTHER, None])
def test_a_series_is_placed_at_the_readers_own_line_or_else_where_it_was_asked_for(caller: Location | None) -> None:
    joined = RisingRequest(live=1000, risen=900, grown=2000, per_join=100, joins=9, since=0)
    one = circumstances(rising=joined, piled=Piled(grown=2000), caller=caller)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clauses, "state_of", lambda *_: ())
        (first, *_) = growth.headline(one, outcome("growth"))
    assert first.values["place"] == (caller or stand_ins.PLACE)


@pytest.mark.parametrize(("within", "went", "far"), [(False, True, True), (False, False, False), (True, True, False)])
def test_rounds_within_a_step_are_not_compared_with_earlier_loops(
    monkeypatch: pytest.MonkeyPatch, within: bool, went: bool, far: bool
) -> None:
    monkeypatch.setattr(facts, "went_as_far_before", lambda *_: went)
    rows = (stand_ins.growth(within_step=within),)
    one: Any = SimpleNamespace(growth=rows, study=None, request=SimpleNamespace(entry=0))
    assert Circumstances.went_as_far_before.func(one) is far


@pytest.mark.parametrize(
    ("names", "tells", "complete", "known"),
    [(True, True, True, True), (True, True, None, True), (False, True, True, False), (True, False, True, False),
     (True, True, False, False)],
)  # fmt: skip
def test_what_is_read_is_known_where_the_recorder_told_it_and_got_through(
    names: bool, tells: bool, complete: bool | None, known: bool
) -> None:
    recorded = SimpleNamespace(tells_unread=tells, walk=SimpleNamespace(complete=complete))
    one: Any = SimpleNamespace(names_known=names, study=SimpleNamespace(snapshot=SimpleNamespace(recorded=recorded)))
    assert Circumstances.reads_known.fget(one) is known  # type: ignore[attr-defined]


@pytest.mark.parametrize(("alone", "told"), [(500, True), (499, False)])
def test_the_line_that_keeps_half_of_other_streams_holes_is_told(
    monkeypatch: pytest.MonkeyPatch, alone: int, told: bool
) -> None:
    assert other_stream.MOSTLY == 0.5
    monkeypatch.setattr(clauses, "holder_of", lambda *_: ())
    one = circumstances(free=free(other_streams=1000), pins=(pin(alone_bytes=alone),))
    found = codes(other_stream.headline(one, outcome("other_stream")))
    assert ("causes.other_stream.kept_by" in found) is told


def test_an_inferred_cap_is_told_with_both_ends() -> None:
    one = circumstances(source="bracket", low=10_000, high=12_000, device_free=7, study=SimpleNamespace(is_cut=False))
    (cap,) = (note for note in judge._cannot_know(one, outcome("growth")) if note.code == "verdict.unknown.cap")
    assert cap.values == {"free": 7, "low": 10_000, "high": 12_000}


def test_a_request_beyond_the_card_has_nothing_to_spare() -> None:
    found = decide.decide(case(size=20 * GIB, total=10 * GIB, outside=0)).qualifying[0]
    assert (found.cause, found.bytes, found.spare) == ("oversized_request", 20 * GIB, 0)


@pytest.mark.parametrize(("earlier", "it"), [(2900, growth.EARLIER), (3000, "it")])
def test_only_what_finished_passes_left_is_promised_of_an_object_that_this_pass_fills_too(
    earlier: int, it: str
) -> None:
    holder = suspect(retained=3000, passes=7, finished_bytes=earlier, earlier_bytes=earlier)
    one = circumstances(piled=Piled(grown=earlier, passes=7, holder=holder))
    found = growth.headline(one, outcome("growth", bytes_=earlier))
    assert [note.values["it"] for note in found if note.code == "causes.growth.without"] == [it]


@pytest.mark.parametrize(
    ("kept", "it"),
    [
        ((3000,), "it"),
        ((3000, 1000), "them"),
        ((3000, 499), "it and smaller ones"),
        ((3000, 1000, 499), "them and smaller ones"),
        ((3000, 1000, 600), "them"),
    ],
)
def test_what_could_go_is_told_with_what_is_too_small_to_be_named(kept: tuple[int, ...], it: str) -> None:
    """A twentieth of 10,000 bytes is worth a sentence, of the second and of all further ones together."""
    debris = tuple(stand_ins.suspect(f"main: old{at}", "dict", retained=one) for at, one in enumerate(kept))
    known = circumstances(size=500, piled=Piled(retained=sum(kept), debris=debris), retained=sum(kept))
    (without,) = (one for one in retained.headline(known, outcome("retained")) if "needs" in one.values)
    assert without.values["it"] == it
