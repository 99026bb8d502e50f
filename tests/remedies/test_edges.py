"""The thresholds of the remedies, each just below and just above."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oomscope.analysis import remedies
from oomscope.analysis.passes.records import NO_LONGER, CallsInProgress, FailingPass, KeepsMore, LargerInput
from oomscope.analysis.passes.rising_request import RisingRequest
from oomscope.analysis.records import Location
from oomscope.analysis.remedies import (
    accumulate_predictions,
    allocator_setting,
    bound_batch,
    bound_what_is_kept,
    bucket_lengths,
    collect_garbage,
    copy_view,
    drop_gradients,
    drop_last_pass,
    drop_optimizer,
    effect,
    forget_exception,
    free_the_card,
    fused_attention,
    fused_optimizer,
    let_pool_go,
    limit_calls_in_progress,
    load_once,
    move_idle_model,
    move_pins,
    one_stream,
    raise_cap,
    retry_request,
    shard_optimizer_state,
    shard_parameters,
    share_graph_pool,
    shrink_driver,
    smaller_batch,
    split_request,
    undo_change,
)
from oomscope.analysis.remedies.refuted import MOSTLY_FIXED, refuted
from oomscope.analysis.verdict.causes import CAUSE_MODULES
from oomscope.analysis.verdict.idle_models import IdleModel
from oomscope.analysis.verdict.piled import LoopFacts, Piled
from oomscope.analysis.verdict.records import Advice, Asked
from oomscope.analysis.verdict.walls import Wall
from oomscope.analysis.whatif.records import SelfCheck, WhatIf, WhatIfRow
from oomscope.model import Frame, StackTable
from oomscope.wording.verdict_text import advice_text
from tests.verdict.stand_ins import PLACE, circumstances, driver, free, growth, pin, suspect

NO_ROWS = np.zeros(0, np.bool_)


@pytest.mark.parametrize(
    ("saves", "usable", "enough"),
    [(2300, 0, True), (2299, 0, None), (2000, 0, None), (1999, 0, False), (1999, 1, None)],
)
def test_what_is_enough_by_sum(saves: int, usable: int, enough: bool | None) -> None:
    assert effect.enough_by_sum(circumstances(free=free(usable=usable)), saves) is enough


@pytest.mark.parametrize(("steps", "quick"), [(effect.QUICK_STEPS, True), (effect.QUICK_STEPS + 1, False)])
def test_only_quick_programs_are_replayed(monkeypatch: pytest.MonkeyPatch, steps: int, quick: bool) -> None:
    extraction = SimpleNamespace(program=SimpleNamespace(op=np.zeros(steps)))
    monkeypatch.setattr(effect, "prepared", lambda _: SimpleNamespace(complete=True, extraction=extraction))
    answer = SimpleNamespace(self_check=SimpleNamespace(exact=True))
    assert (effect.replayable(circumstances(whatif=answer)) is not None) is quick


SAVED = {
    shard_parameters: ("parameters", shard_parameters.HALF, 0.5),
    shard_optimizer_state: ("optimizer_state", shard_optimizer_state.IN_EIGHT_BITS, 0.75),
    drop_gradients: ("gradients", drop_gradients.ALL, 1.0),
    fused_attention: (fused_attention.DRIVER, 1.0, 1.0),
    load_once: ("duplicate_model", load_once.ALL, 1.0),
}


@pytest.mark.parametrize(("bytes_", "advised"), [(500, False), (501, True)])
def test_temporaries_of_an_optimizer_can_go(bytes_: int, advised: bool) -> None:
    made = driver("optimizer_temporaries", bytes_)
    found = list(fused_optimizer.propose(circumstances(drivers=(made,))))
    assert [(one.slug, one.saves_bytes) for one in found] == ([("fused_optimizer", 501)] if advised else [])


@pytest.mark.parametrize(
    ("frame", "slug"),
    [
        (Frame("/venv/torch/optim/adamw.py", 700, "_multi_tensor_adamw"), "fused_optimizer"),
        (Frame("/venv/torch/optim/adam.py", 400, "_single_tensor_adam"), "fused_optimizer"),
        (Frame("/venv/torch/optim/rmsprop.py", 400, "_multi_tensor_rmsprop"), "fused_optimizer.foreach"),
        (Frame("/venv/torch/optim/adamw.py", 200, "_init_group"), None),
        (Frame("/venv/torch/optim/adamw.py", 900, "_fused_adamw"), None),
        (Frame("train.py", 9, "_multi_tensor_adamw"), None),
    ],
)
def test_a_request_for_a_temporary_of_the_optimizer_need_not_be_made(frame: Frame, slug: str | None) -> None:
    study = SimpleNamespace(
        snapshot=SimpleNamespace(stacks=[(frame, Frame("train.py", 31, "train"))]),
        history=SimpleNamespace(trace=SimpleNamespace(stack=[0])),
    )
    found = list(fused_optimizer.propose(circumstances(study=study, asked=Asked("optimizer"))))
    assert [(one.slug, one.saves_bytes) for one in found] == ([(slug, 2000)] if slug else [])
    assert not list(fused_optimizer.propose(circumstances(study=study, asked=Asked("forward"))))


def test_what_a_view_does_not_show_can_go() -> None:
    kept = suspect("baked.part", retained=4000, shows=100)
    (advice,) = copy_view.propose(circumstances(piled=Piled(retained=4000, debris=(kept,))))
    assert (advice.values["holder"], advice.saves_bytes, advice.enough) == ("baked.part", 3900, True)
    assert not list(copy_view.propose(circumstances(piled=Piled(debris=(suspect(),)))))


def test_half_of_a_history_of_steps_can_go() -> None:
    (advice,) = shard_optimizer_state.propose(circumstances(history_of_steps=6000))
    assert (advice.slug, advice.saves_bytes, advice.enough) == ("shard_optimizer_state.history", 3000, True)


@pytest.mark.parametrize(("bytes_", "advised"), [(500, False), (501, True)])
def test_a_model_that_takes_no_part_can_wait_on_the_cpu(bytes_: int, advised: bool) -> None:
    assert bool(list(move_idle_model.propose(circumstances(idle_models=(IdleModel("encoder", bytes_),))))) is advised
    (advice,) = move_idle_model.propose(circumstances(idle_models=(IdleModel("encoder", 4000), IdleModel("judge", 10))))
    assert (advice.values["holder"], advice.saves_bytes, advice.enough) == ("encoder", 4000, True)


@pytest.mark.parametrize(
    ("name", "saves"),
    [("Attention.forward: bias", 3000), ("f: causal_mask", 3000), ("f: scores", 4000), ("f: masks[0].rows", 4000)],
)
def test_a_fused_kernel_reads_what_is_added_to_the_scores(name: str, saves: int) -> None:
    kept = suspect(name, kind="tensor", retained=1000)
    one = circumstances(drivers=(driver("attention_scores", 4000),), suspects=(kept,))
    (advice,) = fused_attention.propose(one)
    assert advice.saves_bytes == saves


@pytest.mark.parametrize("remedy", SAVED, ids=lambda remedy: remedy.SLUG)
def test_what_shrinking_a_driver_saves(remedy: Any) -> None:
    slug, share, expected = SAVED[remedy]
    assert share == expected
    (advice,) = remedy.propose(circumstances(drivers=(driver(slug, 4000),)))
    assert advice.saves_bytes == 4000 * share
    assert advice.enough is effect.enough_by_sum(circumstances(), int(4000 * share))


@pytest.mark.parametrize("remedy", SAVED, ids=lambda remedy: remedy.SLUG)
@pytest.mark.parametrize(("bytes_", "advised"), [(500, False), (501, True)])
def test_which_drivers_are_worth_shrinking(remedy: Any, bytes_: int, advised: bool) -> None:
    assert shrink_driver.WORTH_ADVISING == 0.05
    slug = SAVED[remedy][0]
    assert bool(list(remedy.propose(circumstances(drivers=(driver(slug, bytes_),))))) is advised


def test_gradients_are_dropped_for_a_forward_only() -> None:
    one = circumstances(drivers=(driver("gradients", 4000),), in_forward=False)
    assert list(drop_gradients.propose(one)) == []


@pytest.mark.parametrize(("left", "advised"), [(2500, False), (2501, True)])
def test_the_pass_before_is_let_go_of_where_it_is_a_quarter(left: int, advised: bool) -> None:
    assert drop_last_pass.WORTH_ADVISING == 0.25
    assert bool(list(drop_last_pass.propose(circumstances(left_by_last_pass=left)))) is advised


def made_of_the_batch(monkeypatch: pytest.MonkeyPatch, there: int) -> None:
    """`there` bytes depend on the batch, and nothing can be replayed."""
    monkeypatch.setattr(smaller_batch, "live_bytes", lambda _: there)
    monkeypatch.setattr(smaller_batch, "of_the_batch", lambda _: NO_ROWS)
    monkeypatch.setattr(smaller_batch, "served_if_scaled", lambda *_, **__: None)


# With 2,000 asked for, 2,300 bytes less are enough.
@pytest.mark.parametrize(
    ("there", "divisor", "enough"),
    [
        (2600, 2, True),
        (2599, 4, True),
        (1067, 4, True),
        (1066, 8, True),
        (629, 8, True),
        (628, 16, True),
        (454, 16, True),
        (453, 2, False),
    ],
)
def test_the_largest_part_of_a_batch_that_fits(
    monkeypatch: pytest.MonkeyPatch, there: int, divisor: int, enough: bool
) -> None:
    assert smaller_batch.DIVISORS == (2, 4, 8, 16)
    made_of_the_batch(monkeypatch, there)
    (advice,) = smaller_batch.propose(circumstances(study=recorded_with()))
    assert (advice.values["divisor"], advice.enough) == (divisor, enough)


@pytest.mark.parametrize(("needs", "divisor", "enough"), [(14_000, 2, True), (100_000, 16, True), (10**7, 2, False)])
def test_a_pass_that_is_larger_is_divided_until_all_of_it_fits(
    monkeypatch: pytest.MonkeyPatch, needs: int, divisor: int, enough: bool
) -> None:
    assert smaller_batch.OF_ONE_MUCH_LARGER == (2, 4, 8, 16, 32, 64, 128)
    made_of_the_batch(monkeypatch, 8000)
    (advice,) = smaller_batch.propose(circumstances(study=recorded_with(), as_larger=needs))
    assert (advice.values["divisor"], advice.enough, advice.values["whole_pass"]) == (divisor, enough, enough)


def recorded_with(*shapes: tuple[int, ...]) -> Any:
    """A study whose recording knows tensors of these shapes, of 8 bytes a number."""
    tensors = [SimpleNamespace(category="activation", shape=one, bytes=8 * math.prod(one)) for one in shapes]
    tensors.append(SimpleNamespace(category="parameter", shape=(512, 512), bytes=1 << 30))
    snapshot = SimpleNamespace(recorded=SimpleNamespace(tensors_on=lambda _: tensors))
    return SimpleNamespace(phases=np.zeros(1, np.uint8), snapshot=snapshot, index=0)


@pytest.mark.parametrize(
    ("shapes", "condition"),
    [
        ((), 2),
        (((64,),), 2),
        (((1, 3, 224, 224),), 2),
        (((2, 3, 224, 224),), None),
        (((2, 3), (1, 6)), 2),
        (((2, 3), (1, 5)), None),
    ],
)
def test_a_batch_is_divided_on_condition_that_it_has_samples_to_divide(
    monkeypatch: pytest.MonkeyPatch, shapes: tuple[tuple[int, ...], ...], condition: int | None
) -> None:
    """One graph, or one picture, cannot be halved; a bare snapshot does not tell."""
    made_of_the_batch(monkeypatch, 2600)
    (advice,) = smaller_batch.propose(circumstances(study=recorded_with(*shapes)))
    assert advice.values["samples"] == condition
    assert ("if it has 2 samples or more" in advice_text(advice).action) is (condition == 2)


@pytest.mark.parametrize(("there", "advised"), [(500, False), (501, True)])
def test_a_batch_that_holds_little_is_not_made_smaller(
    monkeypatch: pytest.MonkeyPatch, there: int, advised: bool
) -> None:
    made_of_the_batch(monkeypatch, there)
    one = circumstances(asked=SimpleNamespace(phase="optimizer"), study=recorded_with())
    assert bool(list(smaller_batch.propose(one))) is advised


@pytest.mark.parametrize(("item", "slug"), [(None, ""), (4, ""), (3, ""), (2, ".small"), (1, ".small")])
def test_parameters_of_sixteen_bits_are_only_sharded(item: int | None, slug: str) -> None:
    assert shard_parameters.SIXTEEN_BITS == 2
    one = circumstances(drivers=(driver("parameters", 6000),), parameter_item=item)
    assert [advice.slug for advice in shard_parameters.propose(one)] == [f"shard_parameters{slug}"]


def test_an_object_that_keeps_much_comes_before_lines_that_grow_within_the_step() -> None:
    kept = suspect(kind="dict", retained=5000)
    rows = (growth(within_step=True),)
    assert [one.slug for one in bound_what_is_kept.propose(circumstances(suspects=(kept,), growth=rows))] == [
        "bound_what_is_kept.holder"
    ]
    assert list(bound_what_is_kept.propose(circumstances(growth=rows))) == []


def test_graphs_that_a_recording_saw_saved_are_to_be_detached() -> None:
    one = circumstances(growth=(growth(),), keeps_graphs=True, piled=Piled(grown=900, passes=3))
    assert list(bound_what_is_kept.propose(one)) == []


@pytest.mark.parametrize(("per_pass", "least"), [(None, 12_360), (100, 13_360)])
def test_a_higher_cap_has_room_for_ten_passes(per_pass: int | None, least: int) -> None:
    assert raise_cap.PASSES_OF_ROOM == 10
    one = circumstances(cap=10_000, device_free=least - 10_000, piled=Piled(per_pass=per_pass))
    (advice,) = raise_cap.propose(one)
    assert (advice.values["needed"], advice.values["least"]) == (12_000, least)
    assert advice.values["passes"] == (10 if per_pass else None)


@pytest.mark.parametrize(("free_there", "advised"), [(2360, True), (2359, False)])
def test_a_cap_is_raised_where_the_card_has_room(free_there: int, advised: bool) -> None:
    assert bool(list(raise_cap.propose(circumstances(cap=10_000, device_free=free_there)))) is advised


@pytest.mark.parametrize(("failed_after", "least"), [(3, 20_600), (2, 12_360)])
def test_a_request_that_a_library_did_without_needs_no_cap(failed_after: int, least: int) -> None:
    """The replay stops at the first of them, and its least memory is for that one."""
    trace = SimpleNamespace(entries=lambda _: np.array([0, 1, 2]))
    row = WhatIfRow("recorded", failed_allocation=failed_after, least_memory=20_000)
    one = circumstances(
        cap=10_000, device_free=1 << 20, entry=3, whatif=WhatIf(0, SelfCheck(3, 0, 0, None), (row,)),
        study=SimpleNamespace(history=SimpleNamespace(trace=trace)),
    )  # fmt: skip
    (advice,) = raise_cap.propose(one)
    assert advice.values["least"] == least


@pytest.mark.parametrize("state", [(0, 0), (1000, 3000), (0, 5000)])
def test_a_cap_holds_the_rest_of_an_optimizers_state_once(state: tuple[int, int]) -> None:
    """The request that failed is part of what is still to come."""
    (advice,) = raise_cap.propose(circumstances(cap=10_000, device_free=1 << 20, state_to_come=state))
    assert advice.values["least"] == int((10_000 + max(2000, state[1] - state[0])) * 1.03)


@pytest.mark.parametrize(("trains", "slug"), [(True, "smaller_batch.training"), (False, "smaller_batch")])
def test_gradients_are_added_up_only_where_the_work_underway_trains(
    monkeypatch: pytest.MonkeyPatch, trains: bool, slug: str
) -> None:
    made_of_the_batch(monkeypatch, 2600)
    (advice,) = smaller_batch.propose(circumstances(study=recorded_with(), trains=trains))
    assert advice.slug == slug


def test_the_most_places_of_pins() -> None:
    assert len(list(move_pins.propose(circumstances(pins=(pin(),) * 3)))) == move_pins.MOST_PLACES == 2


@pytest.mark.parametrize(("grown", "enough"), [(2300, True), (2299, None), (1999, False)])
def test_a_tensor_that_is_joined_to_frees_what_it_has_grown_by(grown: int, enough: bool | None) -> None:
    joined = RisingRequest(live=1000, risen=900, grown=grown, per_join=100, joins=9, since=0)
    (advice,) = bound_what_is_kept.propose(circumstances(rising=joined, piled=Piled(grown=grown)))
    assert (advice.slug, advice.saves_bytes) == ("bound_what_is_kept.reallocated", 900)
    assert advice.enough is enough


@pytest.mark.parametrize(
    ("holder", "reaches", "slug"),
    [
        ("kept", 1000, "bound_what_is_kept.reached"),
        ("kept", 899, "bound_what_is_kept"),
        ("main: net[*]._forward_hooks[*] (closure) seen", 900, "bound_what_is_kept.hooks"),
    ],
)
def test_an_object_through_which_all_that_grows_is_reached_is_the_one_to_empty(
    holder: str, reaches: int, slug: str
) -> None:
    assert bound_what_is_kept.NEARLY_ALL == 0.9
    kept = suspect(holder, retained=100, reaches=reaches)
    one = circumstances(suspects=(kept,), growth=(growth(),), piled=Piled(grown=1000))
    (advice,) = bound_what_is_kept.propose(one)
    assert advice.slug == slug


def test_lines_that_grow_alike_get_one_piece_of_advice() -> None:
    (advice,) = bound_what_is_kept.propose(circumstances(growth=(growth(),) * 3))
    assert advice.saves_bytes == 3 * growth().spared_bytes


@pytest.mark.parametrize(
    ("alone", "stranded", "enough"), [(2300, 2300, True), (2299, 2300, None), (0, 2000, None), (0, 1999, False)]
)
def test_moving_pins_is_enough_by_what_they_keep_alone(alone: int, stranded: int, enough: bool | None) -> None:
    (advice,) = move_pins.propose(circumstances(pins=(pin(alone_bytes=alone, stranded_bytes=stranded),)))
    assert advice.enough is enough


@pytest.mark.parametrize(("retained", "advised"), [(1999, False), (2000, True)])
@pytest.mark.parametrize("kind", ["collection", "attribute"])
def test_what_an_object_has_to_keep_to_be_worth_bounding(kind: str, retained: int, advised: bool) -> None:
    assert bound_what_is_kept.WORTH_BOUNDING == 0.2
    one = circumstances(suspects=(suspect(kind=kind, retained=retained),))
    assert bool(list(bound_what_is_kept.propose(one))) is advised


@pytest.mark.parametrize(
    ("sizes", "advised"), [(bucket_lengths.MANY_SIZES, False), (bucket_lengths.MANY_SIZES + 1, True)]
)
def test_how_many_sizes_are_many(sizes: int, advised: bool) -> None:
    assert bool(list(bucket_lengths.propose(circumstances(varied_sizes=sizes)))) is advised


@pytest.mark.parametrize(
    ("completed", "ratio", "stairs", "advised"),
    [
        (3, NO_LONGER, None, False),
        (3, NO_LONGER + 0.01, None, True),
        (3, None, (1, 9), True),
        (0, 2.0, None, False),
    ],
)
def test_batches_are_bounded_where_smaller_ones_had_fitted(
    completed: int, ratio: float | None, stairs: tuple[int, int] | None, advised: bool
) -> None:
    found = FailingPass(PLACE, completed, completed, ratio=ratio, grew_at=PLACE, staircase=stairs)
    assert bool(list(bound_batch.propose(circumstances(failing_pass=found)))) is advised


@pytest.mark.parametrize(
    ("share", "shape", "said"),
    [
        (None, (48, 318), "Limit `ids` at main (train.py:1): samples or length."),
        (0.791, (48, 318), "Limit `ids` at main (train.py:1) to less than 12,000 elements (15,264 in this pass)."),
        (0.639, None, "Limit the input at main (train.py:1) to less than 63 % of its size in this pass."),
    ],
)
def test_as_much_of_the_input_as_fits_is_told_where_it_is_known(
    share: float | None, shape: tuple[int, ...] | None, said: str
) -> None:
    place = Location("train.py", 1, "main")
    own = None if shape is None else LargerInput("main: ids", shape, 8, 4)
    found = FailingPass(place, 3, 3, ratio=2.0, grew_at=place, began_at=place, input=own)
    (advice,) = bound_batch.propose(circumstances(failing_pass=found, share_that_fits=share))
    assert advice_text(advice).action.startswith(said)


def test_where_gradients_are_accumulated_already_the_parts_are_to_be_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    made_of_the_batch(monkeypatch, 2600)
    parts = LoopFacts(trains_within=True, optimizes_within=False)
    (advice,) = smaller_batch.propose(circumstances(study=recorded_with(), trains=True, loop=parts))
    said = "Divide each micro-batch by 2, and accumulate the gradients of 2 times as many."
    assert advice_text(advice).action == said


@pytest.mark.parametrize(("share", "least"), [(0.1, 0.5), (0.7, 0.7)])
def test_what_has_fitted_before_is_not_forbidden(share: float, least: float) -> None:
    own = LargerInput("main: ids", (8, 1000), 16_000, 8000)
    found = FailingPass(PLACE, 3, 3, ratio=2.0, grew_at=PLACE, began_at=PLACE, input=own)
    (advice,) = bound_batch.propose(circumstances(failing_pass=found, share_that_fits=share))
    assert advice.values["share"] == least


@pytest.mark.parametrize(("ratio", "keeps", "advised"), [(1.0, True, True), (2.0, True, False), (1.0, False, False)])
def test_what_has_changed_is_asked_for_where_a_pass_frees_less(ratio: float, keeps: bool, advised: bool) -> None:
    kept = KeepsMore(6000, 1000, PLACE) if keeps else None
    found = FailingPass(PLACE, 2, 2, ratio=ratio, grew_at=PLACE, keeps=kept)
    advice = list(undo_change.propose(circumstances(failing_pass=found)))
    assert [(one.saves_bytes, one.at) for one in advice] == ([(5000, PLACE)] if advised else [])


def test_no_bound_is_put_on_batches_where_memory_piles_up() -> None:
    found = FailingPass(PLACE, 3, 3, ratio=2.0, grew_at=PLACE)
    piles_up = circumstances(failing_pass=found, growth=(growth(),))
    assert not list(bound_batch.propose(piles_up))


@pytest.mark.parametrize(("fixed", "said"), [(5000, False), (5001, True)])
def test_a_smaller_batch_is_refuted_where_most_is_fixed(fixed: int, said: bool) -> None:
    assert MOSTLY_FIXED == 0.5
    config = SimpleNamespace(config=SimpleNamespace(expandable_segments=False))
    one = circumstances(categories={"parameter": fixed}, study=SimpleNamespace(history=config))
    slugs = [advice.slug for advice in refuted(one, "capacity", set())]
    assert ("refuted.smaller_batch.fixed" in slugs) is said


def proposing(slug: str, *enough: bool | None) -> Any:
    def propose(_: Any) -> Iterator[Advice]:
        yield from (Advice(slug, {}, None, one) for one in enough)

    return SimpleNamespace(SLUG=slug, propose=propose)


def advised(monkeypatch: pytest.MonkeyPatch, *enough: bool | None) -> list[bool | None]:
    """What is advised where the first remedy against a full memory proposes so many things, and no other does."""
    first, *others = CAUSE_MODULES["capacity"].REMEDIES
    made = {first: proposing(first, *enough)} | {slug: proposing(slug) for slug in others}
    monkeypatch.setattr(remedies, "REMEDY_MODULES", made)
    monkeypatch.setattr(remedies, "refuted", lambda *_: ())
    return [advice.enough for advice in remedies.advise(circumstances(), "capacity")]


def test_the_most_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(advised(monkeypatch, *[None] * remedies.MOST_ADVICE)) == remedies.MOST_ADVICE == 6
    assert len(advised(monkeypatch, *[None] * (remedies.MOST_ADVICE + 1))) == remedies.MOST_ADVICE


@pytest.mark.parametrize(
    ("saves", "enough", "is_told"),
    [
        (1000, None, True),
        (999, None, False),
        (999, True, True),
        (999, False, True),
        (None, None, True),
        (0, None, True),
    ],
)
def test_what_may_be_enough_only_if_holes_join_saves_a_good_part_of_what_is_missing(
    saves: int | None, enough: bool | None, is_told: bool
) -> None:
    """The request lacks 2,000 bytes."""
    assert remedies.LEAST_OF_MISSING == 0.5
    assert remedies._is_too_little(circumstances(), Advice("shard_parameters", {}, saves, enough)) is not is_told


def test_a_setting_that_nobody_could_replay_is_tried_last_where_the_program_needs_too_much() -> None:
    setting = Advice("allocator_setting.untried", {}, None, None)
    other = Advice("smaller_batch", {}, None, None)
    assert remedies._place(setting, (), "capacity") > remedies._place(other, (), "capacity")
    assert remedies._place(setting, (), "fragmentation") == remedies._place(other, (), "fragmentation")


def test_what_is_enough_comes_first_and_what_is_not_last(monkeypatch: pytest.MonkeyPatch) -> None:
    assert advised(monkeypatch, False, None, True, None, True) == [True, True, None, None, False]


REMEDIES_OF_A_SUM: dict[ModuleType, dict[str, Any]] = {
    share_graph_pool: {"wall": "graph"},
    let_pool_go: {"wall": "mempool"},
    one_stream: {"free": "other_streams"},
    free_the_card: {"outside": True},
    split_request: {"request": True},
    forget_exception: {"kind": "exception"},
    collect_garbage: {"kind": "cycle"},
    drop_optimizer: {"kind": "optimizer"},
}


@pytest.mark.parametrize("remedy", REMEDIES_OF_A_SUM, ids=lambda remedy: remedy.SLUG)
@pytest.mark.parametrize(("bytes_", "enough"), [(2300, True), (2299, None), (1999, False)])
def test_what_a_remedy_gives_back_decides_whether_it_is_enough(
    monkeypatch: pytest.MonkeyPatch, remedy: Any, bytes_: int, enough: bool | None
) -> None:
    monkeypatch.setattr(split_request, "_is_out_of_proportion", lambda *_: True)
    how = REMEDIES_OF_A_SUM[remedy]
    if "wall" in how:
        one = circumstances(free=free(walled=bytes_), walls=(Wall((0, 1), None, how["wall"], bytes_, bytes_),))
    elif "free" in how:
        one = circumstances(free=free(**{how["free"]: bytes_}))
    elif "outside" in how:
        one = circumstances(outside=bytes_, total=90_000)
    elif "kind" in how:
        one = circumstances(piled=Piled(debris=(suspect(kind=how["kind"], retained=bytes_),)))
    else:
        # Without the request, what is reserved may leave the margin, or not.
        one = circumstances(reserved=9700 if enough else 9701)
        enough = True if enough else None
    (advice,) = remedy.propose(one)
    assert advice.enough is enough


def test_nothing_is_advised_where_nothing_is_there() -> None:
    silent = (
        share_graph_pool,
        let_pool_go,
        one_stream,
        free_the_card,
        forget_exception,
        collect_garbage,
        drop_optimizer,
        retry_request,
    )
    assert [list(remedy.propose(circumstances())) for remedy in (*silent, limit_calls_in_progress)] == [[]] * 9


@pytest.mark.parametrize(("whole", "proposed"), [(1000, True), (999, False)])
def test_a_pool_that_would_give_little_back_may_stay(whole: int, proposed: bool) -> None:
    walls = (Wall((1, 0), None, "graph", 9000, 9000), Wall((0, 1), "main: pool", "mempool", 1000, whole))
    found = list(let_pool_go.propose(circumstances(free=free(walled=10_000), walls=walls)))
    assert bool(found) is proposed


def test_a_request_that_would_fit_by_now_is_to_be_asked_again() -> None:
    (advice,) = retry_request.propose(circumstances(opened=2000))
    assert advice.enough


@pytest.mark.parametrize(("size", "enough"), [(460, True), (400, None), (100, False), (99, "silent")])
def test_calls_in_progress_are_to_be_half_as_many(size: int, enough: bool | str | None) -> None:
    """What they hold is what is alive of what was made within them: not what was freed, nor what others made."""
    frames = [Frame("serve.py", 7, "Server.serve"), Frame("model.py", 3, "forward"), Frame("else.py", 5, "serve")]
    table = StackTable.from_stacks(frames, [[1, 0], [0], [1], [2]])
    history = SimpleNamespace(
        lifetimes=SimpleNamespace(stack=np.array([0, 1, 1, 2, 3])), size=np.array([9 * size, size, 7, 7, 7])
    )
    study = SimpleNamespace(snapshot=SimpleNamespace(stacks=table), history=history)
    underway = CallsInProgress("serve", "serve.py", 5, 21)
    live = np.array([True, True, False, True, True])
    found = list(limit_calls_in_progress.propose(circumstances(in_progress=(underway,), study=study, live=live)))
    if enough == "silent":
        assert found == []
        return
    (advice,) = found
    assert advice.values == {"calls": 21, "most": 10, "function": "serve", "bytes": 10 * size}
    assert advice.saves_bytes == (10 * size * 11 // 21 or None)
    assert advice.enough is enough


def of_torch(version: str | None) -> SimpleNamespace:
    return SimpleNamespace(snapshot=SimpleNamespace(recorded=SimpleNamespace(torch=version)))


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (
            "{}.{}.0+cu128".format(*allocator_setting._RENAMED),
            "Run with `PYTORCH_ALLOC_CONF=expandable_segments:True` in the environment.",
        ),
        ("2.8.0", "Run with `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` in the environment."),
        (None, "Run with `PYTORCH_ALLOC_CONF=expandable_segments:True` (PYTORCH_CUDA_ALLOC_CONF before torch 2.9)."),
    ],
)
def test_a_setting_is_told_by_the_variable_that_this_torch_reads(
    monkeypatch: pytest.MonkeyPatch, version: str | None, said: str
) -> None:
    row = SimpleNamespace(conf=None, setting="expandable_segments:True", headroom=300, oom=False, retries=0)
    monkeypatch.setattr(allocator_setting, "serving", lambda *_: [row])
    (advice,) = allocator_setting.propose(circumstances(state_to_come=(0, 0), study=of_torch(version)))
    assert advice_text(advice).action == said


@pytest.mark.parametrize(("needs", "enough"), [(1000, True), (1300, True), (1301, False)])
def test_a_setting_is_not_enough_where_the_optimizer_asks_for_more_than_is_spare(
    monkeypatch: pytest.MonkeyPatch, needs: int, enough: bool
) -> None:
    row = SimpleNamespace(conf=None, setting="expandable_segments:True", headroom=300, oom=False, retries=0)
    monkeypatch.setattr(allocator_setting, "serving", lambda *_: [row])
    (advice,) = allocator_setting.propose(circumstances(state_to_come=(1000, needs), study=of_torch("2.11.0")))
    assert advice.enough is enough
    assert advice.values["to_come"] == (None if enough else needs - 1000)


@pytest.mark.parametrize(
    ("others", "named"),
    [
        ((), "`adam` (in main)"),
        (("main: cosine",), "`adam` (in main), and of `cosine`, which keeps some of it,"),
        (("main: a", "main: b"), "`adam` (in main), and of `a` and `b`, which keep some of it,"),
    ],
)
def test_what_else_keeps_a_variable_is_named(others: tuple[str, ...], named: str) -> None:
    values = {"holder": "main: adam", "bytes": 1, "before": None, "reads": "", "stored": None, "graph": False}
    action = advice_text(Advice("release_variable", values | {"others": others})).action
    assert action.startswith(f"Let go of {named} once it has been used")


@pytest.mark.parametrize(
    ("per_pass", "rise", "ratio", "passes"),
    [(100, 0, 4.0, 10), (None, 30, 1.0, 10), (None, 30, 4.0, None), (None, 0, 1.0, None)],
)
def test_a_cap_has_room_for_passes_unless_the_input_grows(
    per_pass: int | None, rise: int, ratio: float, passes: int | None
) -> None:
    failing = FailingPass(PLACE, 5, 5, ratio=ratio)
    one = circumstances(
        cap=10_000, device_free=1 << 20, piled=Piled(per_pass=per_pass), rise=rise, failing_pass=failing
    )
    (advice,) = raise_cap.propose(one)
    assert advice.values["passes"] == passes


@pytest.mark.parametrize(
    ("frame", "rises", "kept", "saves"),
    [
        (Frame("/venv/transformers/trainer.py", 2906, "evaluation_loop"), True, None, 900),
        (Frame("/venv/transformers/trainer.py", 2906, "evaluation_loop"), False, None, None),
        (Frame("/venv/transformers/trainer.py", 1883, "_run_epoch"), True, None, None),
        (Frame("eval.py", 40, "evaluation_loop"), True, None, None),
        (Frame("eval.py", 40, "forward"), False, "Trainer.evaluation_loop: all_preds.tensors", 1000),
        (Frame("eval.py", 40, "forward"), False, "Trainer.evaluation_loop: logits", None),
    ],
)
def test_predictions_of_an_evaluation_can_go_to_the_cpu(
    frame: Frame, rises: bool, kept: str | None, saves: int | None
) -> None:
    study = SimpleNamespace(
        snapshot=SimpleNamespace(stacks=[(frame, Frame("run.py", 31, "main"))]),
        history=SimpleNamespace(trace=SimpleNamespace(stack=[0])),
    )
    rising = RisingRequest(live=900, risen=600, grown=1000, per_join=300, joins=3, since=0) if rises else None
    piled = Piled(grown=1000, holder=None if kept is None else suspect(kept, retained=1000))
    found = list(accumulate_predictions.propose(circumstances(study=study, rising=rising, piled=piled)))
    assert [one.saves_bytes for one in found] == ([] if saves is None else [saves])
