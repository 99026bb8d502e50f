"""What the recording could see, and how to record better."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.attribution.sites import SiteTable
from oomscope.analysis.records import RecordingQuality
from oomscope.history import BEFORE, DeviceHistory
from oomscope.model import NO_STACK, Action, Note, Snapshot, note
from oomscope.model.arrays import StackArray

_ROUND = 1000
"""Bounds that people choose (100,000, 1,000,000) are multiples of it; one run in a thousand ends on one by chance."""


_LEAST_BOUND = 128
"""Entries; nobody records so few on purpose, but a short trace is often a small power of two."""


def history_kind(snapshot: Snapshot, histories: tuple[DeviceHistory, ...]) -> str:
    """``full``, ``wrapped``, ``late``, ``state_only`` or ``none``; the least complete of all devices.

    What is there at the end without an entry was made before the trace begins. Without a stack it was made before
    anything was recorded. With one it was recorded: either the ring overwrote its entry, or recording was stopped and
    started again, which empties the trace (``late`` as well). A ring overwrites only when it is full, so it holds as
    many entries as it was made for: a round number.
    """
    moving = [history for history in histories if history.moves]
    if not moving:
        return "state_only" if len(snapshot.stacks) else "none"
    kinds = [_kind(snapshot, history) for history in moving]
    return next(kind for kind in ("wrapped", "late", "full") if kind in kinds)


def _kind(snapshot: Snapshot, history: DeviceHistory) -> str:
    lifetimes, spans = history.lifetimes, history.spans
    before, cached = lifetimes.born == BEFORE, spans.begin == BEFORE
    bound = snapshot.ring_entries or snapshot.recorded.recording.max_entries or None
    if bound is not None and history.recorded >= bound:
        return "wrapped"
    # Segments that nothing lives in tell of an earlier time as well as blocks do.
    if not before.any() and not cached.any():
        return "full"
    if bound is not None:
        return "late"
    stacks = _older_stacks(history)
    may_be_overwritten = not len(stacks) or bool((stacks != NO_STACK).any())
    return "wrapped" if may_be_overwritten and _is_bound(history.recorded) else "late"


def _older_stacks(history: DeviceHistory) -> StackArray:
    """The stacks of the blocks and segments that are there at the end and have no entry."""
    lifetimes, spans = history.lifetimes, history.spans
    blocks = (lifetimes.born == BEFORE) & (lifetimes.block >= 0)
    segments = (spans.begin == BEFORE) & (spans.end >= history.entries)
    return np.concatenate([lifetimes.stack[blocks], spans.stack[segments]])


def _is_bound(entries: int) -> bool:
    """Whether somebody may have chosen `entries` as the bound of a trace; a run seldom ends on such a number."""
    return entries >= _LEAST_BOUND and (entries % _ROUND == 0 or entries & (entries - 1) == 0)


def recording_quality(
    snapshot: Snapshot, histories: tuple[DeviceHistory, ...], sites: SiteTable, kind: str, at: dict[int, int]
) -> RecordingQuality:
    """What the snapshot can and cannot show.

    Args:
        snapshot: the snapshot.
        histories: the histories of its devices.
        sites: the sites of its stacks.
        kind: as `history_kind` gives it.
        at: for each device, the entry that the attribution is about.
    """
    stacks = "none" if not len(snapshot.stacks) else "all" if sites.has_cpp else "python"
    unattributed = sum(_without_stack(history, at[history.index]) for history in histories)
    notes = [*_about_the_past(snapshot, histories, kind), *_about_stacks(stacks, kind)]
    if kind in ("full", "wrapped", "late") and any(_skips_frees(history) for history in histories):
        notes.append(note("recording.no_completed_free"))
    if snapshot.recorded.walk.complete is False:
        notes.append(note("recording.search_cut", seconds=int(1e6 * (snapshot.recorded.walk.seconds or 0)) or None))
    return RecordingQuality(kind, stacks, unattributed, tuple(notes), snapshot.cut is not None)


def _about_the_past(snapshot: Snapshot, histories: tuple[DeviceHistory, ...], kind: str) -> list[Note]:
    if not histories:
        return [_about_nothing(snapshot)]
    if not snapshot.window:
        return [_about_history(kind, histories)]
    recorded = sum(part.entries for part in snapshot.window)
    window = note("recording.window", recorded=recorded, **_extent(histories))
    if kind == "full" or any(part.first for part in snapshot.window):
        return [window]
    # It begins where the recording does, which was not at the first allocation.
    return [window, note("recording.window_of_ring") if kind == "wrapped" else _about_history(kind, histories)]


def _about_nothing(snapshot: Snapshot) -> Note:
    """Why there is neither segment nor entry: nothing was there, or the allocator keeps no history."""
    counted = any(device.reserved for device in snapshot.recorded.devices)
    return note("recording.without_history") if counted else note("recording.empty")


def _skips_frees(history: DeviceHistory) -> bool:
    """Whether blocks are gone of which no entry says so: where all are still there, nothing was freed."""
    completed = history.trace.entries(Action.FREE_COMPLETED)
    return not len(completed) and bool((history.lifetimes.block < 0).any())


def _without_stack(history: DeviceHistory, entry: int) -> int:
    """Allocated bytes once `entry` has happened that no stack explains."""
    lifetimes = history.lifetimes
    return int(history.size[lifetimes.allocated_at(entry) & (lifetimes.stack == NO_STACK)].sum())


def _about_history(kind: str, histories: tuple[DeviceHistory, ...]) -> Note:
    window = _extent(histories)
    if kind == "full":
        return note("recording.full", **window)
    if kind == "wrapped":
        return note("recording.wrapped", **window)
    if kind == "late":
        before = sum(
            int(history.size[(history.lifetimes.born == BEFORE) & (history.lifetimes.block >= 0)].sum())
            for history in histories
        )
        if not before:
            return note("recording.late_and_freed", **window)
        if any((_older_stacks(history) != NO_STACK).any() for history in histories):
            return note("recording.restarted", before=before, **window)
        return note("recording.late", before=before, **window)
    return _without_course(histories) if kind == "state_only" else note("recording.none")


def _extent(histories: tuple[DeviceHistory, ...]) -> dict[str, int]:
    return {
        "entries": sum(history.recorded for history in histories),
        "span": max((_microseconds(history) for history in histories), default=0),
    }


def _without_course(histories: tuple[DeviceHistory, ...]) -> Note:
    """What left stacks of live blocks and no course of events.

    ``enabled="state"`` keeps a ring of one entry, and so does the legacy ``_record_memory_history(True)``, which gives
    entries no stack. A recording that is stopped empties its ring.
    """
    rings = [history for history in histories if history.entries]
    if not rings:
        return note("recording.stopped")
    framed = any(bool((history.trace.stack != NO_STACK).any()) for history in rings)
    return note("recording.state_only" if framed else "recording.ring_of_one")


def _about_stacks(stacks: str, kind: str) -> list[Note]:
    if stacks == "none" and kind != "none":
        return [note("recording.no_stacks")]
    if stacks == "python":
        return [note("recording.python_stacks_only")]
    return []


def _microseconds(history: DeviceHistory) -> int:
    trace = history.trace
    return int(np.ptp(trace.time_us)) if trace.timed and len(trace) else 0
