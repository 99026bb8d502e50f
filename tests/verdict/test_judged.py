"""No answer about a recorded program changes unseen: `tests.verdict.judged` tells what is compared, and writes it."""

from __future__ import annotations

import pytest

from tests.verdict.judged import judged, written
from tests.verdict.known import programs

WRITTEN = written()


def test_every_program_is_written_down() -> None:
    assert list(WRITTEN) == list(programs())


@pytest.mark.parametrize("name", programs())
def test_what_is_said_of_a_program_is_what_was_said_before(name: str) -> None:
    assert judged(programs()[name]) == WRITTEN[name], "if this is meant: python -m tests.verdict.judged"
