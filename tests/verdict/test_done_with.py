"""What a bare trace leaves open: memory that the work underway may not need."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from oomscope.analysis.passes.finished import computes_a_loss
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.done_with import FailedWork, may_be_done_with, other_models, unnamed_graphs
from oomscope.analysis.verdict.failed_requests import failed_requests
from oomscope.model.recorded_holders import RecordedHolder
from tests.analysis.asking import diagnose
from tests.analysis.programs import MIB
from tests.builders import frame
from tests.passes.scripts import BACKWARD_CALL, OPTIMIZER_CALL, Script
from tests.verdict.known import found, programs

PROGRAMS = programs()
GIB = 1 << 30


def underway(script: Script) -> FailedWork:
    made = diagnose(script.snapshot())
    return Circumstances(made.study, failed_requests(made.study)[-1])._work


def recorded(name: str) -> FailedWork:
    """The work that failed in a bundled capture, bare."""
    study = found(PROGRAMS[name].path, with_key=False).study
    return Circumstances(study, failed_requests(study)[-1])._work


def trained(script: Script) -> list[int]:
    """A step; what its optimizer made stays."""
    output = script.layer(8, 10, 4)
    gradient = script.at(9, 16, *BACKWARD_CALL)
    script.free(output)
    return [gradient, script.at(10, 32, *OPTIMIZER_CALL)]


def test_a_table_beside_an_optimizers_first_step():
    script = Script()
    script.at(3, 40)
    trained(script)
    script.fails(10, 100, *OPTIMIZER_CALL)
    work = underway(script)
    assert (work.asked.phase, work.in_loop) == ("optimizer", False)
    assert may_be_done_with(work, (), ()) == 40 * MIB
    assert may_be_done_with(replace(work, in_loop=True), (), ()) == 0
    assert may_be_done_with(replace(work, names_known=True), (), ()) == 0


def test_a_model_that_was_trained_where_the_request_is_for_none():
    work = recorded("tabnet_random_search")
    assert (work.asked.phase, work.in_loop) == ("other", False)
    assert may_be_done_with(work, (), ()) >= 4 * GIB
    assert may_be_done_with(replace(work, in_loop=True), (), ()) < 2 * GIB
    assert may_be_done_with(replace(work, names_known=True), (), ()) < 2 * GIB


def test_several_lines_that_call_models_leave_open_which_parameters_are_needed():
    work = recorded("poster_pipeline")
    assert other_models(work) == pytest.approx(3551 * MIB, rel=0.001)
    assert other_models(replace(work, trains=True)) == other_models(work)
    assert other_models(replace(work, trains=True, in_loop=True)) == 0
    assert other_models(replace(work, names_known=True)) == 0
    one_line = recorded("esm_extract")
    assert one_line.in_forward
    assert other_models(one_line) == 0
    after_training = recorded("distill_then_finetune")
    assert after_training.trains
    assert other_models(after_training) == pytest.approx(3512 * MIB, rel=0.01)
    one_statement = recorded("train_gpt")
    assert other_models(replace(one_statement, trains=True)) == 0


def test_losses_are_known_by_torchs_own_functions():
    for function, file, known in (
        ("mse_loss", "functional.py", True),
        ("cross_entropy", "functional.py", True),
        ("softmax", "functional.py", False),
        ("forward", "modules/loss.py", True),
    ):
        script = Script()
        script.at(5, 4, frame(function, 3000, f"/venv/lib/python3.12/site-packages/torch/nn/{file}"))
        script.fails(6, 100)
        made = diagnose(script.snapshot())
        assert computes_a_loss(made.study, made.at) is known


def test_a_graph_that_nobody_is_known_to_keep():
    graph = RecordedHolder(None, "graph", 0, GIB, GIB, 9)
    recorded_too = SimpleNamespace(holders_on=lambda _: (graph,))
    study = SimpleNamespace(index=0, snapshot=SimpleNamespace(recorded=recorded_too))
    assert unnamed_graphs(study) == GIB  # type: ignore[arg-type]
