"""What the training of a model has left that another one has followed: told from the trace alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oomscope.analysis.labels import kinds
from oomscope.analysis.labels.drivers.duplicate_model import left_over
from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.model import IntArray


class FormerModel(NamedTuple):
    """`bytes` of gradients and states of a model that is not trained any more; it was made at `place`.

    `rows` are their lifetimes.
    """

    bytes: int
    place: Location | None
    rows: IntArray


def find_former_model(study: DeviceStudy, entry: int) -> FormerModel | None:
    """What is left of a training that another model has followed. The model itself may be in use: it is not counted."""
    live = LiveBlocks(study, entry)
    found = left_over(live)
    left = found & live.of(kinds.GRADIENT, kinds.OPTIMIZER_STATE)
    if not left.any():
        return None
    parameters = np.flatnonzero(found & live.of(kinds.PARAMETER))
    largest = int(live.stack[parameters[np.argmax(live.bytes[parameters])]])
    place = study.sites.location(int(study.sites.caller_of[largest])) if largest >= 0 else None
    return FormerModel(int(study.history.size[live.rows[left]].sum()), place, live.rows[left])
