"""What is float64 beside a model of float32 is told, with the line that makes it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from oomscope.analysis.remedies import narrow_dtype
from oomscope.analysis.study import SnapshotStudy
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.failed_requests import failed_requests
from oomscope.analysis.verdict.records import Advice
from oomscope.model import Snapshot
from oomscope.reading import load
from oomscope.wording.verdict_text import advice_text
from tests.verdict.known import programs


@cache
def snapshot() -> Snapshot:
    """A cache of frames that statistics of float64 have promoted, beside a U-Net of float32."""
    return load(programs()["nowcast_float64"].path)


def proposed(of: Snapshot) -> list[Advice]:
    (study,) = SnapshotStudy(of).devices
    return list(narrow_dtype.propose(Circumstances(study, failed_requests(study)[-1])))


def retyped(was: str, now: str) -> Snapshot:
    of = snapshot()
    assert of.context is not None
    tensors = [{**one, "dtype": now} if one.get("dtype") == was else one for one in of.context["tensors"]]
    return replace(of, context={**of.context, "tensors": tensors})


def test_the_object_and_the_line_are_named_with_half_of_its_bytes():
    (advice,) = proposed(snapshot())
    assert advice.enough is True
    assert advice.saves_bytes is not None
    assert 3 << 30 < advice.saves_bytes < 4 << 30
    assert advice_text(advice).action.startswith("Keep `job.cache` in float32: `.float()` for what __call__")


@pytest.mark.parametrize(("was", "now"), [("float64", "float32"), ("float32", "float64"), ("float64", "int64")])
def test_nothing_is_said_of_a_program_of_one_precision_nor_of_whole_numbers(was: str, now: str):
    assert proposed(retyped(was, now)) == []


def test_what_saves_little_is_not_worth_the_digits(monkeypatch: pytest.MonkeyPatch):
    (advice,) = proposed(snapshot())
    (study,) = SnapshotStudy(snapshot()).devices
    share = (advice.saves_bytes or 0) / failed_requests(study)[-1].totals.allocated
    assert share > narrow_dtype.WORTH_NARROWING
    monkeypatch.setattr(narrow_dtype, "WORTH_NARROWING", share * 0.999)
    assert proposed(snapshot())
    monkeypatch.setattr(narrow_dtype, "WORTH_NARROWING", share * 1.001)
    assert not proposed(snapshot())
