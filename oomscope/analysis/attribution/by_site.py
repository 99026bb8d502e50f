"""Which site, caller or reason for having none each allocation belongs to."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.attribution.sites import NO_LOCATION, SiteTable
from oomscope.analysis.records import PHASES
from oomscope.analysis.said.tracebacks import frames_in
from oomscope.frozen import frozen
from oomscope.history import BEFORE, DeviceHistory
from oomscope.model import NO_STACK, BoolArray, IntArray, UInt8Array
from oomscope.model.arrays import StackArray
from oomscope.model.ordering import numbered

# Why memory has no site; their words are the `SITE_LABELS` of `oomscope.wording.labels`.
NO_FRAMES_BACKWARD = "backward"
BACKWARD_OF = "backward_of"
"""There is a site: the line of the forward whose backward made the block, where anomaly mode told it."""
NO_FRAMES = "no_frames"
BEFORE_RECORDING = "before_recording"
EVICTED = "overwritten"
NO_STACK_KEPT = "no_stack"
ONLY_TORCH = "only_torch"
BEFORE_WINDOW = "before_window"
ALL_OTHERS = "all_others"
_LABELS = (
    "", NO_FRAMES_BACKWARD, NO_FRAMES, BEFORE_RECORDING, EVICTED, ONLY_TORCH, NO_STACK_KEPT, BACKWARD_OF, BEFORE_WINDOW,
)  # fmt: skip
_WHY_UNSEEN = {"window": BEFORE_WINDOW, "wrapped": EVICTED, "state_only": NO_STACK_KEPT, "none": NO_STACK_KEPT}


@frozen(eq=False)
class Attribution:
    """Which rows of the table each lifetime belongs to.

    Attributes:
        group: int64[lifetimes], number of the (site, caller, label) that the lifetime belongs to.
        site, caller: int32[groups], location numbers of a `SiteTable`.
        label: the reason why a group has no site, or `BACKWARD_OF`; else None.
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
        kind: how complete the history is, as `quality.history_kind` says it; ``window``: there are earlier
            entries, which were left out.
    """
    lifetimes = history.lifetimes
    stack = lifetimes.stack
    site, caller = sites.sites(stack), sites.callers(stack)
    backward = phases == PHASES.index("backward")
    before = lifetimes.born == BEFORE
    forward = _sites_of_forwards(history, sites, site, caller)
    reason = np.select(
        [forward, site != NO_LOCATION, (stack == NO_STACK) & before, backward, stack == NO_STACK],
        [_LABELS.index(BACKWARD_OF), 0, _LABELS.index(_WHY_UNSEEN.get(kind, BEFORE_RECORDING)), 1, 2],
        default=_LABELS.index(ONLY_TORCH),
    )
    width = len(sites) + 1
    key = ((reason * width) + site + 1) * width + caller + 1
    distinct, group = numbered(key)
    return Attribution(
        group=group,
        site=(distinct // width % width - 1).astype(np.int32),
        caller=(distinct % width - 1).astype(np.int32),
        label=tuple(_LABELS[index] or None for index in (distinct // width // width).tolist()),
    )


def _sites_of_forwards(history: DeviceHistory, sites: SiteTable, site: StackArray, caller: StackArray) -> BoolArray:
    """Fill in the forward's line where a block of a backward has none of its own; returns which rows those are."""
    found = np.zeros(len(site), np.bool_)
    told = history.trace.forward_stacks
    if not told:
        return found
    places: dict[tuple[str, ...], tuple[int, int]] = {}
    for row in np.flatnonzero((site == NO_LOCATION) & np.isin(history.lifetimes.born, list(told))).tolist():
        lines = told[int(history.lifetimes.born[row])]
        if lines not in places:
            places[lines] = sites.places_in(frames_in(lines))
        if places[lines][0] != NO_LOCATION:
            site[row], caller[row] = places[lines]
            found[row] = True
    return found
