"""Recording on a GPU: the only part of oomscope that imports torch, and only once a recording starts."""

from __future__ import annotations

from oomscope.recording.options import Options
from oomscope.recording.recorder import Recording, mark, record, snapshot, step, track

__all__ = ["Options", "Recording", "mark", "record", "snapshot", "step", "track"]
