"""How memory lies, as records: usage, fragmentation, pins, and what was free for a request.

Bytes are integers; None is unknown, never 0.
"""

from __future__ import annotations

from oomscope.analysis.records import Location
from oomscope.frozen import frozen
from oomscope.model import Note, PoolId


@frozen
class Totals:
    """Reserved, allocated and active bytes at one instant."""

    reserved: int
    allocated: int
    active: int


@frozen
class Usage:
    """The end of the snapshot, as `torch.cuda.memory_stats()` counts it."""

    reserved: int
    allocated: int
    active: int
    requested: int | None
    inactive: int
    pending_free: int


@frozen
class Peak:
    """The most that was allocated, active and reserved in the recorded window, and the entries where it was reached."""

    allocated: int
    active: int
    reserved: int
    allocated_entry: int
    reserved_entry: int


@frozen
class Reconciliation:
    """What does not add up.

    Attributes:
        unaccounted_bytes: what the trace and the final segments say differently.
        uncertain_bytes: by how much the allocated curve may be too low before the end.
        notes: the same in words.
        replay_agrees: whether a replay under the recorded setting gives every recorded address. Where it does not,
            blocks may have been rounded in another way than is known here, and no figure but the end's is exact. None:
            not tried.
    """

    unaccounted_bytes: int
    uncertain_bytes: int = 0
    notes: tuple[Note, ...] = ()
    replay_agrees: bool | None = None


@frozen
class PoolUse:
    """One kind of free list: pool × stream × size class."""

    pool: PoolId
    stream: int
    segment_type: str
    """``large`` or ``small``."""
    is_expandable: bool
    segments: int
    reserved: int
    active: int
    inactive: int
    largest_inactive: int
    releasable: int
    walled: int
    stranded: int


@frozen
class Fragmentation:
    """Free bytes and why they are free, at the instant of attribution. releasable + walled + stranded = inactive."""

    inactive: int
    largest_inactive: int
    rounding: int | None
    unsplit: int | None
    releasable: int
    walled: int
    stranded: int
    holes: int
    """How many inactive blocks there are."""
    by_pool: tuple[PoolUse, ...]


@frozen
class Pin:
    """A site whose live blocks keep free bytes from being released."""

    site: Location | None
    caller: Location | None
    label: str | None
    live_bytes: int
    blocks: int
    stranded_bytes: int
    """Stranded bytes in segments that hold at least one of its blocks; sites may share a segment."""
    alone_bytes: int
    """Stranded bytes in segments that nothing but its blocks keeps: what its move alone would free."""
    together_bytes: int
    """What the moves of this one and of all before it would free together: the fewest sites for the most bytes."""
    segments: int
    smallest: int
    largest: int
    oldest_entry: int


@frozen
class FreeForRequest:
    """The free bytes of the device at the instant of an OOM, by what they were worth to the failed request."""

    usable: int
    """Inactive bytes where the request may look: same pool, stream and size class."""
    largest: int
    """The largest piece of those; with expandable segments, with the pages that could still be mapped behind it."""
    releasable: int
    walled: int
    stranded: int
    other_streams: int
    other_class: int
    """In the other size class (small against large) of the same pool."""
    pending: int
    walled_piece: int = 0
    """The largest piece that the request could have had without walls: a hole of its size class in a private pool, or
    all that could then be released, with what the limit still left."""
    other_streams_piece: int = 0
    """The largest piece of `other_streams` in its size class."""
