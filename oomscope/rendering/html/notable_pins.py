"""The sites that keep free memory from being released, without those that keep next to nothing."""

from __future__ import annotations

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.memory.records import Pin

LEAST = 50
"""One in so many reserved bytes, stranded beside the blocks of a site, is worth a row."""
MOST = 6


def notable_pins(device: DeviceFindings) -> tuple[Pin, ...]:
    """The pins that matter, in the order of the findings."""
    return tuple(pin for pin in device.pins if pin.stranded_bytes * LEAST >= device.at.reserved)[:MOST]
