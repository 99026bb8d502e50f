"""Where a trace and the final segments disagree."""

from __future__ import annotations

from oomscope.wording.template import Sentence

RECONCILIATION: dict[str, Sentence] = {
    "reconciliation.missing": "The trace leaves {bytes:bytes} live that is not in the final segments.",
    "reconciliation.below_zero": "Counted backwards from the end, {curve} memory falls {bytes:bytes} below 0.",
    "reconciliation.above_segments": "At some entry {bytes:bytes} more is in use than the known segments hold.",
    "reconciliation.overlapping": "{count:n allocation} began at an address that was still in use.",
    "reconciliation.outside_segments": "{count:n allocation} outside all segments that the snapshot knows.",
    "reconciliation.uncertain_sizes": (
        "{count:n block} from before the recording may have been up to {bytes:bytes} larger in total than shown, until "
        "freed."
    ),
}
