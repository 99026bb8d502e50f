"""What a recording by oomscope adds to a snapshot: the dump's own ``oomscope`` key, typed.

Everything in it may be missing: an unknown number or text is None, an unknown list is empty. Sizes are bytes, times are
microseconds since the epoch, and no number is negative. Frames run from the innermost call outwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from oomscope.model.recorded_unread import RecordedUnread
from oomscope.model.stacks import Frame
from oomscope.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """The request that failed, as torch told the observer of OOMs: its four numbers."""

    device: int | None = None
    alloc_size: int | None = None
    limit_or_total: int | None = None
    device_free: int | None = None


@dataclass(frozen=True, slots=True)
class RecordedProcess:
    """A process that uses a device.

    Attributes:
        pid: as the recording process saw it; in a container the others may have numbers of the host.
        bytes: what it uses of the device.
        name: its program.
        this: whether it is the recording process itself; None where that cannot be told.
    """

    pid: int | None = None
    bytes: int | None = None
    name: str | None = None
    this: bool | None = None


@dataclass(frozen=True, slots=True)
class RecordedDevice:
    """One device at the moment of the dump.

    Attributes:
        index: its CUDA index.
        name, uuid: of the card.
        total, free: bytes of the card, for all processes together.
        cap: bytes that this process may reserve; None where no cap is set.
        memory_stats: ``torch.cuda.memory_stats()``.
        processes: what NVML lists, in its order.
    """

    index: int | None = None
    name: str | None = None
    uuid: str | None = None
    total: int | None = None
    free: int | None = None
    cap: int | None = None
    memory_stats: Mapping[str, int] = field(default_factory=dict)
    processes: tuple[RecordedProcess, ...] = ()

    @property
    def allocated(self) -> int | None:
        """Bytes that tensors took, as torch counted them."""
        return self.memory_stats.get("allocated_bytes.all.current")

    @property
    def reserved(self) -> int | None:
        """Bytes that torch held of the device, as it counted them."""
        return self.memory_stats.get("reserved_bytes.all.current")

    def other_processes(self) -> tuple[RecordedProcess, ...]:
        """The processes that certainly are not the recording one.

        Recordings made in a container by older versions of oomscope call their own process another one: where no
        process is said to be this one, those that use at least what this one has reserved are left out.
        """
        if any(process.this for process in self.processes):
            return tuple(process for process in self.processes if process.this is False)
        reserved = self.memory_stats.get("reserved_bytes.all.current", 0)
        return tuple(
            process
            for process in self.processes
            if process.this is False and process.bytes is not None and process.bytes < reserved
        )


@dataclass(frozen=True, slots=True)
class RecordedSelf:
    """The recording process: where it ran and what was run."""

    host: str | None = None
    pid: int | None = None
    argv: tuple[str, ...] = ()
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordedThread:
    """One thread's Python stack at the moment of the dump.

    Attributes:
        name: as `threading` calls it.
        frames: innermost first, without the recorder's own.
        failing: whether the request failed in this thread.
        main: whether it is the main thread.
    """

    name: str | None = None
    frames: tuple[Frame, ...] = ()
    failing: bool = False
    main: bool = False


@dataclass(frozen=True, slots=True)
class RecordedStacks:
    """Python stacks at the moment of the dump.

    Attributes:
        failing: of the thread in which the request failed; empty in one of autograd's own.
        main: of the main thread, where that is another one.
        backward: of the thread that called ``backward``, where the request failed in one of autograd's own.
        threads: of every Python thread, the failing one first.
        threads_left_out: how many more threads there were.
    """

    failing: tuple[Frame, ...] = ()
    main: tuple[Frame, ...] = ()
    backward: tuple[Frame, ...] = ()
    threads: tuple[RecordedThread, ...] = ()
    threads_left_out: int = 0


@dataclass(frozen=True, slots=True)
class RecordedAutograd:
    """The node of the autograd graph that backward was in when the request failed.

    Attributes:
        node: its type, such as ``MmBackward0``; None outside backward.
        gradients_of: names of the parameters whose gradients come straight out of it.
        forward: the stack that made it, which only anomaly mode keeps.
    """

    node: str | None = None
    gradients_of: tuple[str, ...] = ()
    forward: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class RecordedPool:
    """A memory pool of the program that was alive at the moment of the dump: a `MemPool` or a CUDA graph's.

    Attributes:
        pool: torch's id.
        name: the way to it from what a person knows, such as ``serve: kv_pool``.
        kind: ``mempool``; or ``graph`` where nothing but CUDA graphs holds it. None: the recording does not tell.
    """

    pool: tuple[int, int]
    name: str | None = None
    kind: str | None = None


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class RecordedMark:
    """A moment that the program gave a name."""

    name: str
    time_us: int


@dataclass(frozen=True, slots=True)
class RecordedTensor:
    """A storage that Python could see.

    Attributes:
        device: CUDA index.
        address: where the storage begins.
        bytes: of the storage.
        dtype, shape: of one tensor on it; `shape` is None where several share it.
        category: as the report's categories; ``unknown`` where the recording could not tell.
        name: of a module's or an optimizer's own tensor.
        saved_for: the node of the autograd graph that saved it, such as ``ReluBackward0 (result)``.
        unread: the variable that alone keeps it and that no running code reads again, as in `RecordedUnread`.
        holders: ways to it from what a person knows.
    """

    device: int | None
    address: int | None
    bytes: int | None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    category: str | None = None
    name: str | None = None
    saved_for: str | None = None
    unread: str | None = None
    holders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedHolder:
    """A Python object that keeps memory alive.

    Attributes:
        holder: the way to it from what a person knows, such as ``train: total_loss``.
        kind: what it is: see `oomscope.recording.census.kinds`.
        device: CUDA index.
        bytes: all that it reaches.
        retained: what would come free with it alone.
        tensors: how many storages it retains.
        nodes: how many nodes of the autograd graph it retains.
        count: how many objects are told by this row.
        path: ways to some of what it retains, largest first.
        length: the number of items of the collections in this row.
        maxlen: of a deque that drops its oldest items, or that a bounded `queue.Queue` fills.
        place: what the way to it begins with: ``global``, ``local``, ``class``, ``closure``, ``exception``,
            ``suspended`` (a generator or coroutine that will go on), ``deferred`` (a call that waits for its time) or
            ``cycle``.
        finished: whether the program has finished with what it keeps: calls that have ended, or a cycle that is
            garbage for certain. False where that is not so or not proven, None where it was not looked at.
        at: the innermost code on the way to it: a closure's function, a suspended or ended call, else the running
            function or module whose variable it is, each with the line that it is at.
        stores: where methods of its class fill it, where it is an attribute; empty where it is none or that is unknown.
    """

    holder: str | None = None
    kind: str | None = None
    device: int | None = None
    bytes: int | None = None
    retained: int | None = None
    tensors: int | None = None
    nodes: int | None = None
    count: int | None = None
    path: tuple[str, ...] = ()
    length: int | None = None
    maxlen: int | None = None
    place: str | None = None
    finished: bool | None = None
    at: Frame | None = None
    stores: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedWalk:
    """How the walk for names and holders went.

    Attributes:
        seconds: how long it took.
        complete: whether it came to its end.
        objects, tensors, nodes: how many it saw: of Python's, on the device, of the autograd graph.
        notes: what it had to leave out, as text.
        left_out_tensors, left_out_bytes: the smallest storages, of which only the sum is told.
    """

    seconds: float | None = None
    complete: bool | None = None
    objects: int | None = None
    tensors: int | None = None
    nodes: int | None = None
    notes: tuple[str, ...] = ()
    left_out_tensors: int = 0
    left_out_bytes: int = 0


@dataclass(frozen=True, slots=True)
class RecordedSource:
    """A line of source with its neighbours.

    Attributes:
        filename, line: as frames have them; lines count from 1.
        first: the number of the first line of `text`.
        text: consecutive lines without their ends, `line` among them.
    """

    filename: str
    line: int
    first: int
    text: tuple[str, ...]


@dataclass(frozen=True, slots=True)
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
    request: RecordedRequest = RecordedRequest()
    devices: tuple[RecordedDevice, ...] = ()
    torch: str | None = None
    cuda: str | None = None
    driver: str | None = None
    python: str | None = None
    platform: str | None = None
    allocator_backend: str | None = None
    allocator_conf: str | None = None
    process: RecordedSelf = RecordedSelf()
    stacks: RecordedStacks = RecordedStacks()
    autograd: RecordedAutograd = RecordedAutograd()
    recording: RecordedHistory = RecordedHistory()
    steps: tuple[RecordedStep, ...] = ()
    steps_before: tuple[RecordedStep, ...] = ()
    marks: tuple[RecordedMark, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tensors: tuple[RecordedTensor, ...] = ()
    holders: tuple[RecordedHolder, ...] = ()
    unread: tuple[RecordedUnread, ...] = ()
    tells_unread: bool = False
    walk: RecordedWalk = RecordedWalk()
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
