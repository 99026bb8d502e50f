"""Real recordings: the replay of the recorded setting equals them, or is refused with its reason."""

from __future__ import annotations

import pytest

from oomscope.analysis.whatif import whatif
from oomscope.model import Action
from oomscope.wording.whatif_table import notes_text
from tests.said import reason_text
from tests.samples import SAMPLES, sample
from tests.shared import captures, needs_shared, public, shared_snapshot, truth
from tests.whatif.subjects import shared_subject, subject_of

FOREIGN = {
    "public/Da1sypetals__SnapViewer__assets__memory.pickle": "a tool's own rewriting",
}
LATE = ("late_start", "ring_wrapped")


def with_trace(names: list[str]) -> list[str]:
    return [name for name in names if name not in ("no_history", "state_only") and name not in FOREIGN]


@needs_shared
@pytest.mark.parametrize("name", with_trace(captures()))
def test_our_own_captures_are_replayed_address_by_address(name: str) -> None:
    subject = shared_subject(name)
    assert subject.check.mismatches == 0, subject.check
    assert subject.check.addresses == len(subject.device.trace.entries(Action.ALLOC)) > 0
    assert subject.complete == (name not in LATE)


@needs_shared
@pytest.mark.parametrize("name", [name for name in with_trace(captures()) if name not in LATE])
def test_the_replay_knows_what_the_process_knew(name: str) -> None:
    stats, replay = truth(name)["stats"], shared_subject(name).recorded
    assert replay.peak_reserved == stats["reserved_bytes.all.peak"]
    assert replay.final_reserved == stats["reserved_bytes.all.current"]
    assert replay.peak_allocated == stats["allocated_bytes.all.peak"]
    assert replay.retries == truth(name)["num_alloc_retries"]
    assert len(replay.failures) == truth(name)["num_ooms"]


@needs_shared
def test_a_long_capture_is_replayed_address_by_address() -> None:
    subject = shared_subject("big_history")
    assert subject.check.mismatches == 0
    assert subject.check.addresses == 541_282


@needs_shared
@pytest.mark.parametrize("name", with_trace(public()))
def test_other_peoples_captures_are_replayed_address_by_address(name: str) -> None:
    for device in shared_snapshot(name).devices:
        assert subject_of(shared_snapshot(name), device.index).check.mismatches == 0


@needs_shared
@pytest.mark.parametrize("name", sorted(FOREIGN))
def test_another_allocator_is_refused_with_the_place_where_it_departs(name: str) -> None:
    answer = whatif(shared_snapshot(name), 0, settings=["expandable_segments:True"])
    check = answer.self_check
    assert check.mismatches > 0
    assert check.first_mismatch is not None
    assert f"at entry {check.first_mismatch:,}" in reason_text(check)
    recorded, expandable = answer.rows
    assert recorded.setting == "recorded"
    assert recorded.peak_reserved is not None
    assert not recorded.exact
    assert (expandable.peak_reserved, expandable.oom) == (None, None)
    assert "not answered" in notes_text(expandable)


@needs_shared
@pytest.mark.parametrize("name", ["no_history", "state_only"])
def test_a_snapshot_without_history_has_nothing_to_replay(name: str) -> None:
    answer = whatif(shared_snapshot(name), 0)
    assert not answer.self_check.exact
    assert "nothing to replay" in reason_text(answer.self_check)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_bundled_samples_are_replayed_address_by_address(name: str) -> None:
    for device in sample(name).devices:
        if len(device.trace):
            assert subject_of(sample(name), device.index).check.exact
