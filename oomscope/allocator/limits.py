"""What a process may reserve."""

from __future__ import annotations

from oomscope.frozen import frozen
from oomscope.units import TIB


@frozen
class Limit:
    """What bounds the memory of a replay. Bytes; None: unbounded.

    Attributes:
        cap: what `torch.cuda.set_per_process_memory_fraction` allows. A request fails when it alone, as a whole,
            would go beyond; garbage collection works only under a cap.
        capacity: what the device can give to this allocator. A cudaMalloc, or the mapping of a page, fails beyond it.
        device_total: the memory of the device, where known.
    """

    cap: int | None = None
    capacity: int | None = None
    device_total: int | None = None

    @property
    def bytes(self) -> int | None:
        """The bound that is met first."""
        return min((bound for bound in (self.cap, self.capacity) if bound is not None), default=None)

    @property
    def address_space(self) -> int:
        """Bytes of addresses that an expandable segment reserves: 1 1/8 of the device.

        Of an unknown device, more than any has: the range is only ever too small where a replay needs a second one.
        """
        total = self.device_total or self.capacity or TIB
        return total + total // 8


NO_LIMIT = Limit()
