"""What the cause of one failure is called: the label of its slug, or a closer word where its verdict knows one."""

from __future__ import annotations

from oomscope.analysis.verdict.records import Verdict
from oomscope.wording.labels import CAUSE_LABELS, label

_CLOSER = {
    "causes.other_stream.opened": "memory that came free too late",
    "causes.other_stream.pending": "freed memory that waits for another stream",
    "causes.other_stream.both": "free memory that belongs to another stream, or waits for one",
}
"""By the code of the first sentence."""


def cause_label(verdict: Verdict) -> str:
    """The cause of `verdict` in a few words."""
    first = verdict.headline[0].code if verdict.headline else ""
    return _CLOSER.get(first) or label(verdict.cause, CAUSE_LABELS)
