"""The kinds of trace entries (torch's `TraceEntry::Action`)."""

from __future__ import annotations

from enum import IntEnum


class Action(IntEnum):
    """What a trace entry reports. The numbers are oomscope's own; the names are torch's."""

    ALLOC = 0
    """A block was handed out; `size` is what the caller asked for, not the block's size."""
    FREE_REQUESTED = 1
    """The caller gave the block back; another stream may still use it."""
    FREE_COMPLETED = 2
    """The block may be reused."""
    SEGMENT_ALLOC = 3
    """cudaMalloc."""
    SEGMENT_FREE = 4
    """cudaFree."""
    SEGMENT_MAP = 5
    """Pages of an expandable segment were mapped."""
    SEGMENT_UNMAP = 6
    """Pages of an expandable segment were unmapped."""
    SNAPSHOT = 7
    """An earlier snapshot was taken here; `size` is the active bytes at that moment."""
    OOM = 8
    """A request failed after all retries; `address` holds the device's free bytes, `size` the rounded request."""
    ANNOTATE = 9
    """torch 2.14+: a text was attached to a block."""
    USER_DEFINED = 10
    """Some nightlies wrote `record_function` ranges into the trace."""
    OTHER = 255
    """An action this version of oomscope does not know; counted in the snapshot's notes, without effect."""

    @classmethod
    def from_name(cls, name: str) -> Action:
        """The action that torch writes as `name`, or `OTHER`."""
        return _BY_NAME.get(name, cls.OTHER)


# 'free' is MemoryViz's own merge of the two free actions; some tools write it back into files.
_BY_NAME = {action.name.lower(): action for action in Action if action is not Action.OTHER} | {
    "free": Action.FREE_COMPLETED
}
