"""How long work tells how far it is."""

from __future__ import annotations

from typing import Protocol


class Listener(Protocol):
    """Called now and then by work that may take seconds."""

    def __call__(self, stage: str, share: float, detail: str = "", /) -> None:
        """Take note.

        Args:
            stage: what is done: ``history``, ``preparing``, ``replaying`` or ``findings``.
            share: how much of the stage is done, 0 to 1.
            detail: what in particular is done, such as the setting that is replayed.
        """


def silent(stage: str, share: float, detail: str = "", /) -> None:
    """Nobody wants to know."""
