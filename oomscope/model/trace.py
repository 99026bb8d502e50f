"""The trace of one device: what its allocator did, entry by entry, as columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from oomscope.frozen import frozen
from oomscope.model.actions import Action
from oomscope.model.arrays import IntArray, StackArray, UInt8Array
from oomscope.model.ordering import is_any


@frozen(eq=False)
class Trace:
    """Trace entries in the order in which they happened; every column has one row an entry.

    Attributes:
        action: `Action` numbers.
        address: start of the block or segment; for `OOM` entries the device's free bytes (torch's ``device_free``).
        size: bytes; see `Action` for what each action means by it.
        stream: the raw ``cudaStream_t``.
        time_us: microseconds since the epoch; zeros where `timed` is false (torch before 2.2).
        stack: numbers in the snapshot's `StackTable`, `NO_STACK` where none was recorded.
        pool: numbers in the snapshot's `pools`; -1 where the entry does not say (torch before 2.12).
        timed: whether the entries carry times.
        compile_context, user_metadata, internal_metadata: numbers in `texts`, or None where no entry says anything.
        texts: the distinct texts of the three columns above.
        forward_stacks: for the few entries that carry one, the formatted traceback of the forward call.
    """

    action: UInt8Array
    address: IntArray
    size: IntArray
    stream: IntArray
    time_us: IntArray
    stack: StackArray
    pool: StackArray
    timed: bool = True
    compile_context: StackArray | None = None
    user_metadata: StackArray | None = None
    internal_metadata: StackArray | None = None
    texts: tuple[str, ...] = ()
    forward_stacks: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.action)

    @classmethod
    def empty(cls) -> Trace:
        """A trace without entries."""
        zero, none = np.zeros(0, np.int64), np.zeros(0, np.int32)
        return cls(np.zeros(0, np.uint8), zero, zero, zero, zero, none, none)

    def entries(self, *actions: Action) -> IntArray:
        """The numbers of the entries with one of `actions`, ascending."""
        if len(actions) == 1:
            return np.flatnonzero(self.action == actions[0])
        return np.flatnonzero(is_any(self.action, actions))
