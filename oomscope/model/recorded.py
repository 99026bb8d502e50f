"""What a recording by oomscope adds to a snapshot: the dump's own ``oomscope`` key, typed.

Everything in it may be missing: an unknown number or text is None, an unknown list is empty. Sizes are bytes, times are
microseconds since the epoch, and no number is negative. Frames run from the innermost call outwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from oomscope.frozen import frozen
from oomscope.model.recorded_holders import RecordedHolder, RecordedTensor, RecordedWalk
from oomscope.model.recorded_machine import RecordedDevice, RecordedPool, RecordedRequest, RecordedSelf
from oomscope.model.recorded_stacks import RecordedAutograd, RecordedSource, RecordedStacks
from oomscope.model.recorded_unread import RecordedUnread


@frozen
class RecordedHistory:
    """How torch was told to record.

    Attributes:
        started_us: when.
        max_entries: the bound of the trace.
        stacks, context, history: as `torch.cuda.memory._record_memory_history` takes them.
        joined: whether someone else had begun to record, whose settings are then unknown.
        observer: whether the observer of OOMs could be attached.
        ooms: how many OOMs were seen up to this dump.
        asked: what torch was asked for beyond that, by the names of its arguments: ``compile_context``.
    """

    started_us: int | None = None
    max_entries: int | None = None
    stacks: str | None = None
    context: str | None = None
    history: str | None = None
    joined: bool | None = None
    observer: bool | None = None
    ooms: int | None = None
    asked: tuple[str, ...] = ()


@frozen
class RecordedStep:
    """One step of the program; `end_us` is None while it is underway. Byte counts are one for each device.

    `count` is how many steps that followed each other it stands for.
    """

    name: str
    begin_us: int
    end_us: int | None = None
    peak_allocated: tuple[int | None, ...] = ()
    peak_reserved: tuple[int | None, ...] = ()
    allocated: tuple[int | None, ...] = ()
    reserved: tuple[int | None, ...] = ()
    retries: int | None = None
    shape: Mapping[str, Any] = field(default_factory=dict)
    count: int = 1


@frozen
class RecordedMark:
    """A moment that the program gave a name."""

    name: str
    time_us: int


@frozen
class RecordedContext:
    """The dump's own key. An empty one stands for a snapshot that oomscope did not record.

    Attributes:
        is_there: whether the snapshot has the key.
        steps: the last ones, each for itself; the last may be underway.
        steps_before: those before them, several in each.
        tells_unread: whether the recorder looked for what `unread` lists, as older ones did not.
        device_type: what torch calls the devices: ``cuda``, ``xpu``, ``mps``, ``mtia``.
        pools: the program's own pools.
        pinned_stats: ``torch.cuda.host_memory_stats()``: figures of pinned host memory.
        malformed: how many values were left out because they were not what they have to be.
    """

    is_there: bool = False
    schema_version: int | None = None
    version: str | None = None
    created: str | None = None
    reason: str | None = None
    captured_at: str | None = None
    exception_type: str | None = None
    exception_message: str | None = None
    request: RecordedRequest = field(default_factory=RecordedRequest)
    devices: tuple[RecordedDevice, ...] = ()
    torch: str | None = None
    cuda: str | None = None
    driver: str | None = None
    python: str | None = None
    platform: str | None = None
    allocator_backend: str | None = None
    allocator_conf: str | None = None
    process: RecordedSelf = field(default_factory=RecordedSelf)
    stacks: RecordedStacks = field(default_factory=RecordedStacks)
    autograd: RecordedAutograd = field(default_factory=RecordedAutograd)
    recording: RecordedHistory = field(default_factory=RecordedHistory)
    steps: tuple[RecordedStep, ...] = ()
    steps_before: tuple[RecordedStep, ...] = ()
    marks: tuple[RecordedMark, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tensors: tuple[RecordedTensor, ...] = ()
    holders: tuple[RecordedHolder, ...] = ()
    unread: tuple[RecordedUnread, ...] = ()
    tells_unread: bool = False
    walk: RecordedWalk = field(default_factory=RecordedWalk)
    sources: tuple[RecordedSource, ...] = ()
    failures: tuple[str, ...] = ()
    device_type: str | None = None
    pools: tuple[RecordedPool, ...] = ()
    pinned_stats: Mapping[str, int] = field(default_factory=dict)
    malformed: int = 0

    def device(self, index: int) -> RecordedDevice:
        """What was recorded about the device with CUDA index `index`; an empty record where nothing was."""
        return next((device for device in self.devices if device.index == index), RecordedDevice(index))

    def tensors_on(self, index: int) -> tuple[RecordedTensor, ...]:
        """The storages on one device, in the order of the dump."""
        return tuple(tensor for tensor in self.tensors if tensor.device == index)

    def holders_on(self, index: int) -> tuple[RecordedHolder, ...]:
        """Who keeps memory of one device alive, in the order of the dump."""
        return tuple(holder for holder in self.holders if holder.device == index)

    def pool_name(self, pool: tuple[int, int]) -> str | None:
        """What the program calls the memory pool `pool`; None where the recording does not know."""
        return next((one.name for one in self.pools if one.pool == pool), None)

    def pool_kind(self, pool: tuple[int, int]) -> str:
        """Whose the private pool `pool` is: ``graph`` or ``mempool``.

        torch numbers what a capture makes for itself (n, 0), and what the program asks for (0, n): a `MemPool`, but
        also a handle that graphs share.
        """
        told = next((one.kind for one in self.pools if one.pool == pool), None)
        if told in ("graph", "mempool"):
            return told
        shared = "CUDAGraph" in (self.pool_name(pool) or "").partition(".")[0]
        return "graph" if pool[0] or shared else "mempool"
