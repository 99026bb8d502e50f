"""Which site, caller or reason for having none each allocation belongs to."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.attribution.sites import NO_LOCATION, SiteTable
from oomscope.analysis.records import PHASES
from oomscope.history import BEFORE, DeviceHistory
from oomscope.lean_dataclass import dataclass
from oomscope.model import NO_STACK, IntArray, UInt8Array
from oomscope.model.arrays import StackArray

# Why memory has no site; their words are the `SITE_LABELS` of `oomscope.wording.labels`.
NO_FRAMES_BACKWARD = "backward"
NO_FRAMES = "no_frames"
BEFORE_RECORDING = "before_recording"
EVICTED = "overwritten"
NO_STACK_KEPT = "no_stack"
ONLY_TORCH = "only_torch"
ALL_OTHERS = "all_others"
_LABELS = ("", NO_FRAMES_BACKWARD, NO_FRAMES, BEFORE_RECORDING, EVICTED, ONLY_TORCH, NO_STACK_KEPT)
_WHY_UNSEEN = {"wrapped": EVICTED, "state_only": NO_STACK_KEPT, "none": NO_STACK_KEPT}


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """Which rows of the table each lifetime belongs to.

    Attributes:
        group: int64[lifetimes], number of the (site, caller, label) that the lifetime belongs to.
        site, caller: int32[groups], location numbers of a `SiteTable`.
        label: the reason why a group has no site, else None.
    """

    group: IntArray
    site: StackArray
    caller: StackArray
    label: tuple[str | None, ...]


def attribute(history: DeviceHistory, sites: SiteTable, phases: UInt8Array, *, kind: str) -> Attribution:
    """Group all lifetimes by site and caller; those without a site by the reason why.

    Args:
        history: the device's history.
        sites: sites and callers of the snapshot's stacks.
        phases: uint8[lifetimes], indices into `PHASES`.
        kind: how complete the history is, as `quality.history_kind` says it.
    """
    lifetimes = history.lifetimes
    stack = lifetimes.stack
    site, caller = sites.sites(stack), sites.callers(stack)
    backward = phases == PHASES.index("backward")
    before = lifetimes.born == BEFORE
    reason = np.select(
        [site != NO_LOCATION, (stack == NO_STACK) & before, backward, stack == NO_STACK],
        [0, _LABELS.index(_WHY_UNSEEN.get(kind, BEFORE_RECORDING)), 1, 2],
        default=_LABELS.index(ONLY_TORCH),
    )
    width = len(sites) + 1
    key = ((reason * width) + site + 1) * width + caller + 1
    distinct, group = np.unique(key, return_inverse=True)
    return Attribution(
        group=group.astype(np.int64),
        site=(distinct // width % width - 1).astype(np.int32),
        caller=(distinct % width - 1).astype(np.int32),
        label=tuple(_LABELS[index] or None for index in (distinct // width // width).tolist()),
    )
