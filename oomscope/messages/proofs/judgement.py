"""What is said about a message."""

from __future__ import annotations

from dataclasses import dataclass, field

from oomscope.model.note import Note


@dataclass(slots=True)
class Judgement:
    """Collects what a message proves, what its advice is worth, and what it leaves open, the most telling first."""

    proves: list[Note] = field(default_factory=list)
    advice: list[Note] = field(default_factory=list)
    cannot_tell: list[Note] = field(default_factory=list)
