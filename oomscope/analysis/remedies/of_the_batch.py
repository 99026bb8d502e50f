"""What depends on the size of a batch."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.categories import ACTIVATION, INPUT, PARAMETER, TEMPORARY
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.model import BoolArray


def of_the_batch(circumstances: Circumstances) -> BoolArray:
    """bool[lifetimes]: inputs, activations and temporaries."""
    return np.isin(circumstances.study.categories, (ACTIVATION, INPUT, TEMPORARY))


def live_bytes(circumstances: Circumstances) -> int:
    """Bytes of it that were allocated when the request failed."""
    return int(circumstances.study.history.size[of_the_batch(circumstances) & circumstances.live].sum())


def asks_for_the_batch(circumstances: Circumstances) -> bool:
    """Whether the failed request itself depends on the batch: none of an optimizer, a model's making, or a gradient."""
    phase = circumstances.asked.phase
    return phase in ("forward", "other") or (phase == "backward" and not _may_be_a_gradient(circumstances))


def _may_be_a_gradient(circumstances: Circumstances) -> bool:
    """Whether a parameter that is there has the request's size, as its gradient would."""
    study, request = circumstances.study, circumstances.request
    parameters = (study.categories == PARAMETER) & circumstances.live
    asked = study.history.lifetimes.requested[parameters]
    same = (asked == request.size) | (study.history.size[parameters] == request.alloc_size)
    return bool(same.any())
