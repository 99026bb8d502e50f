"""The verdict in words."""

from __future__ import annotations

import pytest

from oomscope.analysis import analyze
from oomscope.wording.opening import verdict_text
from tests.samples import sample_findings
from tests.shared import needs_shared, shared_snapshot


@pytest.mark.parametrize("name", ["train_ok", "ddp.rank0", "ddp.rank1"])
def test_ordinary_frees_are_not_said_to_wait_for_a_stream(name: str):
    assert "more than was ever active" in verdict_text(sample_findings(name))


@needs_shared
def test_a_full_ring_is_no_stream_to_wait_for():
    text = verdict_text(analyze(shared_snapshot("ring_wrapped"), whatif=False))
    assert "waiting for another stream" not in text


@needs_shared
def test_what_record_stream_keeps_is_said():
    text = verdict_text(analyze(shared_snapshot("oom_record_stream"), whatif=False))
    assert "at least 5.50 GiB had been freed and was waiting for another stream" in text
