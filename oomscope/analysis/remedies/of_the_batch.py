"""What depends on the size of a batch."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.categories import ACTIVATION, INPUT, TEMPORARY
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.model import BoolArray


def of_the_batch(circumstances: Circumstances) -> BoolArray:
    """bool[lifetimes]: inputs, activations and temporaries."""
    return np.isin(circumstances.study.categories, (ACTIVATION, INPUT, TEMPORARY))


def live_bytes(circumstances: Circumstances) -> int:
    """Bytes of it that were allocated when the request failed."""
    return int(circumstances.study.history.size[of_the_batch(circumstances) & circumstances.live].sum())


def asks_for_the_batch(circumstances: Circumstances) -> bool:
    """Whether the failed request itself depends on the batch: not one of an optimizer's step or of a model's making."""
    return circumstances.asked.phase in ("forward", "backward", "other")
