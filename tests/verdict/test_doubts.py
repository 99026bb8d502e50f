"""Whatever keeps a verdict from high confidence is told: each reason, on numbers made up for it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from oomscope.analysis.passes.records import FailingPass, KeepsMore
from oomscope.analysis.verdict import judge, shortage
from oomscope.analysis.verdict.causes import CAUSE_MODULES
from oomscope.analysis.verdict.idle_models import IdleModel
from oomscope.analysis.verdict.piled import Piled
from oomscope.wording import say
from oomscope.wording.doubts import DOUBTS
from tests.verdict.known import PROGRAMS
from tests.verdict.known import found as found_in
from tests.verdict.stand_ins import circumstances, free, growth, outcome, suspect

JUDGED = Path(__file__).with_name("judged.json").read_text()
FAILING = SimpleNamespace(has_fitted=True)
UNREAD = suspect("train: checkpoint", "dict", retained=1000, unread="proven")
PILED = Piled(grown=5000, steady=5000)


class Case(NamedTuple):
    cause: str
    known: dict[str, Any]
    tested: shortage.Tested | None = None


CASES = {
    "served": Case("capacity", {"free": free(largest=2000)}),
    "earlier_failure": Case("capacity", {"may_be_kept": True}),
    "idle_model": Case("capacity", {"idle_models": (IdleModel("encoder", 2300),)}),
    "other_models": Case("capacity", {"other_models": 2300}),
    "earlier_training": Case("capacity", {"left_by_trace": 2300}),
    "last_pass": Case(
        "capacity",
        {"failing_pass": FailingPass(None, 2, 2, ratio=1.0), "left_by_last_pass": 2300, "names_known": False},
    ),
    "keeps_more": Case(
        "capacity",
        {"failing_pass": FailingPass(None, 2, 2, ratio=1.0, keeps=KeepsMore(6000, 1000, None))},
    ),
    "piled": Case("capacity", {"growth": (growth(),)}),
    "rounding": Case("growth", {"wasted": 2300, "piled": PILED}),
    "went_as_far": Case("growth", {"went_as_far_before": True, "piled": PILED}),
    "not_steady": Case("growth", {"piled": Piled(grown=5000, steady=100)}),
    "pass_goes_on": Case("retained", {"piled": Piled(retained=1000, debris=(UNREAD,))}),
    "loop_fills": Case("retained", {"piled": Piled(retained=5000, debris=(UNREAD,)), "growth": (growth(),)}),
    "beside_holes": Case(
        "retained",
        {"piled": Piled(retained=1000, debris=(suspect("error", "exception"),))},
        outcome("retained", certain=False),
    ),
    "little_to_spare": Case(
        "private_pools", {"free": free(walled=2000, walled_piece=2000)}, outcome("private_pools", 0)
    ),
    "another_each_pass": Case(
        "private_pools",
        {
            "free": free(walled=2000, walled_piece=2000),
            "failing_pass": FailingPass(None, 20, 20),
            "layout": SimpleNamespace(segments=SimpleNamespace(pool=np.arange(21))),
        },
    ),
    "no_piece": Case("private_pools", {"free": free(walled=2000, walled_piece=1000)}),
    "sizes": Case("private_pools", {"free": free(walled_piece=2000), "uncertain_bytes": 301}),
    "not_fitted_before": Case("fragmentation", {}, outcome("fragmentation", 1200)),
    "calls_at_once": Case("fragmentation", {"failing_pass": FAILING, "in_progress": ("32 calls",)}),
}


@pytest.mark.parametrize("reason", CASES)
def test_a_doubt_is_told(reason: str) -> None:
    cause, known, tested = CASES[reason]
    doubt = CAUSE_MODULES[cause].doubt(circumstances(**known), tested or outcome(cause))
    assert doubt is not None
    assert doubt.code == f"doubts.{reason}"
    assert judge.confidence_with(doubt) == ("low" if reason == "served" else "medium")


def test_what_was_cut_off_is_a_grave_doubt() -> None:
    study = SimpleNamespace(study=SimpleNamespace(is_cut=True))
    doubt = judge._doubt(study, outcome("growth"), outcome("growth"))
    assert doubt is not None
    assert (doubt.code, judge.confidence_with(doubt)) == ("doubts.cut", "low")


def test_a_claim_that_did_not_hold_leaves_a_doubt() -> None:
    known = circumstances(study=SimpleNamespace(is_cut=False))
    doubt = judge._doubt(known, outcome("growth"), outcome("oversized_request"))
    assert doubt is not None
    assert doubt.code == "doubts.claim"
    assert judge._doubt(known, outcome("oversized_request"), outcome("oversized_request")) is None


def test_no_doubt_is_high_confidence() -> None:
    assert judge.confidence_with(None) == "high"


def test_every_doubt_is_tried_here_or_occurs_in_a_bundled_capture() -> None:
    tried = {f"doubts.{reason}" for reason in CASES} | {"doubts.cut", "doubts.claim"}
    assert all(code in tried or f'"{code}' in JUDGED for code in DOUBTS)


def test_a_doubt_is_what_follows_a_colon() -> None:
    for code, sentence in DOUBTS.items():
        assert isinstance(sentence, str), code
        assert sentence[0].islower() or sentence.startswith("{"), code
        assert not sentence.endswith("."), code


def test_a_doubt_says_how_much() -> None:
    doubt = CAUSE_MODULES["capacity"].doubt(circumstances(may_be_done_with=2300), outcome("capacity"))
    assert doubt is not None
    assert say(doubt) == "2.25 KiB of it may not be needed any more; without that, the request would have fitted"


def test_calls_at_the_first_failure_are_looked_for() -> None:
    device = found_in(PROGRAMS / "volume_refine_workers.pickle.xz", with_key=True)
    assert device.ooms[-1].verdict.cause == "capacity"
    assert device.ooms[-1].verdict.headline[0].code == "causes.failed_at_once"
    alone = found_in(PROGRAMS / "downscale_era.pickle.xz", with_key=True)
    assert alone.oom is not None
    assert alone.oom.verdict.cause == "retained"
