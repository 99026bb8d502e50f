"""Which device the allocator served, and how it rounds, told from the snapshot itself.

No snapshot names its backend. torch_npu's allocator (Ascend) is CUDA's but for one rule: it adds 32 bytes to every
request before it rounds it. So a request that these 32 bytes lift over a multiple of 512 tells the two apart, where its
block's size is exact or another block follows it at once.
"""

from __future__ import annotations

import numpy as np

from oomscope.allocator import AllocatorConfig, round_sizes
from oomscope.allocator.config import ASCEND_ALIGNMENT, ASCEND_PADDING
from oomscope.allocator.rounding import ROUND_LARGE
from oomscope.model import Action, Device, Layout, Snapshot, Trace, package_path

CUDA, NPU, XPU = "cuda", "npu", "xpu"
"""torch's names of device types; ROCm calls its devices ``cuda``, too."""

_PACKAGES = {"torch_npu/": NPU, "torch/npu/": NPU, "torch/xpu/": XPU}
"""Files that only run for one type of device."""
_RECORDED = (XPU, "mtia")
"""Of what a recording says of itself: other makers' backends call themselves CUDA."""
_PLAIN, _PADDED = AllocatorConfig(), AllocatorConfig(padding=ASCEND_PADDING)
_MOST_ENTRIES = 20_000
"""Of a trace are looked at; each is a step in Python, and neighbours are many."""
_LEAST_NEIGHBOURS = 4
"""A block may lie 512 bytes behind another by chance; that all do so, and several, is none."""


def device_kind(snapshot: Snapshot, padding: int | None = None) -> str:
    """``cuda``, ``npu``, ``xpu`` or ``mtia``: what torch calls the devices; ``cuda`` where nothing tells.

    Args:
        snapshot: of the devices.
        padding: what `find_padding` says of it, where that is known.
    """
    for frame in snapshot.stacks.frames:
        path = package_path(frame.filename) or ""
        found = next((kind for package, kind in _PACKAGES.items() if path.startswith(package)), None)
        if found is not None:
            return found
    if find_padding(snapshot) if padding is None else padding:
        return NPU
    recorded = snapshot.recorded.device_type
    return recorded if recorded in _RECORDED else CUDA


def find_padding(snapshot: Snapshot) -> int:
    """The bytes that the allocator of `snapshot` added to every request: 0, or `ASCEND_PADDING`.

    Where requests were rounded to divisions of powers of two, blocks are larger for that reason, and tell nothing.
    """
    if any(AllocatorConfig.from_settings(snapshot.settings).roundup_power2_divisions):
        return 0
    plain = padded = 0
    for device in snapshot.devices:
        with_one, with_other = _by_blocks(device.layout)
        plain, padded = plain + with_one, padded + with_other
    if plain or padded:
        return ASCEND_PADDING if padded > plain else 0
    neighbours = [_padded_neighbours(device.trace) for device in snapshot.devices]
    known = [count for count in neighbours if count is not None]
    return ASCEND_PADDING if known == neighbours and sum(known) >= _LEAST_NEIGHBOURS else 0


def expands(device: Device, settings_say: bool | None) -> bool:
    """Whether the segments of `device` are expandable: as the settings say, else as its own trace and segments show.

    Settings are those of the end. Where they say no and all that was obtained was mapped, they were changed.
    """
    trace, segments = device.trace, device.layout.segments
    mapped = bool(segments.is_expandable.any()) or len(trace.entries(Action.SEGMENT_MAP)) > 0
    ordinary = bool((~segments.is_expandable).any()) or len(trace.entries(Action.SEGMENT_ALLOC)) > 0
    if settings_say is None:
        return mapped
    return settings_say or (mapped and not ordinary)


def find_alignment(device: Device) -> int:
    """What a padding allocator aligns large blocks of `device` to in expandable segments: 0, or `ASCEND_ALIGNMENT`.

    Padded blocks are no multiples of it, so that without the rule hardly any would begin at one by chance.
    """
    trace = device.trace
    large = trace.entries(Action.ALLOC)
    address = trace.address[large[trace.size[large] >= ROUND_LARGE]]
    if not len(address) or not len(trace.entries(Action.SEGMENT_MAP)):
        return ASCEND_ALIGNMENT
    return ASCEND_ALIGNMENT if 2 * np.count_nonzero(address % ASCEND_ALIGNMENT == 0) > len(address) else 0


def _by_blocks(layout: Layout) -> tuple[int, int]:
    """How many live blocks are of the size that plain rounding, and that padded rounding alone gives."""
    blocks, segments = layout.blocks, layout.segments
    exact = ~segments.is_large | segments.is_expandable
    rows = np.flatnonzero(blocks.is_active & (blocks.requested_size > 0) & exact[blocks.segment])
    size, requested = blocks.size[rows], blocks.requested_size[rows]
    plain, padded = round_sizes(requested, _PLAIN), round_sizes(requested, _PADDED)
    return int(((size == plain) & (size != padded)).sum()), int(((size == padded) & (size != plain)).sum())


def _padded_neighbours(trace: Trace) -> int | None:
    """How many blocks begin where only padded rounding lets the one before them end.

    None as soon as one begins where plain rounding lets it end: of CUDA's millions, one of the first.
    """
    live: set[int] = set()
    ends: dict[int, tuple[int, int]] = {}  # of live blocks that tell: both ends
    begins: tuple[dict[int, int], dict[int, int]] = ({}, {})
    padded_neighbours = 0
    entries = trace.entries(Action.ALLOC, Action.FREE_COMPLETED)[:_MOST_ENTRIES]
    actions, addresses, sizes = trace.action[entries], trace.address[entries], trace.size[entries]
    rounded = round_sizes(sizes, _PLAIN).tolist(), round_sizes(sizes, _PADDED).tolist()
    for action, address, plain, padded in zip(actions.tolist(), addresses.tolist(), *rounded, strict=True):
        if action != Action.ALLOC:
            live.discard(address)
            for which, end in enumerate(ends.pop(address, ())):
                begins[which].pop(end, None)
            continue
        live.add(address)
        if address in begins[0]:
            return None
        padded_neighbours += address in begins[1]
        if plain != padded:
            ends[address] = (address + plain, address + padded)
            if ends[address][0] in live:
                return None
            padded_neighbours += ends[address][1] in live
            for which, end in enumerate(ends[address]):
                begins[which][end] = address
    return padded_neighbours
