"""The figures of a message of a caching allocator, and what follows from them by subtraction."""

from __future__ import annotations

from oomscope.frozen import frozen
from oomscope.messages.figures import Figure
from oomscope.messages.records import OomMessage
from oomscope.units import MIB

NOTABLE = 1 << 30
"""A CUDA context and its libraries seldom hold more: from here on, what is outside PyTorch is worth a word."""
OF_A_SMALL_CARD = 4
"""So is a fourth of the card."""

_ASKED_FOR = {2 * MIB: (1, MIB), 20 * MIB: (MIB + 1, 20 * MIB)}
"""By what is printed, what the tensor itself may have: messages print the segment that is asked of the driver.

That is 2 MiB for a tensor of up to 1 MiB, 20 MiB for one of up to 10 MiB, and a multiple of 2 MiB for larger ones:
``get_allocation_size`` in c10/cuda/CUDACachingAllocator.cpp.
"""
_WITH_SEGMENTS = ("torch-cuda", "torch-hip", "torch-xpu", "torch-npu")


@frozen
class Sizes:
    """The figures of a message, None where they are not printed."""

    requested: Figure | None
    total: Figure | None
    free: Figure | None
    allocated: Figure | None
    reserved: Figure | None
    process: Figure | None
    others: Figure | None
    allowed: Figure | None
    pools: Figure | None
    inside: Figure | None
    tensor: Figure | None

    @property
    def limit(self) -> Figure | None:
        """What this process may hold at most: the cap, or else the card."""
        return self.allowed or self.total

    @property
    def outside(self) -> Figure | None:
        """What of the card this process does not hold, or as far as is printed its allocator, and which is not free."""
        mine = self.process or self.reserved or self.allocated
        return self.total - self.free - mine if self.total and self.free and mine else None

    @property
    def spilled(self) -> Figure | None:
        """What the allocator holds, where it is more than the card has."""
        held = self.reserved if self.reserved is not None else self.allocated
        return held if held is not None and self.total is not None and held.exceeds(self.total) else None


def sizes_of(message: OomMessage) -> Sizes:
    """The figures of `message`, and what lay free inside PyTorch, where that follows."""
    allocated, reserved = message.figure("allocated"), message.figure("reserved")
    inside = message.reading.values.get("unallocated")
    if inside is None and allocated is not None and reserved is not None:
        inside = reserved - allocated
    process, others = message.figure("process_in_use"), message.figure("others_in_use")
    if process is not None and reserved is not None and reserved.exceeds(process):
        process = None  # in some containers the driver does not tell a process of itself: "this process has 0 bytes"
        others = others if others and others.value else None
    requested, total, free = message.figure("requested"), message.figure("total"), message.figure("free")
    if contradicts_itself(message):
        total = free = None
    return Sizes(
        requested, total, free, allocated, reserved,
        process, others, message.figure("allowed"),
        message.figure("private_pools"), inside, _of_tensor(message, requested),
    )  # fmt: skip


def contradicts_itself(message: OomMessage) -> bool:
    """Whether more is free than there is, as drivers for memory that is shared with the processor may have it."""
    total, free = message.figure("total"), message.figure("free")
    return total is not None and free is not None and free.exceeds(total)


def _of_tensor(message: OomMessage, request: Figure | None) -> Figure | None:
    """What the tensor may have for which `request` was printed: itself, but for sizes of small segments."""
    if request is None or message.kind not in _WITH_SEGMENTS or message.reading.wording != "torch.tried":
        return request
    low, high = _ASKED_FOR.get(request.value, (0, 0))
    return Figure(request.point, low, high) if high else request


def is_notable(rest: Figure, sizes: Sizes) -> bool:
    """Whether `rest` is more than what a context and libraries of a process seldom exceed."""
    return sizes.total is not None and rest.low >= min(NOTABLE, sizes.total.value // OF_A_SMALL_CARD)
