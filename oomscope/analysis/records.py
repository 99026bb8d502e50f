"""The records that findings are made of. Bytes are integers; None is unknown, never 0.

The names are those of the JSON report (`oomscope/rendering/report.schema.json`).
"""

from __future__ import annotations

from oomscope.frozen import frozen
from oomscope.model import Note

CATEGORIES = (
    "parameter", "gradient", "optimizer_state", "buffer", "activation", "temporary", "input", "workspace", "unknown",
)  # fmt: skip
PHASES = ("before_recording", "forward", "backward", "optimizer", "other")
CAUSES = (
    "oversized_request", "growth", "retained", "private_pools", "other_stream", "outside_allocator", "fragmentation",
    "capacity",
)  # fmt: skip
"""In the order in which a cause is chosen among those that qualify."""


@frozen
class Location:
    """A line of code. `oomscope.analysis.attribution.sites` tells which line stands for a stack."""

    file: str
    line: int
    function: str


@frozen
class At:
    """The instant that the attribution is about: once `entry` of `device` has happened; -1: before the first."""

    kind: str
    """``oom``, ``peak``, ``end`` or ``entry``."""
    device: int
    entry: int
    time_us: int | None


@frozen
class RecordingQuality:
    """What the recording could see.

    Attributes:
        history: ``full``, ``wrapped``, ``late``, ``state_only`` or ``none``.
        stacks: ``python``, ``all`` or ``none``.
        unattributed_live_bytes: allocated bytes at the instant of attribution that no stack explains.
        notes: what the file cannot show, and how to record it better.
        cut: whether the file was cut off; what that makes uncertain is said by `Snapshot.cut` and by a note.
    """

    history: str
    stacks: str
    unattributed_live_bytes: int
    notes: tuple[Note, ...] = ()
    cut: bool = False
