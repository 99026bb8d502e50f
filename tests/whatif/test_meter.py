"""How far the replays are: from nothing to all, and never back."""

from __future__ import annotations

import pytest

from oomscope.analysis.study import study_device
from oomscope.analysis.whatif import whatif_of
from tests.samples import sample


@pytest.mark.parametrize(
    "question",
    [
        {},
        {"settings": ["expandable_segments:True"], "least_memory": "all"},
        {"scale": ["activation=0.5"], "least_memory": "none"},
    ],
)
def test_shares_rise_from_row_to_row(question: dict[str, object]) -> None:
    told: list[tuple[str, float, str]] = []
    answer = whatif_of(
        study_device(sample("oom_fragmentation"), 0),
        progress=lambda stage, share, detail="": told.append((stage, share, detail)),
        **question,
    )
    replaying = [(share, detail) for stage, share, detail in told if stage == "replaying"]
    shares = [share for share, _ in replaying]
    assert told[0] == ("preparing", 0.0, "")
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert 0.5 < shares[-1] <= 1.0
    named = {detail for _, detail in replaying}
    assert {row.setting.partition(", ")[0] for row in answer.rows} <= named
