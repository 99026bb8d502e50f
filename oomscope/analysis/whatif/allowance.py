"""How much is replayed: counted in steps, not in seconds, so that a report of a file is the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass

from oomscope.allocator.replay import Replay

STEPS_A_SECOND = 1_000_000
"""What the plain model takes on an ordinary processor; seconds that somebody asks for are counted as so many."""
REPORT_STEPS = 6_000_000
"""What the replays of a report of a short trace may take."""
LESS_PER_STEP = 4.5
"""For each step of the program: of a long trace, reading and explaining it takes most of what a reader waits for."""
LEAST_PER_STEP = 1.25
"""For each step of the program: what is left for the longest traces."""
STEPS_OF_AN_EVENT = 15
"""Memory that comes from the device or goes back to it takes as long as so many steps."""


@dataclass(slots=True)
class Allowance:
    """How many steps answers may take. What would take more is left out, and said to be.

    Attributes:
        steps: in all; None: as many as it takes.
        spent: those taken.
    """

    steps: int | None = None
    spent: int = 0

    def allows(self, steps: int) -> bool:
        """Whether so many more may be taken."""
        return self.steps is None or self.spent + steps < self.steps

    @property
    def is_left(self) -> bool:
        """Whether any more may be taken."""
        return self.allows(0)

    def spend(self, replay: Replay) -> None:
        """Count what a replay took."""
        self.spent += replay.steps + STEPS_OF_AN_EVENT * len(replay.segment_events)


def steps_of_report(program: int) -> int:
    """What a report may replay of a program of so many steps."""
    return round(max(REPORT_STEPS - LESS_PER_STEP * program, LEAST_PER_STEP * program))


def steps_in(seconds: float) -> int:
    """What may be replayed where somebody asks for seconds."""
    return round(min(seconds * STEPS_A_SECOND, 1 << 62))
