"""The history of one device, complete."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oomscope.allocator import AllocatorConfig
from oomscope.frozen import frozen
from oomscope.history.backend import expands, find_alignment, find_padding
from oomscope.history.bridge import bridged
from oomscope.history.curves import Curves, draw
from oomscope.history.layouts import layout_at
from oomscope.history.lifetimes import Lifetimes, pair
from oomscope.history.sizes import block_sizes
from oomscope.history.spans import Spans, find_spans, locate
from oomscope.model import Action, Device, IntArray, Layout, Snapshot, Trace


@frozen(eq=False)
class DeviceHistory:
    """What happened on one device.

    Attributes:
        index: CUDA index of the device.
        trace: its entries.
        layout: its final segments and blocks.
        config: the settings that it was recorded under.
        lifetimes: every allocation.
        size: int64[lifetimes], bytes of each block.
        slack: int64[lifetimes], by how much a block may be larger than `size`; 0 where `size` is exact.
        spans: every segment and mapped piece.
        span: int64[lifetimes], the row of `spans` that holds the block; -1 unknown.
        curves: allocated, active and reserved bytes over time.
        missing_bytes: bytes of blocks that the trace leaves live and the final segments do not hold.
        overlapping: allocations that began before the one at the same address had ended.
        strangers: allocations in no known segment.
        bridge: how many entries at the end are not the file's: see `bridge.py`. 0 unless the file was cut off.
    """

    index: int
    trace: Trace
    layout: Layout
    config: AllocatorConfig
    lifetimes: Lifetimes
    size: IntArray
    slack: IntArray
    spans: Spans
    span: IntArray
    curves: Curves
    missing_bytes: int
    overlapping: int
    strangers: int
    bridge: int

    @property
    def entries(self) -> int:
        """How many trace entries there are, those of the bridge among them."""
        return len(self.trace)

    @property
    def recorded(self) -> int:
        """How many of them the file has."""
        return self.entries - self.bridge

    @property
    def moves(self) -> bool:
        """Whether the trace shows a course of events: ``enabled="state"`` keeps only the last entry."""
        return self.entries > 1

    def layout_at(self, entry: int) -> Layout:
        """Segments and blocks once `entry` has happened; the final ones for the last entry that changes anything."""
        if np.all(self.trace.action[entry + 1 :] >= Action.SNAPSHOT):
            return self.layout
        return layout_at(entry, self.lifetimes, self.size, self.spans)


def device_history(device: Device, config: AllocatorConfig) -> DeviceHistory:
    """Rebuild what happened on `device`, recorded under `config`."""
    layout = device.layout
    trace, bridge = bridged(device)
    stream = layout.segments.stream[layout.blocks.segment]
    pairing = pair(trace, layout.blocks, stream)
    lifetimes = pairing.lifetimes
    spans = find_spans(trace, layout)
    span = locate(spans, lifetimes.address, lifetimes.born)
    is_whole = not pairing.overlapping and not len(pairing.missing)
    size, slack = block_sizes(lifetimes, spans, span, layout.blocks, config, is_whole=is_whole)
    return DeviceHistory(
        index=device.index,
        trace=trace,
        layout=layout,
        config=config,
        lifetimes=lifetimes,
        size=size,
        slack=slack,
        spans=spans,
        span=span,
        curves=draw(trace, layout, lifetimes, size),
        missing_bytes=int(size[pairing.missing].sum()),
        overlapping=pairing.overlapping,
        strangers=int(np.count_nonzero(span < 0)),
        bridge=bridge,
    )


def recorded_config(snapshot: Snapshot, device: Device | None = None, *, padding: int | None = None) -> AllocatorConfig:
    """The settings that `device` of `snapshot` was recorded under, as far as it says.

    Args:
        snapshot: the snapshot.
        device: one of its devices; None: the first.
        padding: as `find_padding` gives it, where that is known already.
    """
    device = device or next(iter(snapshot.devices), None)
    settings = snapshot.settings
    said = settings.get("expandable_segments") if settings is not None else None
    expandable = device is not None and expands(device, None if said is None else bool(said))
    config = AllocatorConfig.from_settings(settings, expandable=expandable)
    padding = find_padding(snapshot) if padding is None else padding
    alignment = find_alignment(device) if padding and device is not None else 0
    return replace(config, expandable_segments=expandable, padding=padding, base_alignment=alignment)
