"""Programs that were really run under 20 settings and caps each (H200, torch 2.11), predicted from one recording.

`kv`: requests of all sizes, freed in no order. `layers`, `large`: what training does, with lengths that change, with
and without small tensors. `emptying`: the same with calls of empty_cache. They allocate and free without computing. The
recordings are under torch's defaults without a cap; stacks and times were taken out.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from oomscope.allocator import AllocatorConfig
from oomscope.allocator.limits import Limit
from oomscope.analysis.whatif.address_orders import other_orders
from oomscope.analysis.whatif.preparation import Subject
from oomscope.analysis.whatif.releases import release_runs
from oomscope.model import StackTable
from oomscope.reading import load
from tests.whatif.subjects import subject_of

FOLDER = Path(__file__).parent / "fixtures"
RUNS: list[dict[str, Any]] = json.loads((FOLDER / "real_runs.json").read_text())
H200 = 150_109_880_320


@cache
def subject(program: str) -> Subject:
    return subject_of(load(FOLDER / f"{program}.pickle.xz"))


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run['prog']}-{run['conf'] or 'default'}-{run['cap'] >> 20}")
def test_the_recording_predicts_the_real_run_to_the_byte(run: dict[str, Any]) -> None:
    prepared = subject(run["prog"])
    limit = Limit(cap=run["cap"] or None, device_total=H200)
    replay = prepared.replayer.run(AllocatorConfig.parse(run["conf"]), limit, prepared.addresses())
    assert (replay.peak_reserved, replay.final_reserved) == (run["peak"], run["final"])
    assert replay.peak_allocated == run["palloc"]
    assert replay.retries == run["retries"]
    assert replay.survived != run["oom"]
    if run["oom"]:
        assert prepared.allocations_before(replay.failures[0].entry) == run["allocs"]


@pytest.mark.parametrize("program", ["kv", "layers"])
def test_the_truth_lies_within_the_range_over_orders_of_addresses(program: str) -> None:
    prepared = subject(program)
    for run in RUNS:
        if run["prog"] != program or "roundup" not in run["conf"]:
            continue
        limit, config = Limit(cap=run["cap"] or None, device_total=H200), AllocatorConfig.parse(run["conf"])
        replays = [prepared.replayer.run(config, limit, order()) for order in other_orders(7)]
        assert min(one.peak_reserved for one in replays) <= run["peak"] <= max(one.peak_reserved for one in replays)


def test_a_recording_under_garbage_collection_is_replayed_without_knowing_its_cap() -> None:
    prepared = subject("layers.gc50")
    assert prepared.config.garbage_collection_threshold == 0.5
    assert prepared.check.exact
    assert prepared.limit.source == "bracket"
    assert sum(run.end - run.begin for run in release_runs(prepared.device.trace, StackTable.from_stacks((), ()))) > 10


def test_a_recording_with_large_segments_of_its_own_size_is_replayed() -> None:
    prepared = subject("kv.large_segments")
    assert prepared.config.large_segment_size == 64 << 20
    assert prepared.check.exact
