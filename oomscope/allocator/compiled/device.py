"""The allocator of one device with its blocks in columns, and `malloc` and `free_block` compiled."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from oomscope.allocator.compiled import core
from oomscope.allocator.compiled.columns import ColumnBlock, ColumnPool, ColumnStreamPool, Pending, Store
from oomscope.allocator.device import DeviceCachingAllocator

if TYPE_CHECKING:
    from oomscope.allocator.addresses import Addresses
    from oomscope.allocator.block import Block, BlockPool, StreamPool
    from oomscope.allocator.config import AllocatorConfig
    from oomscope.allocator.limits import Limit


class CompiledAllocator(DeviceCachingAllocator):
    """Serves requests as `DeviceCachingAllocator` does, to the byte and the address.

    Attributes:
        store: its columns.
    """

    def __init__(
        self,
        config: AllocatorConfig,
        limit: Limit,
        addresses: Addresses | None = None,
        capturing: Collection[int] = (),
        *,
        requests: int = 0,
        noted: int = 0,
    ) -> None:
        """Begin with nothing reserved.

        Args:
            config: the settings; blocks may not need an alignment.
            limit: what may be reserved.
            addresses: where new segments lie; ascending if None.
            capturing: as for `DeviceCachingAllocator`.
            requests: how many requests the program has.
            noted: how many addresses are to be noted.
        """
        self.store = Store(requests, noted)
        super().__init__(config, limit, addresses, capturing)
        self.pending = Pending(self.store)  # type: ignore[assignment]
        self.store.state.rule[:] = (
            self.judges_blocks,
            self.collects_garbage,
            self.max_split_size,
            config.max_non_split_rounding_size,
        )

    @property
    def allocated(self) -> int:
        """Bytes of blocks in use."""
        return int(self.store.state.number[core.ALLOCATED])

    @allocated.setter
    def allocated(self, value: int) -> None:
        self.store.state.number[core.ALLOCATED] = value

    @property
    def peak_allocated(self) -> int:
        """The most so far."""
        return int(self.store.state.number[core.PEAK_ALLOCATED])

    @peak_allocated.setter
    def peak_allocated(self, value: int) -> None:
        self.store.state.number[core.PEAK_ALLOCATED] = value

    def get_pool(self, is_small: bool, stream: int, owner: int = 0) -> ColumnStreamPool:
        """The free blocks that serve small or large requests on a stream."""
        home = super().get_pool(is_small, stream, owner)
        assert isinstance(home, ColumnStreamPool)
        return home

    def _new_pool(self, is_small: bool, owner: int) -> BlockPool:
        return ColumnPool(self.store, is_small, owner, owner in self.capturing)

    def _new_home(self, pool: BlockPool, stream: int) -> StreamPool:
        assert isinstance(pool, ColumnPool)
        return ColumnStreamPool(self.store, pool, stream, *self._splitting(pool.is_small))

    def malloc(self, size: int, home: StreamPool, least_key: int | None = None) -> Block | None:  # noqa: ARG002
        """Serve a request; None when the device is out of memory."""
        assert isinstance(home, ColumnStreamPool)
        self.store.make_room(home.number)
        self.store.note_unmapped()
        found = core.find(self.store.state, size, home.number)
        return self.store.block(int(found)) if found >= 0 else self.malloc_new(size, home)

    def malloc_new(self, size: int, home: StreamPool) -> Block | None:
        """Serve a request for which there is no free block."""
        assert isinstance(home, ColumnStreamPool)
        block = self.malloc_from_device(size, home)
        if block is None:
            return None
        assert isinstance(block, ColumnBlock)
        self.store.make_room(home.number)
        return self.store.block(int(core.serve(self.store.state, block.row, size, home.number)))

    def free_block(self, block: Block) -> None:
        """Put a block back into its pool, merged with its free neighbours."""
        assert isinstance(block, ColumnBlock)
        self.store.make_room(int(self.store.state.block[block.row, core.HOME]))
        core.free_block(self.store.state, block.row)
