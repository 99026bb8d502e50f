"""The pass in which a request failed."""

from __future__ import annotations

from oomscope.analysis.records import CallsInProgress, FailingPass
from oomscope.analysis.study import DeviceStudy


def find_failing_pass(study: DeviceStudy, entry: int) -> FailingPass | None:
    """How far the loop had come at `entry`; None where no loop is known."""
    del study, entry
    return None


def find_calls_in_progress(study: DeviceStudy, entry: int) -> tuple[CallsInProgress, ...]:
    """Calls of one function that were underway at the same time."""
    del study, entry
    return ()
