"""The bundled snapshots: made by oomscope from programs of this repository, without private names, well explained."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from oomscope.analysis import Findings, analyze
from oomscope.model import Snapshot
from oomscope.reading import load
from oomscope.rendering.formats import render
from tests.samples import BUNDLED, bundled_path

PROGRAMS = Path(__file__).parent / "gpu" / "samples"
CAUSES = {
    "oom_leak_in_validation": "growth",
    "oom_leak_total_loss": "growth",
    "oom_kept_exception": "retained",
    "oom_activations": "capacity",
    "oom_thread_pool": "capacity",
    "oom_optimizer_step": "capacity",
    "oom_backward": "capacity",
    "oom_fragmentation": "fragmentation",
    "oom_cuda_graphs": "private_pools",
}
HOLDERS = {
    "oom_leak_in_validation": "main: metric.outputs",
    "oom_leak_total_loss": "evaluate: total_loss",
    "oom_kept_exception": "largest_batch: failures[0]",
    "oom_fragmentation": "main: cache",
}
MOST_BYTES = 150_000


@cache
def bundled(name: str) -> Snapshot:
    return load(bundled_path(name))


@cache
def findings(name: str) -> Findings:
    return analyze(bundled(name), whatif=False)


def test_every_cause_has_its_sample() -> None:
    assert {name for name in BUNDLED if name.startswith("oom_")} == set(CAUSES)


@pytest.mark.parametrize("name", BUNDLED)
def test_each_was_recorded_by_oomscope_and_is_small(name: str) -> None:
    recorded = bundled(name).recorded
    assert (recorded.is_there, recorded.malformed, recorded.failures) == (True, 0, ())
    assert recorded.reason == ("oom" if name in CAUSES else "exit")
    assert bundled_path(name).stat().st_size < MOST_BYTES


@pytest.mark.parametrize("name", BUNDLED)
def test_the_lines_of_source_are_those_of_the_program(name: str) -> None:
    shown = [one for one in bundled(name).recorded.sources if one.filename.startswith("/workspace/train/")]
    assert shown
    for one in shown:
        lines = (PROGRAMS / Path(one.filename).name).read_text(encoding="utf-8").split("\n")
        assert list(one.text) == [line[:200] for line in lines[one.first - 1 : one.first - 1 + len(one.text)]]


@pytest.mark.parametrize("name", BUNDLED)
def test_no_path_is_of_the_machine_that_recorded_it(name: str) -> None:
    files = {frame.filename for frame in bundled(name).stacks.frames}
    assert files
    assert all(file.startswith(("/workspace/train/", "/venv/lib/", "/usr/lib/python")) or file == "" for file in files)


@pytest.mark.parametrize(("name", "cause"), CAUSES.items())
def test_the_cause_is_the_programs_mistake(name: str, cause: str) -> None:
    main = findings(name).main
    assert main is not None
    assert main.oom is not None
    assert main.oom.verdict.cause == cause
    if name in HOLDERS:
        assert main.holders[0].holder == HOLDERS[name]


def test_calls_that_are_at_work_are_counted_and_no_growth() -> None:
    main = findings("oom_thread_pool").main
    assert main is not None
    assert main.oom is not None
    (calls,) = main.oom.verdict.in_progress
    assert (calls.function, calls.calls) == ("answer", 16)


@pytest.mark.parametrize("name", [name for name in BUNDLED if name not in CAUSES])
def test_nothing_failed_and_nothing_grows_in_a_healthy_run(name: str) -> None:
    main = findings(name).main
    assert main is not None
    assert main.oom is None
    assert main.growth == ()


@pytest.mark.parametrize("form", ["html", "md", "json", "text"])
@pytest.mark.parametrize("name", BUNDLED)
def test_every_format_can_be_made(name: str, form: str) -> None:
    assert len(render(findings(name), form)) > 1000
