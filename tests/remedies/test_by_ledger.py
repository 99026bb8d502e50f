"""What the ledger knows of a piece of advice goes into it."""

from __future__ import annotations

from oomscope.analysis import analyze
from oomscope.analysis.ledger import EDITS
from oomscope.analysis.remedies.by_ledger import EDITS_OF
from oomscope.analysis.verdict.records import Advice
from tests.shared import needs_shared, shared_snapshot


def advice_of(name: str) -> dict[str, Advice]:
    (device,) = analyze(shared_snapshot(name)).devices
    assert device.oom is not None
    return {one.slug: one for one in device.oom.verdict.advice}


@needs_shared
def test_checkpointing_is_known_to_be_enough_where_the_edited_run_serves_the_request():
    advice = advice_of("oom_activations")["checkpoint_activations"]
    assert advice.enough is True
    assert advice.saves_bytes is not None
    # Most of the activations, 13.6 GiB, less one block's and the outputs of all.
    assert 7 << 30 < advice.saves_bytes < 10 << 30


@needs_shared
def test_no_optimizer_with_less_state_is_enough_where_the_state_is_less_than_what_was_missing():
    assert advice_of("oom_activations")["shard_optimizer_state"].enough is False


@needs_shared
def test_what_was_known_before_stays():
    advice = advice_of("oom_optimizer_step")["shard_optimizer_state"]
    assert advice.enough is True
    assert advice.saves_bytes == 4_027_373_568  # three quarters of the state, the part still to be made included


def test_what_advice_names_is_in_the_ledger():
    assert {slug for slugs in EDITS_OF.values() for slug in slugs} <= set(EDITS)
