"""Programs that compute for real, run on a card under many settings and caps, predicted from one recording each.

Recorded and run by `tests.gpu.test_whatif` (H200, torch 2.11); stacks and times were taken out. `speech` and `serving`
do the same whatever memory they have. In `segmentation` cuDNN takes another algorithm where a workspace does not fit.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from oomscope.allocator import AllocatorConfig
from oomscope.allocator.limits import Limit
from oomscope.allocator.replay import Replay
from oomscope.analysis.whatif import WhatIf, whatif
from oomscope.analysis.whatif.address_orders import other_orders
from oomscope.analysis.whatif.least import Least, least_memory
from oomscope.analysis.whatif.row import LESS_WORKSPACE, WORKSPACE
from oomscope.reading import load
from tests.whatif.test_real_runs import FOLDER, H200, subject

RUNS: list[dict[str, Any]] = json.loads((FOLDER / "real_programs.json").read_text())
EXPANDABLE = "expandable_segments:True"
LEAST = {
    ("speech", ""): 13_274_972_160,
    ("speech", EXPANDABLE): 11_305_746_432,
    ("serving", ""): 7_302_283_264,
    ("serving", EXPANDABLE): 5_479_858_176,
}
"""What was predicted: the real runs one byte below died, those from there on lived."""


def replay(run: dict[str, Any], order: Any = None) -> Replay:
    prepared = subject(run["prog"])
    limit = Limit(cap=run["cap"], device_total=H200)
    return prepared.replayer.run(AllocatorConfig.parse(run["conf"]), limit, order or prepared.addresses())


def name(run: dict[str, Any]) -> str:
    return f"{run['prog']}-{run['conf'] or 'default'}-{run['cap']}"


def is_exact(predicted: Replay, run: dict[str, Any]) -> bool:
    found = predicted.peak_reserved, predicted.peak_allocated, predicted.retries, not predicted.survived
    return found == (run["peak_reserved"], run["peak_allocated"], run["retries"], run["oom"])


@pytest.mark.parametrize("run", RUNS, ids=name)
def test_the_real_run_is_as_predicted(run: dict[str, Any]) -> None:
    predicted, prepared = replay(run), subject(run["prog"])
    if predicted.failures:
        failed = predicted.failures[0]
        if prepared.extraction.program.gives_back_at_once(failed.request):
            assert run["prog"] == "segmentation"
            assert run["allocations"] >= prepared.allocations_before(failed.entry)
            return
        assert prepared.allocations_before(failed.entry) == run["allocations"]
    if run["prog"] == "serving" and run["conf"].startswith("roundup"):
        peaks = [replay(run, order()).peak_reserved for order in other_orders(7)]
        assert min(peaks) <= run["peak_reserved"] <= max(peaks)
        return
    assert is_exact(predicted, run)


@cache
def least(program: str, conf: str) -> Least:
    prepared = subject(program)
    return least_memory(prepared.replayer, AllocatorConfig.parse(conf), prepared.addresses, H200)


@pytest.mark.parametrize(("program", "conf"), LEAST)
def test_the_least_memory_is_that_of_the_real_runs_to_the_byte(program: str, conf: str) -> None:
    cap = LEAST[program, conf]
    assert least(program, conf).cap == cap
    tried = {run["cap"]: run["oom"] for run in RUNS if (run["prog"], run["conf"]) == (program, conf)}
    assert tried[cap - 1]
    assert not any(oom for limit, oom in tried.items() if limit >= cap)


def test_a_run_may_live_with_less_than_a_cap_it_dies_under() -> None:
    found = least("serving", EXPANDABLE)
    assert found.lives_at is not None
    assert found.lives_at < found.cap
    prepared = subject("serving")
    config = AllocatorConfig.parse(EXPANDABLE)
    assert prepared.replayer.run(config, Limit(cap=found.lives_at), prepared.addresses()).survived
    assert found.proven_to is None  # every larger cap was shown to do


@cache
def answer(limit: int) -> WhatIf:
    return whatif(load(FOLDER / "segmentation.pickle.xz"), 0, limit=limit)


def test_a_workspace_that_does_not_fit_is_no_certain_end() -> None:
    recorded = answer(8_430_047_723).rows[0]
    assert recorded.oom
    assert WORKSPACE in recorded.notes
    assert LESS_WORKSPACE in recorded.notes
    assert not recorded.exact
