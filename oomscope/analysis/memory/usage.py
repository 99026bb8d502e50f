"""How much is in use: at the end, at any entry, and at most."""

from __future__ import annotations

from oomscope.analysis.memory.records import Peak, Reconciliation, Totals, Usage
from oomscope.history import BEFORE, DeviceHistory
from oomscope.model import BlockState, Layout, note


def usage(layout: Layout) -> Usage:
    """The counters of `torch.cuda.memory_stats()` for `layout`."""
    blocks = layout.blocks
    requested = blocks.requested_size[blocks.is_active]
    reserved, allocated, active = layout.reserved, layout.allocated, layout.active
    return Usage(
        reserved=reserved,
        allocated=allocated,
        active=active,
        requested=None if (requested < 0).any() else int(requested.sum()),
        inactive=int(blocks.size[blocks.state == BlockState.INACTIVE].sum()),
        pending_free=active - allocated,
    )


def totals_at(history: DeviceHistory, entry: int) -> Totals:
    """Reserved, allocated and active bytes once `entry` has happened.

    Where the trace contradicts the final segments, reserved bytes may come out below 0: `reconcile` says so, and they
    are 0 here.
    """
    allocated, active, reserved = history.curves.at(entry)
    return Totals(reserved=max(reserved, 0), allocated=allocated, active=active)


def peak(history: DeviceHistory) -> Peak | None:
    """The most in the recorded window, and where it was first reached; None without a timeline."""
    if not history.moves:
        return None
    curves = history.curves
    at_allocated, at_reserved = int(curves.allocated.argmax()), int(curves.reserved.argmax())
    return Peak(
        allocated=int(curves.allocated[at_allocated]),
        active=int(curves.active.max()),
        reserved=int(curves.reserved[at_reserved]),
        allocated_entry=at_allocated + BEFORE,
        reserved_entry=at_reserved + BEFORE,
    )


def reconcile(history: DeviceHistory, replay_agrees: bool | None = None) -> Reconciliation:
    """What the trace and the final segments say differently, in bytes and as notes.

    Args:
        history: of the device.
        replay_agrees: as a replay of it found.
    """
    curves, notes = history.curves, []
    unaccounted = history.missing_bytes
    if unaccounted:
        notes.append(note("reconciliation.missing", bytes=unaccounted))
    for name in ("allocated", "active", "reserved"):
        least = int(getattr(curves, name).min())
        if least < 0:
            unaccounted = max(unaccounted, -least)
            notes.append(note("reconciliation.below_zero", curve=name, bytes=-least))
    above = max(int((curves.allocated - curves.active).max()), int((curves.active - curves.reserved).max()))
    if above > 0:
        unaccounted = max(unaccounted, above)
        notes.append(note("reconciliation.above_segments", bytes=above))
    if history.overlapping:
        notes.append(note("reconciliation.overlapping", count=history.overlapping))
    if history.strangers:
        notes.append(note("reconciliation.outside_segments", count=history.strangers))
    uncertain = int(history.slack.sum())
    if uncertain:
        notes.append(note("reconciliation.uncertain_sizes", count=int((history.slack > 0).sum()), bytes=uncertain))
    return Reconciliation(unaccounted, uncertain, tuple(notes), replay_agrees)
