"""A failure that no entry of the trace tells of: the message that the recording kept, read as in a log.

torch writes an ``oom`` entry for its caching allocator on CUDA and XPU alone. The driver, libraries, pinned host
memory, and allocators without a history (cudaMallocAsync, MPS, MTIA) fail with a message and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from oomscope.analysis.verdict.told_by_exception import failed_as_told, told_by_exception
from oomscope.frozen import frozen
from oomscope.history import DeviceHistory
from oomscope.model import Action, RecordedContext, Snapshot

if TYPE_CHECKING:
    from oomscope.messages import OomMessage

_PINNING = frozenset({"pin_memory", "_pin_memory", "_pin_memory_loop", "pin_memory_batch", "copy_pinned"})
"""Functions of torch, and of programs, in which pinned memory is asked for."""
_PINS = re.compile(r"\bpin_memory\s*(?:\(|=\s*True)")


@frozen
class Refused:
    """What failed outside the trace.

    Attributes:
        message: as `oomscope explain` reads it.
        pinned: whether it was pinned host memory that was refused, whatever the words: the message says so, or the
            failing stack or its line of source was pinning memory.
        device_free: bytes of the card that were free then, where there was one card and the recording knows it.
    """

    message: OomMessage
    pinned: bool
    device_free: int | None = None


def find_refused(snapshot: Snapshot, histories: Iterable[DeviceHistory]) -> Refused | None:
    """What the recorded exception says was refused; None where the trace tells of the failure, or none is recorded."""
    recorded, histories = snapshot.recorded, tuple(histories)
    text = recorded.exception_message
    if not text or recorded.request.alloc_size is not None or any(map(_failed_last, histories)):
        return None
    message = told_by_exception(snapshot)
    if message is None or any(failed_as_told(one, message) is not None for one in histories):
        return None
    pinned = message.kind == "pinned-host" or (message.kind == "cuda-driver" and _was_pinning(recorded))
    free = recorded.devices[0].free if len(recorded.devices) == 1 else None
    return Refused(message, pinned, free)


_DEEP = 4
"""So many of the innermost frames count: further out stands what the program does anyway."""


def _was_pinning(recorded: RecordedContext) -> bool:
    """Whether the failing call was pinning memory: by the functions around it, else by the very line that failed.

    ``torch.empty(…, pin_memory=True)`` and ``Tensor.pin_memory`` are C++ and no frame of the stack.
    """
    frames = recorded.stacks.failing or recorded.stacks.main
    if any(frame.name.rpartition(".")[2] in _PINNING for frame in frames[:_DEEP]):
        return True
    line = next(
        (one.text[one.line - one.first] for one in recorded.sources
         if frames and (one.filename, one.line) == (frames[0].filename, frames[0].line)),
        "",
    )  # fmt: skip
    return _PINS.search(line) is not None


def _failed_last(history: DeviceHistory) -> bool:
    """Whether the trace ends in a failed request, or in what unwinding frees after it."""
    failed = history.trace.entries(Action.OOM)
    if not len(failed):
        return False
    allocations = history.trace.entries(Action.ALLOC)
    return not len(allocations) or int(failed[-1]) > int(allocations[-1])
