"""What hooks keep that were registered again and again, or that stay on a module which nobody uses any more."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from oomscope.analysis.attribution.held_blocks import ways_to
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.verdict.records import Suspect
from oomscope.model.recorded_holders import RecordedHolder, RecordedTensor

LEAST_HOOKS = 4
"""On one module, with what each keeps; nobody has so many uses for one module's output."""
HOOKS = re.compile(r"\._\w*hooks\[\*\]|\._(?:full_)?(?:forward|backward)_\w*hooks$")
"""Where one module has several hooks, or modules alike have some; a module that has one names it by its number."""

_BY_A_HOOK = re.compile(r"\._(?:full_)?(?:forward|backward)_\w*hooks\[")
"""On the way to what a hook keeps."""


def hooked(suspect: Suspect, holder: RecordedHolder) -> Suspect:
    """`suspect`, as a pile of hooks if it is one: registered again and again, each keeps its own of the newest pass.

    In the middle of a pass, those that it has not come to yet keep what the pass before has made.
    """
    hooks = _hooks_each(holder)
    if hooks < LEAST_HOOKS or not HOOKS.search(suspect.holder) or suspect.passes > 1:
        return suspect
    earlier = suspect.retained * (hooks - 1) // hooks
    return replace(suspect, kind="hooks", passes=hooks - 1, finished_bytes=earlier, earlier_bytes=earlier)


def _hooks_each(holder: RecordedHolder) -> int:
    """How many hooks keep something: those of one module, or of each where it stands for the hooks of several."""
    objects = holder.count or 1
    if holder.holder is None or not holder.holder.endswith("hooks"):
        return objects
    return min(holder.length or 0, holder.tensors or 0) // objects


def kept_by_hooks(study: DeviceStudy, tensors: Iterable[RecordedTensor]) -> int:
    """Bytes of those `tensors` that hooks keep which are still registered."""
    return sum(one.bytes or 0 for one in tensors if _BY_A_HOOK.search(ways_to(study, one)[0]))
