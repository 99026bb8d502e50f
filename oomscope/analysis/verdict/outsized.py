"""A request far larger than what its work has made before it: a broadcast, all pairs, a one-hot encoding."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.categories import ACTIVATION, INPUT, TEMPORARY
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.verdict.failed_requests import FailedRequest
from oomscope.model import NO_STACK

TIMES = 8
"""The largest activation before it. From layer to layer sizes change by less; only logits may do as much."""
LEAST_SHARE = 0.25
"""Of the limit; a smaller request is not what fills it."""


def times_the_largest(study: DeviceStudy, request: FailedRequest, least: float = TIMES) -> float | None:
    """How many times the largest activation that is alive was asked for; None where that is less than `least`."""
    if request.size < LEAST_SHARE * request.limit.low:
        return None
    made = study.history.lifetimes.allocated_at(request.entry)
    made &= np.isin(study.categories, (ACTIVATION, TEMPORARY, INPUT))
    largest = int(study.history.size[made].max(initial=0))
    return request.size / largest if 0 < least * largest <= request.size else None


def is_of_a_layer(study: DeviceStudy, request: FailedRequest) -> bool:
    """Whether a module of torch asked for it, or nothing is known of who did."""
    stack = int(study.history.trace.stack[request.entry]) if request.entry >= 0 else NO_STACK
    frames = study.snapshot.stacks[stack] if stack >= 0 else ()
    first = next((frame.filename for frame in frames if frame.filename.endswith(".py")), None)
    return first is None or "/torch/nn/modules/" in first.replace("\\", "/")
