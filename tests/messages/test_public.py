"""Real messages are read as a person reads them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.messages.comparing import Score
from tests.messages.public import SETS, messages, written


@pytest.mark.parametrize("truth", [one for name in SETS for one in messages(name)], ids=lambda one: one["source"])
def test_a_public_message_is_read_as_it_was_by_hand(truth: dict[str, Any]):
    score = Score()
    score.add(truth["source"], truth["text"].encode(), truth)
    assert score.wrong == []


@pytest.mark.parametrize("truth", written(), ids=lambda one: f"{one['kind']}-{one['source']}")
def test_further_wordings_are_known(truth: dict[str, Any]):
    score = Score()
    score.add(truth["source"], truth["text"].encode(), truth)
    assert score.wrong == []
