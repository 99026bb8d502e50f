"""The failure that ended the program, as the message of the recorded exception tells of it."""

from __future__ import annotations

import io

from oomscope.history import DeviceHistory
from oomscope.messages.records import OomMessage
from oomscope.model import Action, Snapshot

_LONGEST = 20_000
"""Characters of a message that are read: what a program hangs on behind is not torch's."""
_NOT_MEMORY = frozenset({"other", "shared-memory"})


def told_by_exception(snapshot: Snapshot) -> OomMessage | None:
    """The recorded exception as `oomscope explain` reads it; None where none is recorded, or it is none of memory."""
    text = snapshot.recorded.exception_message
    if not text:
        return None
    # Most recordings need none of it: the patterns of all messages take as long to load as a small report to write.
    from oomscope.messages import read_log

    found = read_log(io.BytesIO(text[:_LONGEST].encode("utf-8", "replace"))).messages
    return next((one for one in found if one.kind not in _NOT_MEMORY), None)


def failed_as_told(history: DeviceHistory, message: OomMessage) -> int | None:
    """The last failed request of the trace that has the figures of `message`; None for none.

    Other threads may have allocated, or failed as well, after it.
    """
    requested, allocated = message.figure("requested"), message.figure("allocated")
    if requested is None or allocated is None:
        return None
    failed = history.trace.entries(Action.OOM)
    size, live = history.trace.size[failed], history.curves.allocated[failed]
    alike = (requested.low <= size) & (size <= requested.high) & (allocated.low <= live) & (live <= allocated.high)
    return int(failed[alike][-1]) if alike.any() else None
