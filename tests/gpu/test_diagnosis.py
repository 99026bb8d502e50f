"""The diagnosis of programs that run here and now, against what they know themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from oomscope.reading import load
from tests.analysis.asking import Diagnosis, diagnose, right_bytes

pytestmark = pytest.mark.gpu

HEALTHY = [
    "steady", "fused_half", "accumulation", "checkpointing", "inference", "window", "first_forward", "scores",
    "teacher",
]  # fmt: skip
LEAKING = {
    "hook_list": "accumulated_tensors", "results": "accumulated_tensors", "graphs": "retained_graph",
    "cycles": "accumulated_tensors", "generation": "kv_cache",
}  # fmt: skip
NAMED = {"first_forward": "activations", "scores": "attention_scores", "teacher": "duplicate_model", **LEAKING}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("programs")


def ran(name: str, folder: Path) -> tuple[Diagnosis, list[list]]:
    if not (folder / f"{name}.json").exists():
        subprocess.run(
            [sys.executable, "-m", "tests.gpu.training_programs", name, str(folder)], check=True, timeout=300
        )
    snapshot = load(folder / f"{name}.pickle")
    diagnosis = diagnose(snapshot, snapshot.devices[0].index)
    return diagnosis, json.loads((folder / f"{name}.json").read_text())


@pytest.mark.parametrize("name", [*HEALTHY, *LEAKING])
def test_labelled_bytes(name, folder):
    diagnosis, labels = ran(name, folder)
    right, total = right_bytes(diagnosis, labels)
    print(f"{name}: {100 * right / total:.2f} % of {total >> 20} MiB")
    assert right >= 0.97 * total


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_program_shows_no_growth(name, folder):
    assert ran(name, folder)[0].growth() == ()


@pytest.mark.parametrize("name", LEAKING)
def test_a_leaking_program_shows_growth(name, folder):
    growth = ran(name, folder)[0].growth()
    assert growth
    assert growth[0].kind == ("reallocation" if name == "generation" else "generations")


@pytest.mark.parametrize(("name", "slug"), NAMED.items())
def test_the_drivers_name_what_fills_the_memory(name, slug, folder):
    drivers = ran(name, folder)[0].drivers()
    place = 4 if name == "teacher" else 2
    assert slug in [driver.slug for driver in drivers[:place]]
