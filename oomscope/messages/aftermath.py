"""What only goes with a failure: a code that is passed on, a program that ends its processes, a warning before it."""

from __future__ import annotations

import re

from oomscope.messages.families import device, other, serving
from oomscope.messages.kinds import DEVICE, NOBODY
from oomscope.messages.merge import NEAR, NEAR_SAME
from oomscope.messages.records import OomMessage

SIGNAL = "killed.signal"
"""The wording of a process that signal 9 ended, whoever sent it."""
_CODES = ("host.errno", device.CODE)
"""Names of codes, which say neither what was asked for nor by whom."""
_SOON = 8
"""Lines after a refusal in which a program names the code that came of it."""
_IN_A_SENTENCE = re.compile(r"\w,? (?:still |the |an? |this )+[\"'`*]*(?:cuda )?out of memory\b", re.IGNORECASE)
_BEFORE = 400
"""Characters before a kill in which a program says that it shuts down."""
_SHUTS_DOWN = re.compile(
    r"shuttingdown|shutdown(?:all|the|now)|receivedsigquit|closingsignal|killing(?:subprocess|all|the|child|worker)"
    r"|terminatingthe|terminatingall|childprocessfailed",
    re.IGNORECASE,
)


def shuts_down(packed: str, start: int) -> bool:
    """Whether a program says right before `start` that it ends its own processes."""
    return _SHUTS_DOWN.search(packed, max(0, start - _BEFORE), start) is not None


def passes_on(cause: OomMessage | None, new: OomMessage) -> bool:
    """Whether `new` is but the name of a code, passed on by a program that was refused memory just before."""
    return (
        cause is not None
        and new.reading.wording in _CODES
        and cause.kind in ("cuda-driver", "pinned-host")
        and new.line - cause.line <= _SOON
    )


def speaks_of(cause: OomMessage | None, new: OomMessage) -> bool:
    """Whether `new` is how somebody calls the refusal `cause` in a sentence below it: words without a figure."""
    return (
        cause is not None
        and _IN_A_SENTENCE.search(new.text) is not None
        and not new.reading.was_printed
        and "requested" in cause.reading.figures
        and cause.kind != new.kind
        and new.line - cause.line <= _SOON
    )


def ends_program(failure: OomMessage | None, new: OomMessage) -> bool:
    """Whether `new` is the kill with which a program ends its processes after `failure`."""
    return (
        failure is not None
        and new.reading.wording == SIGNAL
        and "shuts_down" in new.reading.values
        and failure.kind != "oom-killer"
        and failure.refused_by != NOBODY
        and new.line - failure.line <= NEAR
    )


def only_warned(warning: OomMessage, new: OomMessage) -> bool:
    """Whether `warning` refused nothing, and `new` is the refusal below it.

    It says that an allocator served much, or that an engine found no settings that fit.
    """
    if warning.reading.wording == other.SERVED:
        return new.refused_by not in (NOBODY, None) and new.line - warning.line <= NEAR
    return warning.reading.wording == serving.FIT and new.refused_by == DEVICE and new.line - warning.line <= NEAR_SAME
