"""Advice on graphs that are kept says which mistake it is, as the recorded programs' truths tell."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oomscope.analysis import analyze
from oomscope.analysis.remedies import (
    advise,
    backward_each_pass,
    detach_what_is_kept,
    drop_last_pass,
    raise_cap,
)
from oomscope.analysis.remedies.kept_values import KeptValues, kept_values
from oomscope.analysis.verdict.piled import Piled
from oomscope.analysis.verdict.records import Advice
from oomscope.model.recorded import RecordedTensor
from oomscope.reading import load
from oomscope.wording.verdict_text import advice_text
from tests.samples import bundled_path
from tests.verdict.stand_ins import circumstances, suspect

NO_GRAD = "torch.no_grad()"
PROGRAMS = Path(__file__).parents[1] / "captures" / "programs"


def first_advice(name: str) -> Advice:
    path = bundled_path(name) if name.startswith("oom_") else PROGRAMS / f"{name}.pickle.xz"
    device = analyze(load(path), whatif=False).main
    assert device is not None
    assert device.oom is not None
    return device.oom.verdict.advice[0]


@pytest.mark.parametrize(
    ("name", "way", "said", "no_grad"),
    [
        ("oom_leak_total_loss", "number", "Add a number to `total_loss` (in evaluate) and not the tensor", True),
        ("oom_leak_in_validation", "tensors", "Store `.detach().cpu()` of each tensor in `metric.outputs`", False),
        ("unet_volumes", "numbers", "Store `.item()` of each value in `val_losses`", True),
        ("log_lines", "numbers", "Store `.item()` of each value in `buffer.buffer`", True),
        ("ncf_ranking", "tensors", "Store `.detach()` of each tensor in `rows`", True),
        ("ssl_monitor", "carried", "Store `.detach()` of what goes into `encoder.meter.spread`", False),
        ("track_video", "carried", "Store `.detach()` of what goes into `tracker.template`", True),
        ("tides", "state", "Detach the state of the recurrent layer", False),
        ("word_language_model", "state", "Detach `hidden` (in train) before each pass", False),
    ],
)
def test_the_advice_is_the_one_that_applies(name: str, way: str, said: str, no_grad: bool):
    """`no_grad` is no way out where the loop trains, nor where the results themselves would fill the memory."""
    advice = first_advice(name)
    action = advice_text(advice).action
    assert advice.slug == f"detach_what_is_kept.{way}"
    assert action.startswith(said)
    assert (NO_GRAD in action) is no_grad
    assert ("it calls no backward" in action) is (no_grad and advice.values["backward"] == "none")


def test_micro_batches_that_are_summed_are_to_call_backward_each():
    advice = first_advice("micro_sum")
    assert (advice.slug, advice.enough) == (backward_each_pass.SLUG, True)
    assert "`backward()` in every pass" in advice_text(advice).action


def tensors(*told: tuple[tuple[int, ...] | None, str | None]) -> Any:
    rows = [RecordedTensor(0, None, 4, shape=shape, saved_for=node, holders=("f: kept[0]",)) for shape, node in told]
    recorded = SimpleNamespace(tensors_on=lambda _: tuple(rows), captured_at=None)
    return SimpleNamespace(snapshot=SimpleNamespace(recorded=recorded), index=0, once=lambda _, answer: answer())


@pytest.mark.parametrize(
    ("told", "numbers", "recurrent"),
    [
        ([], None, False),
        ([((4, 4), "MmBackward0 (self)")], None, False),
        ([((), None), ((1, 1), None)], True, False),
        ([((), None), ((2,), None)], False, False),
        ([((2, 64), "CudnnRnnBackward0 (hx)")], None, True),
        ([((2, 64), "CudnnRnnBackward0 (input)")], None, False),
    ],
)
def test_what_an_object_keeps(
    monkeypatch: pytest.MonkeyPatch, told: list[Any], numbers: bool | None, recurrent: bool
) -> None:
    monkeypatch.setattr("oomscope.analysis.remedies.kept_values.own_rows", lambda *_: np.array([0, 2]))
    study = tensors(*told)
    study.history = SimpleNamespace(size=np.array([512, 1024, 2048]))
    assert kept_values(study, 0, "f: kept") == KeptValues(numbers, recurrent, 2560)


@pytest.mark.parametrize(("own", "told"), [(100, 100), (99, None)])
def test_values_that_are_large_have_to_leave_the_device(
    monkeypatch: pytest.MonkeyPatch, own: int, told: int | None
) -> None:
    assert detach_what_is_kept.WORTH_MOVING == 0.1
    monkeypatch.setattr(detach_what_is_kept, "kept_values", lambda *_: KeptValues(False, False, own))
    monkeypatch.setattr(detach_what_is_kept, "kept_rows", lambda _: np.zeros(0, np.bool_))
    monkeypatch.setattr(detach_what_is_kept, "_backward", lambda *_: "none")
    holder = suspect(kind="list", keeps_graph=True, earlier_bytes=1000)
    (advice,) = detach_what_is_kept.propose(circumstances(piled=Piled(1000, passes=5, holder=holder)))
    assert advice.values["own"] == told
    assert (".cpu()" in advice_text(advice).action) is (told is not None)


@pytest.mark.parametrize(
    ("trainings", "kept", "told"),
    [
        ([], 5, "unknown"),
        ([0], 5, "none"),
        ([0, 15], 5, "within"),  # in one of four gaps
        ([0, 15], 6, "none"),  # in one of five
        ([15, 25, 35, 45], 5, "within"),
        ([0], 1, "within"),
        ([0], 0, "within"),
    ],
)
def test_no_grad_is_advised_only_where_nothing_trains_in_between(
    monkeypatch: pytest.MonkeyPatch, trainings: list[int], kept: int, told: str
) -> None:
    assert detach_what_is_kept.OFTEN == 0.25
    monkeypatch.setattr(detach_what_is_kept, "training_entries", lambda _: np.array(trainings, np.int64))
    monkeypatch.setattr(detach_what_is_kept, "pass_begins", lambda *_: np.arange(5, 65, 10))
    lifetimes = SimpleNamespace(stack=np.zeros(6, np.int64), born=np.array([10, 20, 30, 40, 50, 60]))
    study = SimpleNamespace(history=SimpleNamespace(lifetimes=lifetimes))
    assert detach_what_is_kept._backward(circumstances(study=study, entry=100), np.arange(6) < kept) == told


def test_a_backward_in_each_pass_is_seen_however_many_blocks_a_pass_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    born = np.array([10, 11, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 30, 31, 32, 33, 34, 35])
    monkeypatch.setattr(detach_what_is_kept, "training_entries", lambda _: np.array([18, 28, 38]))
    monkeypatch.setattr(detach_what_is_kept, "pass_begins", lambda *_: np.array([10, 20, 30]))
    lifetimes = SimpleNamespace(stack=np.zeros(len(born), np.int64), born=born)
    study = SimpleNamespace(history=SimpleNamespace(lifetimes=lifetimes))
    assert detach_what_is_kept._backward(circumstances(study=study, entry=39), np.ones(len(born), np.bool_)) == "within"


@pytest.mark.parametrize(
    ("kind", "passes", "saves", "advised"),
    [("graph", 2, 2500, True), ("graph", 2, 2499, False), ("graph", 1, 2500, False), ("list", 2, 2500, False)],
)
def test_one_number_with_the_graphs_of_several_passes_waits_for_its_backward(
    monkeypatch: pytest.MonkeyPatch, kind: str, passes: int, saves: int, advised: bool
) -> None:
    assert (backward_each_pass.LEAST_PASSES, backward_each_pass.WORTH_ADVISING) == (2, 0.25)
    for numbers in (True, False, None):
        monkeypatch.setattr(backward_each_pass, "kept_values", lambda *_, told=numbers: KeptValues(told))
        one = circumstances(suspects=(suspect(kind=kind, passes=passes, earlier_bytes=saves),))
        assert bool(list(backward_each_pass.propose(one))) is (advised and bool(numbers))


@pytest.mark.parametrize(("cause", "last"), [("growth", True), ("retained", True), ("capacity", False)])
def test_what_only_delays_a_failure_comes_behind_what_removes_its_cause(
    monkeypatch: pytest.MonkeyPatch, cause: str, last: bool
) -> None:
    unsure = SimpleNamespace(SLUG="unsure", propose=lambda _: iter([Advice("unsure", enough=None)]))
    cap = SimpleNamespace(SLUG="raise_cap", propose=lambda _: iter([Advice("raise_cap", enough=True)]))
    modules = {one.SLUG: one for one in (unsure, cap)}
    monkeypatch.setattr("oomscope.analysis.remedies.REMEDY_MODULES", modules)
    monkeypatch.setattr(
        "oomscope.analysis.remedies.CAUSE_MODULES", {cause: SimpleNamespace(REMEDIES=("raise_cap", "unsure"))}
    )
    monkeypatch.setattr("oomscope.analysis.remedies.refuted", lambda *_: ())
    assert raise_cap.SLUG in modules
    slugs = [one.slug for one in advise(circumstances(), cause)]
    assert slugs == (["unsure", "raise_cap"] if last else ["raise_cap", "unsure"])


def test_whole_models_that_are_kept_are_told_as_models():
    advice = first_advice("sweep")
    assert advice.slug == "bound_what_is_kept.models"
    assert advice_text(advice).action.endswith("in `results`, and not the models.")


def test_a_validation_that_keeps_the_graph_of_the_pass_before_is_to_run_without():
    advice = first_advice("protonet_train")
    assert advice.slug == "drop_last_pass.graph"
    assert advice_text(advice).action.startswith("Run the loop under `torch.no_grad()`, for it calls no backward")


@pytest.mark.parametrize(
    ("trainings", "run", "told", "no_grad"),
    [
        ([], 50, "unknown", True),
        ([5], None, "unknown", True),
        ([5, 49], 50, "none", True),
        ([5, 50], 50, "within", False),
    ],
)
def test_no_grad_is_no_way_out_of_a_loop_that_trains(
    monkeypatch: pytest.MonkeyPatch, trainings: list[int], run: int | None, told: str, no_grad: bool
) -> None:
    monkeypatch.setattr(drop_last_pass, "training_entries", lambda _: np.array([*trainings, 200], np.int64))
    loop = None if run is None else SimpleNamespace(begin=run)
    monkeypatch.setattr(drop_last_pass, "loop_that_matters", lambda *_: loop)
    keeper = suspect("train: loss", kind="graph")
    one = circumstances(left_by_last_pass=9000, keeper_of_last_pass=keeper, entry=100)
    (advice,) = drop_last_pass.propose(one)
    assert advice.values["backward"] == told
    assert (NO_GRAD in advice_text(advice).action) is no_grad


def test_models_that_methods_keep_are_let_go_of_with_them() -> None:
    advice = first_advice("hparam_search")
    assert advice.slug == "bound_what_is_kept.methods"
    assert advice.enough
    assert advice_text(advice).action.startswith("Take the methods of what is no longer used out of `bus.listeners")


def test_a_metric_of_torchmetrics_is_created_so_that_its_lists_stay_on_the_cpu() -> None:
    advice = first_advice("liver_volumes_ap")
    assert advice.slug == "bound_what_is_kept.metric"
    action = advice_text(advice).action
    assert action.startswith("Create the metric with `compute_on_cpu=True`")
    assert "`trainer…model.val_ap.target` and `trainer…model.val_ap.preds`" in action


def test_a_function_that_remembers_what_it_returned_forgets_by_its_own_method() -> None:
    advice = first_advice("distill_lm")
    assert advice.slug == "release_variable.cache"
    assert advice_text(advice).action.startswith("Call `build.cache_clear()`")
