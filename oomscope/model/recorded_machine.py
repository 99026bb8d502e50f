"""What a recording tells of devices and processes at the moment of the dump, and of the request that failed.

`oomscope.model.recorded` says what holds for all its records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from oomscope.frozen import frozen


@frozen
class RecordedRequest:
    """The request that failed, as torch told the observer of OOMs: its four numbers."""

    device: int | None = None
    alloc_size: int | None = None
    limit_or_total: int | None = None
    device_free: int | None = None


@frozen
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


@frozen
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


@frozen
class RecordedSelf:
    """The recording process: where it ran and what was run."""

    host: str | None = None
    pid: int | None = None
    argv: tuple[str, ...] = ()
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


@frozen
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
