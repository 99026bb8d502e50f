"""What notes say, in words."""

from __future__ import annotations

from collections.abc import Iterable

from oomscope.analysis.whatif.records import SelfCheck
from oomscope.model import Note
from oomscope.wording import say


def said(notes: Iterable[Note]) -> str:
    """All `notes` as one text."""
    return " ".join(map(say, notes))


def reason_text(check: SelfCheck) -> str:
    """Why other settings are not answered, or only some; empty where everything is."""
    return "" if check.reason is None else say(check.reason)
