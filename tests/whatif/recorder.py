"""A process that does not exist: runs requests through the model, and writes the snapshot that torch would."""

from __future__ import annotations

from typing import Any

from oomscope.allocator import AllocatorConfig, round_size
from oomscope.allocator.addresses import Addresses, Ascending
from oomscope.allocator.block import Block
from oomscope.allocator.device import DeviceCachingAllocator
from oomscope.allocator.limits import Limit
from oomscope.allocator.rounding import SMALL_SIZE
from oomscope.model import Action, Snapshot
from tests import builders
from tests.allocator.states import segments

BASE = 0x7F00_0000_0000
EMPTY_CACHE = [builders.frame("empty_cache", 164, "/venv/lib/python3.12/site-packages/torch/cuda/memory.py")]

FREE = [builders.frame("__del__", 5)]


class Recorder:
    """One device under recording.

    Attributes:
        entries: the trace so far.
        live: the blocks in use, with the bytes asked for, by the name that the program gave them.
    """

    def __init__(self, conf: str = "", limit: Limit | None = None, addresses: Addresses | None = None) -> None:
        self.conf = conf
        self.config = AllocatorConfig.parse(conf)
        self.limit = limit or Limit()
        self.pools = [(0, 0), (1, 0), (2, 0)]
        self.allocator = DeviceCachingAllocator(self.config, self.limit, addresses or Ascending(BASE), {1, 2})
        self.entries: list[builders.Dict] = []
        self.live: dict[int, tuple[Block, int]] = {}
        self.waiting: dict[int, int] = {}
        self.began: dict[int, int] = {}
        self._obtained: list[tuple[int, int, int]] = []
        self._events = 0

    def malloc(self, name: int, size: int, stream: int = 0, owner: int = 0, frames: Any = None) -> bool:
        """Ask for memory; whether it was there."""
        frames = frames or [builders.frame("forward", 10 + len(self.began))]
        rounded = round_size(size, self.config)
        pending = dict(self.allocator.pending)
        block = self.allocator.malloc(rounded, self.allocator.get_pool(rounded <= SMALL_SIZE, stream, owner))
        self._note_synchronized(pending, frames)
        self._note_segments(stream, frames)
        if block is None:
            free = max((self.limit.capacity or 1 << 40) - self.allocator.reserved, 0)
            self._note("oom", free, rounded, stream, frames)
            return False
        self.live[name] = block, size
        self.began[name] = block.address
        self._note("alloc", block.address, size, stream, frames)
        return True

    def free(self, name: int, *, used_elsewhere: bool = False) -> None:
        """Give memory back; `used_elsewhere`: another stream may still use it."""
        block, size = self.live.pop(name)
        self._note("free_requested", block.address, size, block.home.stream, FREE)
        if used_elsewhere:
            self.allocator.free_requested(name, block)
            self.waiting[name] = size
            return
        self._note("free_completed", block.address, size, block.home.stream, FREE)
        self.allocator.allocated -= block.size
        self.allocator.free_block(block)

    def complete(self, name: int) -> None:
        """The other stream is done with it."""
        block = self.allocator.pending.get(name)
        if block is not None:
            self._note("free_completed", self.began[name], self.waiting.pop(name), block.home.stream)
            self.allocator.free_completed(name)

    def empty_cache(self, *, with_frames: bool = True) -> None:
        """torch.cuda.empty_cache()."""
        pending = dict(self.allocator.pending)
        self.allocator.empty_cache()
        frames = EMPTY_CACHE if with_frames else None
        self._note_synchronized(pending, frames)
        self._note_segments(0, frames)

    def forget(self) -> None:
        """Lose what was recorded so far, as a full ring does."""
        self.entries.clear()

    def snapshot(self, **top: Any) -> Snapshot:
        """What torch would dump now."""
        return builders.loaded(self.segments(), [self.entries], allocator_settings=self.settings(), **top)

    def segments(self) -> list[builders.Dict]:
        """The segments that it would list."""
        blocks = [block for block, _ in self.live.values()]
        made = [segment for chain in segments(self.allocator, blocks) for segment in self._segments(chain)]
        return sorted(made, key=lambda segment: segment["address"])

    def settings(self) -> builders.Dict:
        """The settings that it would write."""
        config = self.config
        return builders.settings(
            PYTORCH_CUDA_ALLOC_CONF=self.conf,
            max_split_size=-1 if config.max_split_size is None else config.max_split_size,
            garbage_collection_threshold=config.garbage_collection_threshold,
            expandable_segments=config.expandable_segments,
            roundup_power2_divisions={
                str(1 << power): count for power, count in enumerate(config.roundup_power2_divisions)
            },
        )

    def _segments(self, chain: list[Block]) -> list[builders.Dict]:
        """A chain of blocks as torch lists it: one segment for each run of mapped ones."""
        runs: list[list[Block]] = [[]]
        for block in chain:
            if block.mapped:
                runs[-1].append(block)
            else:
                runs.append([])
        return [
            builders.segment(
                run[0].address,
                [self._block(block) for block in run],
                stream=run[0].home.stream,
                kind="small" if run[0].home.pool.is_small else "large",
                pool=self.pools[run[0].home.pool.owner],
                expandable=run[0].segment is not None,
            )
            for run in runs
            if run
        ]

    def _block(self, block: Block) -> builders.Dict:
        for other, size in self.live.values():
            if other is block:
                return builders.block(block.size, requested=size)
        for name, other in self.allocator.pending.items():
            if other is block:
                return builders.block(block.size, "active_pending_free", requested=self.waiting[name])
        return builders.block(block.size, "inactive")

    def _note_synchronized(self, pending: dict[int, Block], frames: Any) -> None:
        for name, block in pending.items():
            if name not in self.allocator.pending:
                # Merging may have moved the beginning of the block since.
                self._note("free_completed", self.began[name], self.waiting.pop(name), block.home.stream, frames)

    def _note_segments(self, stream: int, frames: Any) -> None:
        for action, address, size in self.allocator.segment_events[self._events :]:
            if action in (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP):
                self._obtained.append((address, address + size, stream))
            self._note(action.name.lower(), address, size, self._stream_of(address), frames)
        self._events = len(self.allocator.segment_events)

    def _stream_of(self, address: int) -> int:
        return next(stream for begin, end, stream in reversed(self._obtained) if begin <= address < end)

    def _note(self, action: str, address: int, size: int, stream: int, frames: Any = None) -> None:
        self.entries.append(builders.entry(action, address, size, stream=stream, frames=frames))
