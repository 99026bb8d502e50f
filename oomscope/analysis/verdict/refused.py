"""A failure that no entry of the trace tells of: the message that the recording kept, read as in a log.

torch writes an ``oom`` entry for its caching allocator on CUDA and XPU alone. The driver, libraries, pinned host
memory, and allocators without a history (cudaMallocAsync, MPS, MTIA) fail with a message and nothing else.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass

from oomscope.history import DeviceHistory
from oomscope.messages import OomMessage, read_log
from oomscope.model import Action, Snapshot

_PINNING = frozenset({"pin_memory", "_pin_memory", "_pin_memory_loop", "pin_memory_batch", "copy_pinned"})
"""Functions of torch, and of programs, in which pinned memory is asked for."""
_LONGEST = 20_000
_NOT_MEMORY = frozenset({"other", "shared-memory"})


@dataclass(frozen=True, slots=True)
class Refused:
    """What failed outside the trace.

    Attributes:
        message: as `oomscope explain` reads it.
        pinned: whether it was pinned host memory that was refused, whatever the words: the message says so, or the
            failing stack was pinning memory.
    """

    message: OomMessage
    pinned: bool


def find_refused(snapshot: Snapshot, histories: Iterable[DeviceHistory]) -> Refused | None:
    """What the recorded exception says was refused; None where the trace tells of the failure, or none is recorded."""
    recorded = snapshot.recorded
    text = recorded.exception_message
    if not text or recorded.request.alloc_size is not None or any(_failed_last(one) for one in histories):
        return None
    found = read_log(io.BytesIO(text[:_LONGEST].encode("utf-8", "replace"))).messages
    message = next((one for one in found if one.kind not in _NOT_MEMORY), None)
    if message is None:
        return None
    frames = recorded.stacks.failing or recorded.stacks.main
    pinning = any(frame.name.rpartition(".")[2] in _PINNING for frame in frames[:_DEEP])
    return Refused(message, message.kind == "pinned-host" or (message.kind == "cuda-driver" and pinning))


_DEEP = 4
"""So many of the innermost frames count: further out stands what the program does anyway."""


def _failed_last(history: DeviceHistory) -> bool:
    """Whether the trace ends in a failed request, or in what unwinding frees after it."""
    failed = history.trace.entries(Action.OOM)
    if not len(failed):
        return False
    allocations = history.trace.entries(Action.ALLOC)
    return not len(allocations) or int(failed[-1]) > int(allocations[-1])
