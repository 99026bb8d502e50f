"""The thresholds of what has piled up and of who keeps it, each just below and just above."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from oomscope.analysis.passes.kept_models import KeptModels
from oomscope.analysis.passes.rising_request import RisingRequest
from oomscope.analysis.remedies import bound_what_is_kept
from oomscope.analysis.study import DeviceStudy, study_device
from oomscope.analysis.verdict import calls, failed_requests, hooks, models_held, piled, suspects
from oomscope.analysis.verdict.causes import growth as growth_cause
from oomscope.analysis.verdict.failed_tries import from_before_a_failure, left_by_failed_tries
from oomscope.analysis.verdict.piled import LEAST_PASSES, MOST_GATHERED, LoopFacts, Piled, find_piled
from oomscope.model import Snapshot
from oomscope.wording import say
from oomscope.wording.template import holder
from tests.analysis.programs import LOADING, MIB
from tests.passes.scripts import Script
from tests.verdict.stand_ins import circumstances, growth, outcome, suspect


def kept(
    passes: int, retained: int = 4999, kind: str = "collection", *, loop: LoopFacts | None = None, **more: Any
) -> Piled:
    """What has piled up where one object keeps something of so many passes, out of 10,000 bytes."""
    one = suspect(kind=kind, retained=retained, passes=passes, **more)
    return find_piled((), (one,), (), loop or LoopFacts())


@pytest.mark.parametrize(
    ("passes", "retained", "grown"), [(2, 4999, 0), (3, 4999, 4999), (1, 5000, 0), (2, 5000, 5000)]
)
def test_three_passes_pile_up_or_two_of_what_keeps_most(passes: int, retained: int, grown: int) -> None:
    assert (piled.LEAST_PASSES, piled.MOSTLY) == (3, 0.5)
    assert kept(passes, retained).grown == grown


@pytest.mark.parametrize(("rounds", "grown"), [(piled.MOST_GATHERED, 0), (piled.MOST_GATHERED + 1, 900)])
def test_graphs_of_a_few_rounds_are_gathered_for_a_backward(rounds: int, grown: int) -> None:
    rows = (growth(generations=rounds, spared_bytes=900),)
    assert find_piled(rows, (), (), LoopFacts(keeps_graph=True)).grown == grown


@pytest.mark.parametrize("facts", [{"trained_before": True}, {"trains_within": True}])
def test_graphs_of_a_loop_that_had_its_backward_are_not(facts: dict[str, bool]) -> None:
    rows = (growth(generations=2),)
    assert find_piled(rows, (), (), LoopFacts(keeps_graph=True, **facts)).steady == 900


@pytest.mark.parametrize(("fit", "steady"), [(piled.STEADY, 900), (piled.STEADY - 0.001, 0)])
def test_a_straight_line_is_beyond_doubt(fit: float, steady: int) -> None:
    found = find_piled((growth(fit=fit),), (), (), LoopFacts())
    assert (found.grown, found.steady) == (900, steady)


@pytest.mark.parametrize("kind", ["graph", "tensor"])
def test_a_graph_that_a_variable_holds_is_work_unless_each_pass_trains(kind: str) -> None:
    assert kept(8, kind=kind, keeps_graph=True).grown == 0
    assert kept(8, kind=kind, keeps_graph=True, loop=LoopFacts(trains_within=True)).grown == 4999


def test_a_collection_of_graphs_is_sure_only_where_their_backward_has_been() -> None:
    found = kept(8, keeps_graph=True)
    assert (found.grown, found.steady) == (4999, 0)
    assert kept(8, keeps_graph=True, loop=LoopFacts(trained_before=True)).steady == 4999


def test_what_a_loop_that_has_ended_filled_is_in_use() -> None:
    assert kept(8, loop=LoopFacts(goes_on=False)).grown == 0


@pytest.mark.parametrize(("finished", "holder"), [(500, True), (499, False)])
def test_an_object_is_named_where_it_keeps_half_of_what_grows(finished: int, holder: bool) -> None:
    one = suspect(retained=finished, passes=8)
    found = find_piled((growth(spared_bytes=1000),), (one,), (), LoopFacts())
    assert (found.holder is not None) is holder


@pytest.mark.parametrize(
    ("passes", "loop", "grows"),
    [
        (piled.MOST_TRIES, LoopFacts(failed_tries=1), False),
        (piled.MOST_TRIES + 1, LoopFacts(failed_tries=1), True),
        (piled.LEAST_PASSES - 1, LoopFacts(), False),
        (piled.LEAST_PASSES, LoopFacts(), True),
        (piled.MOST_TRIES + 1, LoopFacts(goes_on=False), False),
    ],
)
def test_exceptions_of_few_passes_are_left_over_and_of_many_go_on(passes: int, loop: LoopFacts, grows: bool) -> None:
    found = kept(passes, kind="exception", loop=loop)
    assert (found.grown, found.retained) == ((4999, 0) if grows else (0, 4999))


@pytest.mark.parametrize(("count", "passes"), [(suspects.LEAST_ABANDONED - 1, 0), (suspects.LEAST_ABANDONED, 9)])
def test_full_queues_whose_oldest_item_nobody_took_are_abandoned(count: int, passes: int) -> None:
    script = Script()
    with script.call(50, "train"):
        for _ in range(10):
            script.at(31, 10)
            script.free(script.layer(32, 10, 2))
        script.fails(31, 50)
    told = {"device": 0, "kind": "deque", "tensors": 1, "count": count, "maxlen": 1, "length": count}
    tensors = [{"device": 0, "address": 1 << 40, "bytes": 10 * MIB, "holders": ["queue[0]"]}]
    key = {"schema_version": 1, "holders": [{**told, **keeps("queue", 10 * MIB)}], "tensors": tensors}
    study = study_device(script.snapshot(oomscope=key), 0)
    (one,) = suspects.find_suspects(study, study.history.entries - 1)
    assert one.is_full
    assert one.is_abandoned is (passes > 0)


@pytest.mark.parametrize(("shown", "tells"), [(10, True), (11, False)])
def test_a_view_that_shows_a_tenth_keeps_the_rest_for_nothing(shown: int, tells: bool) -> None:
    assert suspects.MOST_SHOWN == 0.1
    tensor = {
        "device": 0,
        "address": 1 << 40,
        "bytes": 10 * MIB,
        "visible": shown * MIB // 10,
        "holders": ["baked.part"],
    }
    study = study_device(holding(keeps("baked.part", 10 * MIB, kind="attribute"), tensors=(tensor,)), 0)
    (one,) = suspects.find_suspects(study, study.history.entries - 1)
    assert (one.shows == shown * MIB // 10) is tells
    assert suspects.is_finished_with(one) is tells


@pytest.mark.parametrize(("passes", "grows"), [(2, False), (3, True)])
def test_a_list_of_views_grows(passes: int, grows: bool) -> None:
    found = kept(passes, shows=10)
    assert (found.grown, found.retained) == ((4999, 0) if grows else (0, 4999))


def test_what_is_abandoned_piles_up_though_it_is_full() -> None:
    assert kept(9, is_full=True).grown == 0
    assert kept(9, is_full=True, is_abandoned=True).grown == 4999


def test_calls_in_progress_are_at_work() -> None:
    assert find_piled((growth(),), (), ("train",), LoopFacts()).grown == 0


@pytest.mark.parametrize(("unread", "retained"), [("likely", 0), ("proven", 3000), (None, 0)])
def test_what_many_calls_at_once_do_not_read_again_is_at_work(unread: str | None, retained: int) -> None:
    left = suspect("Server.normalise: x", "tensor", retained=3000, unread=unread)
    assert find_piled((), (left,), ("segment",), LoopFacts()).retained == retained


@pytest.mark.parametrize(
    ("way", "passes", "grown"),
    [
        ("Tensor → ClipBackward.y → Tensor", piled.LEAST_PASSES, 3000),
        ("Tensor → ClipBackward.y → Tensor", piled.LEAST_PASSES - 1, 0),
        ("Engine.scheduler → Scheduler.engine → Engine", 50, 0),
    ],
)
def test_a_cycle_that_no_collection_ends_piles_up(way: str, passes: int, grown: int) -> None:
    cycle = suspect(f"reference cycle: {way}", "cycle", retained=3000, passes=passes)
    found = find_piled((), (cycle,), (), LoopFacts())
    assert (found.grown, found.retained) == (grown, 3000 - grown)


def holding(*holders: dict[str, Any], tensors: tuple[dict[str, Any], ...] = (), **key: Any) -> Snapshot:
    """A recording of a program with 100 MiB, with what the recorder saw of its objects."""
    script = Script()
    for _ in range(10):
        script.at(3, 10)
    script.fails(4, 50)
    told = [{"device": 0, "kind": "list", "tensors": 1, **one} for one in holders]
    return script.snapshot(oomscope={"schema_version": 1, "holders": told, "tensors": list(tensors), **key})


def names(snapshot: Snapshot) -> list[str]:
    study = study_device(snapshot, 0)
    return [one.holder for one in suspects.find_suspects(study, study.history.entries - 1)]


def keeps(name: str, bytes_: int, **more: Any) -> dict[str, Any]:
    return {"holder": name, "retained": bytes_, "bytes": bytes_, **more}


def test_the_least_share_of_a_suspect() -> None:
    assert suspects.LEAST_SHARE == 0.02
    assert names(holding(keeps("small", 2 * MIB - 1))) == []
    assert names(holding(keeps("enough", 2 * MIB))) == ["enough"]


def test_the_most_suspects_are_the_largest() -> None:
    many = [keeps(f"list{number}", (20 - number) * MIB) for number in range(suspects.MOST_SUSPECTS + 1)]
    assert names(holding(*many)) == [f"list{number}" for number in range(suspects.MOST_SUSPECTS)]


def test_the_most_paths_of_a_suspect() -> None:
    start = 1 << 40
    told = tuple(
        {"device": 0, "address": start + 10 * MIB * at, "bytes": 10 * MIB, "holders": [f"kept[{at}]"]}
        for at in range(6)
    )
    study = study_device(holding(keeps("kept", 60 * MIB), tensors=told), 0)
    (one,) = suspects.find_suspects(study, study.history.entries - 1)
    assert one.path == tuple(f"kept[{at}]" for at in range(suspects.MOST_PATHS))


@pytest.mark.parametrize(
    ("name", "hooks", "kind", "passes"),
    [
        ("train: net.stem._forward_hooks[*] (closure) seen", hooks.LEAST_HOOKS, "hooks", 3),
        ("train: net.stem._forward_hooks[*] (closure) seen", hooks.LEAST_HOOKS - 1, "dict", 0),
        ("train: net.stem._forward_hooks[7] (closure) seen", 9, "dict", 0),
        ("train: hooks[*]", 9, "dict", 0),
        ("train: net.blocks[*]._forward_hooks", 2, "hooks", 3),
        ("train: net.blocks[*]._forward_hooks", 3, "dict", 0),
        ("train: self._hooks", 2, "dict", 0),  # a list of the program's own
    ],
)
def test_hooks_that_were_registered_again_and_again_pile_up(name: str, hooks: int, kind: str, passes: int) -> None:
    study = study_device(holding(keeps(name, 60 * MIB, kind="dict", count=hooks, tensors=8, length=9)), 0)
    (one,) = suspects.find_suspects(study, study.history.entries - 1)
    assert (one.kind, one.passes) == (kind, passes)
    assert one.earlier_bytes == (45 * MIB if passes else 0)  # one of the four may be in use


def test_the_headline_of_hooks_names_the_module_and_the_advice_its_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bound_what_is_kept, "kept_rows", lambda _: None)
    name = "train: net.stem._forward_hooks[*] (closure) seen"
    kept_ = suspect(name, "hooks", retained=8000, passes=3)
    one = circumstances(piled=Piled(grown=6000, passes=3, holder=kept_))
    (told, *_) = growth_cause.headline(one, outcome("growth"))
    assert say(told).startswith("4 hooks registered on `net.stem` keep alive 7.81 KiB of the 9.77 KiB in use")
    assert say(told).endswith(", each with a `seen` of its own.")
    (advice,) = bound_what_is_kept.propose(one)
    assert (advice.slug, advice.values["holder"]) == ("bound_what_is_kept.hooks", "train: net.stem._forward_hooks")


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("a method that nothing visible holds", "a method that only C code holds (for `atexit` or a signal)"),
        (
            "Engine.close (a method that nothing visible holds)",
            "`Engine.close` (a method that only C code holds, for `atexit` or a signal)",
        ),
    ],
)
def test_what_only_a_signals_handler_keeps_is_told_as_one(name: str, called: str) -> None:
    assert holder(name) == holder(f"{name}.__self__") == called
    kept_ = [keeps(f"{name}.__self__.{part}", 30 * MIB, kind="parameter") for part in ("encoder", "head")]
    study = study_device(holding(*kept_), 0)
    (one,) = suspects.find_suspects(study, study.history.entries - 1)
    assert (one.holder, one.kind, one.retained) == (name, "deferred", 60 * MIB)


@pytest.mark.parametrize(("models", "found"), [(1, []), (2, ["results"])])
def test_a_collection_of_models_has_at_least_two(models: int, found: list[str]) -> None:
    assert models_held.LEAST_MODELS == 2
    told = [keeps(f"results[{number}].model", 30 * MIB, kind="parameter") for number in range(models)]
    assert names(holding(*told)) == found


@pytest.mark.parametrize(
    ("way", "count", "found"),
    [
        ("results[*]", 2, ["results"]),
        ("results[*]", 1, []),
        ("results[0].blocks[*]", 12, []),
        ("handlers['saved'][*]", 2, ["handlers['saved']"]),
    ],
)
def test_models_alike_stand_in_one_row(way: str, count: int, found: list[str]) -> None:
    told = [keeps(way, 60 * MIB, kind="parameter", count=count)]
    assert names(holding(*told)) == found


def test_an_object_that_retains_nothing_is_no_exception_and_no_graph() -> None:
    study = study_device(holding({"holder": "x", "retained": 0, "bytes": 50 * MIB, "kind": "tensor"}), 0)
    (one,) = suspects.find_suspects(study, study.history.entries - 1)
    assert (one.kind, one.keeps_graph) == ("tensor", False)


SERVE = {"filename": "/workspace/train/serve.py", "line": 5, "name": "serve"}
THREADING = {"filename": "/usr/lib/python3.12/threading.py", "line": 1012, "name": "run"}


@pytest.mark.parametrize(
    ("threads", "frames", "known"),
    [
        (2, [SERVE], ()),
        (3, [SERVE], (("serve", 3),)),
        (3, [SERVE, THREADING], (("serve", 3),)),
        (3, [THREADING], ()),
    ],
)
def test_calls_of_the_programs_functions_count_from_three_on(
    threads: int, frames: list[dict[str, Any]], known: tuple[tuple[str, int], ...]
) -> None:
    assert calls.LEAST_CALLS == 3
    told = [{"name": f"worker {number}", "frames": frames} for number in range(threads)]
    study = study_device(holding(stacks={"failing": [], "main": [], "threads": told}), 0)
    found = calls.calls_in_progress(study, study.history.entries - 1)
    assert tuple((one.function, one.calls) for one in found) == known


@pytest.mark.parametrize("failures", [failed_requests.MOST_JUDGED, failed_requests.MOST_JUDGED + 1])
def test_the_most_failed_requests_are_the_last(failures: int) -> None:
    script = Script()
    script.at(3, 10)
    for number in range(failures):
        script.fails(4, 50 + number)
    found = failed_requests.failed_requests(study_device(script.snapshot(), 0))
    assert len(found) == failed_requests.MOST_JUDGED
    assert found[-1].size == (49 + failures) * MIB


def tries(*, kept_alive: bool, after: bool) -> int:
    """Bytes left by tries that failed: each makes two tensors, and fails; then one more try or something else."""
    script = Script()
    script.alloc(4 * MIB, LOADING)
    with script.call(40, "search"):
        for _ in range(3):
            made = [script.at(11, 8), script.at(12, 8)]
            script.fails(13, 100)
            if not kept_alive:
                script.free(*made)
    if after:
        script.fails(50, 100)
    study = study_device(script.snapshot(), 0)
    return left_by_failed_tries(study, study.history.entries - 1)


def test_what_failed_tries_left_counts_in_the_loop_and_after_it() -> None:
    assert tries(kept_alive=True, after=False) == 32 * MIB, "the try in progress does not count"
    assert tries(kept_alive=True, after=True) == 48 * MIB
    assert tries(kept_alive=False, after=True) == 0


def test_what_is_kept_of_failed_tries_is_not_asked_for_where_objects_are_known() -> None:
    loop = LoopFacts(failed_tries=700)
    assert find_piled((), (), (), loop).retained == 700
    assert find_piled((), (replace(suspect(), passes=0),), (), loop).retained == 0


@pytest.mark.parametrize(("by_site", "told"), [(210, 210), (190, 190), (211, 200), (189, 200)])
def test_an_object_and_the_site_that_fills_it_have_one_pace(by_site: int, told: int) -> None:
    assert piled.SAME_PACE == 20
    rows = (growth(spared_bytes=1600, bytes_per_step=by_site),)
    assert find_piled(rows, (suspect(retained=1600, passes=8),), (), LoopFacts()).per_pass == told


@pytest.mark.parametrize(("blocks", "per_pass"), [(1, 200), (4, 125)])
def test_a_pass_of_a_replaced_tensor_needs_the_old_and_the_new_one(blocks, per_pass):
    rows = (growth(kind="reallocation", bytes_per_step=100, blocks=blocks),)
    assert find_piled(rows, (), (), LoopFacts()).per_pass == per_pass


@pytest.mark.parametrize(
    ("facts", "steady"),
    [
        ({"optimizes_within": False}, 0),
        ({"optimizes_within": True}, 900),
        ({"optimizes_within": False, "trained_before": True}, 900),
        ({"optimizes_within": False, "trains_within": False}, 900),
    ],
)
def test_passes_with_a_backward_and_no_optimizers_step_may_be_one_step(facts, steady):
    rows = (growth(generations=MOST_GATHERED, spared_bytes=900),)
    assert find_piled(rows, (), (), LoopFacts(**{"trains_within": True, **facts})).steady == steady
    many = (growth(generations=MOST_GATHERED + 1, spared_bytes=900),)
    assert find_piled(many, (), (), LoopFacts(trains_within=True, optimizes_within=False)).steady == 900


def test_a_join_that_fails_raises_what_is_needed_by_both_tensors():
    joined = RisingRequest(live=1000, risen=900, grown=2000, per_join=100, joins=9, since=0)
    found = find_piled((), (), (), LoopFacts(rising=joined))
    assert (found.grown, found.per_pass) == (2000, 200)


@pytest.mark.parametrize(("grown", "kept"), [(999, True), (1000, False)])
def test_models_have_piled_up_where_they_are_more_than_all_else(grown: int, kept: bool) -> None:
    run: Any = None
    models = KeptModels(run=run, passes=4, bytes=1000, trained=True)
    found = find_piled((growth(spared_bytes=grown),), (), (), LoopFacts(models=models))
    assert (found.models is models) is kept


@pytest.mark.parametrize(("optimizers", "path"), [(1, ("weight.exp_avg", "AdamW: weight")), (2, ("AdamW: weight",))])
def test_states_are_those_of_the_only_optimizer(optimizers: int, path: tuple[str, ...]) -> None:
    named = (("optimizer_state", "weight.exp_avg"), ("parameter", "AdamW: weight"), ("parameter", "model: weight"))
    told = tuple(
        {"device": 0, "address": (1 << 40) + 10 * MIB * at, "bytes": 10 * MIB, "category": category, "name": name}
        for at, (category, name) in enumerate(named)
    )
    states = [keeps(name, 10 * MIB, kind="optimizer_state") for name in ("AdamW", "SGD")[:optimizers]]
    models = [keeps(name, 10 * MIB, kind="parameter") for name in ("AdamW", "model")]
    study = study_device(holding(*states, *models, tensors=told), 0)
    (one,) = suspects.find_suspects(study, study.history.entries - 1)
    assert (one.holder, one.kind, one.path) == ("AdamW", "optimizer", path)


def test_the_way_to_the_largest_of_what_an_object_keeps_comes_first() -> None:
    told = tuple(
        {"device": 0, "address": (1 << 40) + 10 * MIB * at, "bytes": (at + 1) * MIB, "holders": [f"kept[{at}]"]}
        for at in range(3)
    )
    study = study_device(holding(keeps("kept", 30 * MIB), tensors=told), 0)
    (one,) = suspects.find_suspects(study, study.history.entries - 1)
    assert one.path == ("kept[2]", "kept[1]", "kept[0]")


@pytest.mark.parametrize(("errors", "name"), [(1, "main: errors[0]"), (2, "main: errors")])
def test_several_exceptions_that_a_variable_reaches_are_one_suspect(errors: int, name: str) -> None:
    held = [keeps(f"main: errors[{at}]", 10 * MIB, kind="exception") for at in range(errors)]
    study = study_device(holding(*held), 0)
    (one,) = suspects.find_suspects(study, study.history.entries - 1)
    assert (one.holder, one.retained, one.tensors, one.share) == (name, errors * 10 * MIB, errors, errors * 0.1)


AT = {"filename": "/workspace/train.py", "line": 54, "name": "fit"}


@pytest.mark.parametrize(
    ("other", "place", "known"),
    [("fit: other", "local", True), ("test: other", "local", False), ("fit: other", "global", False)],
)
def test_a_variable_is_let_go_of_where_another_one_of_its_call_is(other: str, place: str, known: bool) -> None:
    held = [
        keeps("fit: kept", 20 * MIB, place="local"),
        keeps(other, 10 * MIB, place=place, at=AT),
    ]
    study = study_device(holding(*held), 0)
    first, second = suspects.find_suspects(study, study.history.entries - 1)
    assert second.at is not None
    assert first.at == (second.at if known else None)


def test_a_holder_whose_kind_is_not_told_is_of_an_unknown_one() -> None:
    study = study_device(holding(keeps("kept", 20 * MIB, kind=None)), 0)
    (one,) = suspects.find_suspects(study, study.history.entries - 1)
    assert one.kind == "unknown"


@pytest.mark.parametrize(
    ("kind", "finished", "ended"),
    [("closure", True, True), ("closure", False, False), ("closure", None, False), ("list", True, False)],
)
def test_a_closure_is_over_where_the_recording_says_so(kind: str, finished: bool | None, ended: bool) -> None:
    study = study_device(holding(keeps("hook", 10 * MIB, kind=kind, finished=finished)), 0)
    (one,) = suspects.find_suspects(study, study.history.entries - 1)
    assert one.is_ended_closure is ended


@pytest.mark.parametrize(
    ("count", "length", "full"), [(None, 39, False), (None, 40, True), (2, 79, False), (2, 80, True)]
)
def test_a_bounded_collection_is_full_where_it_holds_all_it_may(count: int | None, length: int, full: bool) -> None:
    told = keeps("queue", 50 * MIB, kind="deque", count=count, maxlen=40, length=length)
    study = study_device(holding(told), 0)
    (one,) = suspects.find_suspects(study, study.history.entries - 1)
    assert one.is_full is full


@pytest.mark.parametrize("unread", [True, False])
def test_what_lies_within_a_variable_that_is_not_read_again_is_told_with_it(unread: bool) -> None:
    told = {"device": 0, "address": 1 << 40, "bytes": 10 * MIB, "unread": "main: old"}
    row = {"holder": "main: old", "place": "local", "since": "before", "device": 0}
    held = [keeps("old.history", 20 * MIB), keeps("other", 30 * MIB)]
    if unread:
        assert names(holding(*held, tensors=(told,), unread=[row])) == ["other", "main: old"]
    else:
        assert names(holding(*held, keeps("main: old", 10 * MIB))) == ["other", "old.history", "main: old"]


def serving(**key: Any) -> DeviceStudy:
    """A recording of a program whose request fails within `serve`, without stacks of threads."""
    script = Script("/workspace/train/serve.py")
    with script.call(50, "serve"):
        script.at(5, 30)
        script.fails(6, 50)
    return study_device(script.snapshot(oomscope={"schema_version": 1, **key}), 0)


@pytest.mark.parametrize(("tensors", "known"), [(2, ()), (3, (("serve", 3),))])
def test_a_variable_of_several_tensors_stands_in_as_many_calls(
    tensors: int, known: tuple[tuple[str, int], ...]
) -> None:
    held = {"holder": "serve: x", "kind": "tensor", "device": 0, "bytes": MIB, "retained": MIB, "tensors": tensors}
    study = serving(holders=[held])
    found = calls.calls_in_progress(study, study.history.entries - 1)
    assert tuple((one.function, one.calls) for one in found) == known


@pytest.mark.parametrize(
    ("within", "count", "known"),
    [("coroutine", 2, ()), ("coroutine", 3, (("serve", 3),)), ("generator", 3, ())],
)
def test_coroutines_that_wait_within_a_function_are_calls_of_it(
    within: str, count: int, known: tuple[tuple[str, int], ...]
) -> None:
    told = [
        {"device": 0, "address": 1 << 40, "bytes": MIB, "holders": [f"tasks[{at}].<{within}> → serve: {name}"]}
        for at in range(count)
        for name in ("x", "y")
    ]
    study = serving(tensors=told)
    found = calls.calls_in_progress(study, study.history.entries - 1)
    assert tuple((one.function, one.calls) for one in found) == known


@pytest.mark.parametrize(("line", "kept"), [(14, 8 * MIB), (13, 0)])
def test_what_is_older_than_a_failure_counts_unless_the_same_line_asks_again(line: int, kept: int) -> None:
    script = Script()
    script.alloc(4 * MIB, LOADING)
    with script.call(40, "search"):
        script.at(11, 8)
        script.fails(13, 100)
        script.at(line, 2)
        script.fails(15, 100)
    study = study_device(script.snapshot(), 0)
    assert from_before_a_failure(study, study.history.entries - 1) == kept


def with_a_model() -> Script:
    script = Script()
    script.alloc(4 * MIB, LOADING)
    return script


def left_by_tries(script: Script) -> int:
    study = study_device(script.snapshot(), 0)
    return left_by_failed_tries(study, study.history.entries - 1)


def test_a_failure_behind_a_loop_is_none_of_its_passes() -> None:
    script = with_a_model()
    with script.call(40, "search"):
        for _ in range(3):
            script.at(10, 8)
            script.at(11, 1)
        script.fails(13, 100)
    script.fails(50, 100)
    assert left_by_tries(script) == 0


def test_a_pass_that_begins_with_the_failing_request_has_the_one_before_it_finished() -> None:
    script = with_a_model()
    with script.call(40, "search"):
        for _ in range(3):
            script.fails(10, 100)
            script.at(11, 8)
            script.at(12, 1)
        script.fails(10, 100)
    assert left_by_tries(script) == 3 * 9 * MIB


def test_of_tries_with_loops_of_their_own_the_outermost_counts() -> None:
    script = with_a_model()
    with script.call(40, "search"):
        for _ in range(3):
            script.at(10, 8)
            for _ in range(3):
                script.at(11, 1)
                script.at(12, 1)
            script.fails(13, 100)
    script.fails(50, 100)
    assert left_by_tries(script) == 3 * 14 * MIB


@pytest.mark.parametrize(("rounds", "grown"), [(LEAST_PASSES, 0), (LEAST_PASSES + 1, 900)])
def test_without_a_loss_no_backward_is_to_come_for_graphs(rounds: int, grown: int) -> None:
    rows = (growth(generations=rounds, spared_bytes=900),)
    found = find_piled(rows, (), (), LoopFacts(keeps_graph=True, computes_loss=False))
    assert (found.grown, found.steady) == (grown, 0)


@pytest.mark.parametrize(
    ("kind", "most", "full"),
    [("deque", suspects.LARGEST_WINDOW, True), ("deque", suspects.LARGEST_WINDOW + 1, False), ("list", 8, False)],
)
def test_a_deque_with_room_for_a_few_is_a_window_that_is_meant_to_be_full(kind: str, most: int, full: bool) -> None:
    told = keeps("diis.errors", 50 * MIB, kind=kind, maxlen=most, length=3)
    study = study_device(holding(told), 0)
    (one,) = suspects.find_suspects(study, study.history.entries - 1)
    assert one.is_full is full


@pytest.mark.parametrize(("at_once", "retained"), [(False, 3000), (True, 0)])
def test_what_errors_keep_of_calls_that_ran_at_once_those_had_needed_at_once(at_once: bool, retained: int) -> None:
    one = suspect("futures", "exception", retained=3000)
    assert find_piled((), (one,), (), LoopFacts(failed_at_once=at_once)).retained == retained


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, True),
        ({"share": 0.04}, False),
        ({"passes": 8}, False),
        ({"keeps_graph": True}, False),
        ({"is_bounded": True}, False),
    ],
)
def test_what_the_same_passes_fill_goes_with_the_holder(more: dict[str, Any], told: bool) -> None:
    assert piled.WORTH_TELLING == 0.05
    values = {"passes": 9, "share": 0.05, **more}
    first = suspect("val_ap.target", "list", retained=6000, earlier_bytes=6000, passes=9, share=0.6)
    other = suspect("val_ap.preds", "list", retained=3000, earlier_bytes=3000, **values)
    found = find_piled((), (first, other), (), LoopFacts(trains_within=True))
    assert found.holder == first
    assert found.beside == ((other,) if told else ())
