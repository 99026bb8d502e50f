"""Recorded runs made ready for replays, once a process."""

from __future__ import annotations

from functools import cache

from oomscope.analysis.whatif.preparation import Subject, prepare
from oomscope.history import device_history, recorded_config
from oomscope.model import Snapshot
from tests.shared import shared_snapshot

VARLEN = "whatif.oom_varlen_training.default"
"""60 training steps on batches of changing length, recorded under torch's default settings without an effective cap."""


def subject_of(snapshot: Snapshot, device: int | None = None) -> Subject:
    """The run of a device; of the one with the longest trace if None."""
    chosen = max(snapshot.devices, key=lambda one: len(one.trace)) if device is None else snapshot.device(device)
    return prepare(snapshot, device_history(chosen, recorded_config(snapshot, chosen)))


@cache
def shared_subject(name: str) -> Subject:
    """The run of the shared snapshot `name`."""
    return subject_of(shared_snapshot(name))
