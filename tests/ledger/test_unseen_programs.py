"""Five programs really run with eight to eleven remedies each, on one H200: torch's own peaks against the ledger's."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from statistics import median

import pytest

from oomscope.analysis.ledger import ledger_of, parse_remedy
from oomscope.analysis.ledger.records import RemedyRow
from oomscope.analysis.study import study_device
from oomscope.reading import load

FIXTURES = Path(__file__).parent / "fixtures"
PROGRAMS = ("convnet", "decoder", "diffusion", "graph", "speech")
PEAKS = json.loads((FIXTURES / "peaks.json").read_text())


def remedies_of(program: str) -> list[str]:
    names = [name.partition(".")[2] for name in PEAKS if name.startswith(f"{program}.")]
    return [name for name in names if name != "base" and not (name[0] in "bs" and name[1].isdigit())]


@cache
def rows(program: str) -> dict[str, RemedyRow]:
    study = study_device(load(FIXTURES / f"{program}.pickle.xz"), 0)
    names = remedies_of(program)
    ledger = ledger_of(study, [parse_remedy(name) for name in names])
    assert ledger.peak_allocated == PEAKS[f"{program}.base"]["allocated"]
    assert not ledger.skipped
    found = {(row.slug, row.value): row for row in ledger.rows}
    return {name: found[parse_remedy(name)] for name in names}


def error(program: str, name: str) -> float:
    return abs(rows(program)[name].peak_allocated.bytes / PEAKS[f"{program}.{name}"]["allocated"] - 1)


EVERY = [(program, name) for program in PROGRAMS for name in remedies_of(program)]


def test_there_are_eight_remedies_of_each_program():
    assert len(EVERY) == 50
    assert all(len(remedies_of(program)) >= 8 for program in PROGRAMS)


def test_the_median_error_is_below_half_a_percent_and_nine_of_ten_are_within_eight():
    errors = [error(*one) for one in EVERY]
    assert median(errors) < 0.005
    assert sum(one <= 0.08 for one in errors) >= 0.9 * len(errors)


@pytest.mark.parametrize(("program", "name"), EVERY)
def test_the_truth_lies_in_the_range_which_is_not_wide(program: str, name: str):
    peak, truth = rows(program)[name].peak_allocated, PEAKS[f"{program}.{name}"]["allocated"]
    assert peak.low <= truth <= peak.high
    assert peak.high - peak.low <= 0.2 * PEAKS[f"{program}.base"]["allocated"]
