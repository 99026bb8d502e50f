"""What the verdict and the advice say of the replays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import oomscope
from oomscope.analysis.remedies.replays import EXPANDABLE, calm_citation, citation, refusing, serving
from oomscope.analysis.whatif.records import RECORDED, SelfCheck, WhatIf, WhatIfRow
from oomscope.units import GIB, MIB, format_bytes, format_limit
from oomscope.wording.verdict_text import sentences

SAMPLE = Path(__file__).parents[1] / "bare_samples" / "oom_leak_total_loss.pickle.xz"
EXACT = SelfCheck(addresses=10, segment_events=2, mismatches=0, first_mismatch=None)
FAILED = 100
LIVES = WhatIfRow(
    EXPANDABLE, limit=16 * GIB, oom=False, served={FAILED: True}, headroom=GIB, retries=0, least_memory=15 * GIB
)
FAILS = WhatIfRow("max_split_size_mb:128", limit=16 * GIB, oom=True, served={FAILED: False}, headroom=-GIB, retries=1)
AS_RECORDED = replace(FAILS, setting=RECORDED, least_memory=17 * GIB)
UNCERTAIN = replace(FAILS, setting="roundup_power2_divisions:8", oom=None, served={FAILED: None})


def whatif(*rows: WhatIfRow, check: SelfCheck = EXACT) -> WhatIf:
    return WhatIf(0, check, (AS_RECORDED, *rows))


def said(answer: WhatIf | None, *question: Any) -> str:
    return sentences(citation(answer, *question), 600)


def request(entry: int = FAILED, *, source: str = "recorded", recovered: bool = False) -> Any:
    return SimpleNamespace(
        entry=entry, recovered=recovered, limit=SimpleNamespace(source=source, low=16 * GIB, high=None)
    )


def test_the_setting_that_serves_it_is_cited_with_what_it_leaves_and_needs() -> None:
    text = said(whatif(FAILS, LIVES), request(), "fragmentation")
    assert text == (
        "Replayed with expandable_segments:True, this request fits, 1.00 GiB to spare, 0 retries. The run up to here "
        "needs 15.00 GiB with expandable_segments:True, 17.00 GiB as recorded. What the program would have asked for "
        "next is not recorded."
    )


def test_a_cap_known_within_bounds_leaves_at_least_so_much() -> None:
    assert "fits, at least 1.00 GiB to spare" in said(whatif(LIVES), request(source="bracket"), "capacity")


def test_growth_outlives_every_setting() -> None:
    assert said(whatif(LIVES), request(), "growth").endswith("The leak remains.")


def test_where_nothing_serves_it_that_is_said_with_what_is_uncertain() -> None:
    text = said(whatif(FAILS, UNCERTAIN), request(), "capacity")
    assert text == (
        "Replayed with max_split_size_mb:128, this request fails as well; for 1 more it is not certain. "
        "The run up to here needs 17.00 GiB as recorded."
    )


@pytest.mark.parametrize(
    "answer",
    [None, whatif(), whatif(UNCERTAIN), whatif(LIVES, check=replace(EXACT, mismatches=1))],
    ids=["no replay", "only the recorded one", "nothing certain", "self-check failed"],
)
def test_no_replay_to_trust_is_no_citation(answer: WhatIf | None) -> None:
    assert citation(answer, request(), "capacity") == ()


def test_the_setting_made_for_holes_comes_first_then_the_one_that_leaves_most() -> None:
    small, large = (replace(LIVES, setting=name, headroom=room) for name, room in (("a:1", 2 * GIB), ("b:1", 3 * GIB)))
    assert [row.setting for row in serving(whatif(small, large, LIVES), FAILED)] == [EXPANDABLE, "b:1", "a:1"]


def test_a_request_is_served_though_another_one_fails() -> None:
    other = replace(FAILS, setting=EXPANDABLE, served={FAILED: True, FAILED + 50: False})
    text = said(whatif(other), request(), "capacity")
    assert "this request fits, though another one fails" in text
    assert "to spare" not in text
    assert refusing(whatif(other), FAILED + 50) == [other]


def test_replays_that_disagree_on_a_request_leave_it_open() -> None:
    assert not serving(whatif(UNCERTAIN), FAILED)
    assert not refusing(whatif(UNCERTAIN), FAILED)


def test_a_run_without_an_oom_is_told_what_would_have_reserved_less() -> None:
    recorded = WhatIfRow(RECORDED, oom=False, peak_reserved=4 * GIB)
    less = replace(LIVES, peak_reserved=3 * GIB)
    answer = WhatIf(0, EXACT, (recorded, less))
    assert sentences(calm_citation(answer), 600) == (
        "Replayed with expandable_segments:True, the same run reserves 3.00 GiB at its peak instead of 4.00 GiB."
    )
    assert calm_citation(WhatIf(0, EXACT, (recorded, replace(less, peak_reserved=4 * GIB - MIB)))) == ()


def test_the_verdict_of_a_real_sample_cites_the_replay_of_that_sample() -> None:
    findings = oomscope.analyze(oomscope.load(SAMPLE))
    oom, answer = findings.main.oom, findings.whatif[0]
    row = answer.row(EXPANDABLE)
    assert row.served[oom.entry]
    assert f"fits, at least {format_bytes(row.headroom)} to spare" in sentences(oom.verdict.replay, 600)
    assert f"needs {format_limit(row.least_memory)} with {EXPANDABLE}" in sentences(oom.verdict.replay, 600)
    assert answer.row(RECORDED).served[oom.entry] is False


def test_without_a_replay_the_verdict_cites_none() -> None:
    assert oomscope.analyze(oomscope.load(SAMPLE), whatif=False).main.oom.verdict.replay == ()


def test_where_it_depends_on_the_cap_the_cap_that_would_do_is_named() -> None:
    depends = replace(LIVES, oom=None, served={FAILED: None}, headroom=-GIB)
    bracket = SimpleNamespace(source="bracket", low=14 * GIB, high=16 * GIB)
    asked = SimpleNamespace(entry=FAILED, recovered=False, limit=bracket)
    assert said(whatif(FAILS, depends), asked, "capacity").startswith(
        "Replayed with expandable_segments:True, this request fits if the cap of this process was 15.00 GiB or more; "
        "the recording tells only that it was between 14.0 GiB and 16.0 GiB"
    )


def test_what_rests_on_a_part_of_the_run_is_called_an_estimate() -> None:
    late = replace(EXACT, reason="the recording does not begin with the first allocation")
    estimate = "This is an estimate: the recording does not begin with the first allocation."
    assert said(whatif(LIVES, check=late), request(), "capacity").endswith(estimate)
    assert estimate not in said(whatif(LIVES), request(), "capacity")


def test_the_cap_that_would_do_is_named_though_no_setting_fails_for_certain() -> None:
    depends = replace(LIVES, oom=None, served={FAILED: None})
    bracket = SimpleNamespace(source="bracket", low=14 * GIB, high=16 * GIB)
    asked = SimpleNamespace(entry=FAILED, recovered=False, limit=bracket)
    assert "if the cap of this process was 15.00 GiB or more" in said(whatif(depends), asked, "capacity")
