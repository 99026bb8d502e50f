"""The real messages beside the repository, with what they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.messages.comparing import Score

SHARED = Path(__file__).resolve().parents[3] / "shared" / "messages"


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"the shared messages are not here ({SHARED})")
def test_every_message_is_read_as_it_was_by_hand():
    score = Score()
    for name, truth in json.loads((SHARED / "truth.json").read_text(encoding="utf-8")).items():
        score.add(name, (SHARED / f"{name}.txt").read_bytes(), truth)
    assert score.wrong == []
    assert score.kinds_right == score.kinds >= 30
    assert score.numbers_right == score.numbers
