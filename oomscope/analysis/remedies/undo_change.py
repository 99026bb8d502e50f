"""What has changed since the passes that freed what this one keeps."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice

SLUG = "undo_change"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where a pass asks for what the last one asked for, and holds much more of what it has made."""
    found = circumstances.failing_pass
    if found is None or found.keeps is None or not found.frees_less:
        return
    saves = found.keeps.bytes - found.keeps.before
    yield Advice(SLUG, {"place": found.keeps.place}, saves, enough_by_sum(circumstances, saves), at=found.keeps.place)
