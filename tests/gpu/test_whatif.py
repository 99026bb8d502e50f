"""Predictions from one recording, then the same program really run under each setting and cap."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import oomscope
from oomscope.analysis.whatif import WhatIfRow, whatif
from oomscope.analysis.whatif.row import LESS_WORKSPACE, WORKSPACE
from oomscope.units import GIB, MIB

pytestmark = pytest.mark.gpu

PROGRAMS = ("speech", "segmentation", "serving")
ROOMY = 40 * GIB
SETTINGS = (
    "expandable_segments:True",
    "max_split_size_mb:128",
    "max_split_size_mb:512",
    "roundup_power2_divisions:8",
    "max_split_size_mb:256,garbage_collection_threshold:0.6",
)
MOST_AT_ONCE = 6
CONTEXT = GIB
"""What a process takes of the card beside what its allocator reserves, with room to spare."""
BESIDE = (-1, 0, 16 * MIB, 100 * MIB)
"""So far from the least memory the program is run: it dies one byte below, and lives from there on."""


def run(name: str, cap: int, conf: str = "", snapshot: Path | None = None) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.gpu.varying_programs", name, str(cap)]
    environment = {**os.environ, "PYTORCH_ALLOC_CONF": conf, "PYTORCH_CUDA_ALLOC_CONF": conf}
    done = subprocess.run(
        command + ([str(snapshot)] if snapshot else []), env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


class Predicted:
    """A program recorded once, under torch's defaults, and what follows from that; then its real runs."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        run(name, 0, snapshot=folder / f"{name}.pickle")
        snapshot = oomscope.load(folder / f"{name}.pickle")
        self.check = whatif(snapshot, 0, settings=(), least_memory="none").self_check
        roomy = whatif(snapshot, 0, settings=SETTINGS, limit=ROOMY)
        self.least = {row.setting: row.least_memory for row in roomy.rows[:2]}
        tight = int(min(self.least.values()) * 1.08)
        self.rows = {(row.setting, ROOMY): row for row in roomy.rows}
        self.rows |= {(row.setting, tight): row for row in whatif(snapshot, 0, settings=SETTINGS, limit=tight).rows}
        caps = [(setting, least + way) for setting, least in self.least.items() for way in BESIDE]
        with ThreadPoolExecutor(self._at_once()) as pool:
            keys = [*self.rows, *caps]
            results = pool.map(lambda key: run(name, key[1], "" if key[0] == "recorded" else key[0]), keys)
            self.real = dict(zip(keys, results, strict=True))
        runs = [{"prog": name, "conf": conf, "cap": cap, **real} for (conf, cap), real in self.real.items()]
        (folder / f"{name}.json").write_text(json.dumps(runs))

    def _at_once(self) -> int:
        """How many runs the card holds beside each other: what one takes must never be what refuses another."""
        import torch

        largest = max(row.range["peak_reserved"][1] for row in self.rows.values()) + CONTEXT
        return max(1, min(MOST_AT_ONCE, torch.cuda.mem_get_info(0)[0] // largest))


@pytest.fixture(scope="module", params=PROGRAMS)
def predicted(request, tmp_path_factory) -> Predicted:
    return Predicted(request.param, tmp_path_factory.mktemp("whatif"))


def test_the_recorded_setting_is_replayed_exactly(predicted: Predicted) -> None:
    assert predicted.check.exact


def test_every_prediction_is_what_the_real_run_did(predicted: Predicted) -> None:
    outcomes = {key: compare(row, predicted.real[key]) for key, row in predicted.rows.items()}
    for (setting, cap), row in predicted.rows.items():
        real = predicted.real[setting, cap]
        print(f"{predicted.name:<13}{setting:<55}{cap / GIB:7.2f} GiB  {outcomes[setting, cap]}")
        print(f"    predicted {row.peak_reserved:,} {row.range['peak_reserved']}, {row.retries} retries, ", end="")
        print(f"OOM {row.oom} after {row.failed_allocation}; real {real}")
    assert "wrong" not in outcomes.values()


def compare(row: WhatIfRow, real: dict[str, Any]) -> str:
    figures = (row.peak_reserved, row.peak_allocated, row.retries, row.oom)
    if figures == tuple(real[name] for name in ("peak_reserved", "peak_allocated", "retries", "oom")):
        return "exact" if not row.oom or row.failed_allocation == real["allocations"] else "wrong"
    if WORKSPACE in row.notes:
        # cuDNN was refused, and took another algorithm: the run goes on further than predicted, or to its end.
        return "a smaller workspace" if real["allocations"] >= row.failed_allocation else "wrong"
    low, high = row.range["peak_reserved"]
    within = low <= real["peak_reserved"] <= high and row.oom in (real["oom"], None)
    return "within its range" if within and not row.exact else "wrong"


def test_the_program_dies_just_below_the_least_memory_and_lives_from_there_on(predicted: Predicted) -> None:
    wrong = []
    for setting, least in predicted.least.items():
        optional = LESS_WORKSPACE in predicted.rows[setting, ROOMY].notes
        for way in BESIDE:
            real = predicted.real[setting, least + way]
            print(f"{predicted.name:<13}{setting:<30} least {least:,} {way:+,}: {real}{' workspace' * optional}")
            if real["oom"] != (way < 0) and not (way < 0 and optional):
                wrong.append((setting, way))
    assert not wrong
