"""A toy caching allocator: the rules of torch's that a trace shows, plainly, written apart from oomscope's.

It makes legal histories and knows the truth. Segments are lists of pieces; nothing is fast and nothing is clever. What
it leaves out (settings, garbage collection, reserve limits other than one) other tests cover.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests import builders

KIB, MIB = 1 << 10, 1 << 20
FREE, USED, PENDING = "inactive", "active_allocated", "active_pending_free"


@dataclass
class Piece:
    """A block, free or not."""

    address: int
    size: int
    state: str = FREE
    requested: int = 0
    stack: int = -1


@dataclass
class Segment:
    """What was obtained at once; an expandable one grows and shrinks at its end."""

    stream: int
    small: bool
    pool: int
    expandable: bool
    pieces: list[Piece]
    stack: int

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.pieces[-1].address + self.pieces[-1].size if self.pieces else 0


@dataclass(frozen=True)
class State:
    """What is true once an entry has happened."""

    allocated: int
    active: int
    reserved: int
    blocks: dict[int, tuple[int, int, str]]
    """Size, stack and state of each block in use, by address."""

    @property
    def by_stack(self) -> Counter[int]:
        """Allocated bytes by stack."""
        found: Counter[int] = Counter()
        for size, stack, state in self.blocks.values():
            found[stack] += size if state == USED else 0
        return +found


@dataclass
class Toy:
    """One device.

    Attributes:
        stacks: the stacks that requests name by number.
        expandable: whether segments are.
        limit: the most bytes that may be reserved.
        entries, states: what was recorded, and what was true after each entry.
        before: what was true before the first of them.
        live: pieces in use, by the name that the program gave them.
    """

    stacks: list[list[builders.Dict]]
    expandable: bool = False
    limit: int = 1 << 40
    segments: list[Segment] = field(default_factory=list)
    entries: list[builders.Dict] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    live: dict[int, Piece] = field(default_factory=dict)
    pending: dict[int, Piece] = field(default_factory=dict)
    recording: bool = True
    _next: int = 0x7F00_0000_0000
    _clock: int = 0

    def __post_init__(self) -> None:
        self.before = self.state()

    def malloc(self, name: int, size: int, stream: int, pool: int, stack: int) -> bool:
        """Ask for memory; whether it was there."""
        rounded = max(-(-size // 512) * 512, 512)
        small = rounded <= MIB
        found = self._best_fit(rounded, stream, small, pool)
        if found is None:
            found = self._obtain(rounded, stream, small, pool, stack)
        if found is None:
            self._synchronize(stack)
            self._release(stack)
            found = self._obtain(rounded, stream, small, pool, stack)
        if found is None:
            self._note("oom", max(self.limit - self.state().reserved, 0), rounded, stream, stack)
            return False
        segment, piece = found
        rest = piece.size - rounded
        if rest >= 512 if segment.small or segment.expandable else rest > MIB:
            at = segment.pieces.index(piece)
            segment.pieces.insert(at + 1, Piece(piece.address + rounded, rest))
            piece.size = rounded
        piece.state, piece.requested = USED, size
        piece.stack = stack if self.recording else -1
        self.live[name] = piece
        self._note("alloc", piece.address, size, stream, stack)
        return True

    def free(self, name: int, stack: int, *, elsewhere: bool) -> None:
        """Give memory back; `elsewhere`: another stream still uses it."""
        piece = self.live.pop(name)
        piece.state = PENDING
        self._note("free_requested", piece.address, piece.requested, self._home(piece).stream, stack)
        self.pending[name] = piece
        if not elsewhere:
            self.complete(name, stack)

    def complete(self, name: int, stack: int) -> None:
        """The other stream is done."""
        piece = self.pending.pop(name)
        segment = self._home(piece)
        address, requested = piece.address, piece.requested
        piece.state, piece.stack = FREE, -1
        self._note("free_completed", address, requested, segment.stream, stack)
        merged: list[Piece] = []
        for one in segment.pieces:
            if merged and merged[-1].state == one.state == FREE:
                merged[-1].size += one.size
            else:
                merged.append(one)
        segment.pieces = merged

    def empty_cache(self, stack: int) -> None:
        """``torch.cuda.empty_cache()``."""
        self._synchronize(stack)
        self._release(stack)

    def restart(self) -> None:
        """Forget what was recorded, and go on recording."""
        self.entries.clear()
        self.states.clear()
        self.before, self.recording = self.state(), True

    def keep_last(self, count: int) -> None:
        """Lose the beginning of the trace, as a ring does that is full."""
        lost = len(self.entries) - count
        if lost > 0:
            self.before = self.states[lost - 1]
            del self.entries[:lost], self.states[:lost]

    def state(self) -> State:
        """What is true now."""
        pieces = [piece for segment in self.segments for piece in segment.pieces]
        used = {piece.address: (piece.size, piece.stack, piece.state) for piece in pieces if piece.state != FREE}
        return State(
            allocated=sum(piece.size for piece in pieces if piece.state == USED),
            active=sum(piece.size for piece in pieces if piece.state != FREE),
            reserved=sum(piece.size for piece in pieces),
            blocks=used,
        )

    def document(self) -> Any:
        """What torch would dump."""
        segments = [
            builders.segment(
                segment.pieces[0].address,
                [
                    builders.block(
                        piece.size, piece.state, requested=piece.requested, frames=self._frames(piece.stack) or ()
                    )
                    for piece in segment.pieces
                ],
                stream=segment.stream,
                kind="small" if segment.small else "large",
                pool=(segment.pool, 0),
                expandable=segment.expandable,
                frames=self._frames(segment.stack) or (),
            )
            for segment in sorted(self.segments, key=lambda segment: segment.pieces[0].address)
        ]
        settings = builders.settings(expandable_segments=self.expandable)
        return builders.snapshot(segments, [self.entries], allocator_settings=settings)

    def _frames(self, stack: int) -> list[builders.Dict] | None:
        return self.stacks[stack] if stack >= 0 else None

    def _home(self, piece: Piece) -> Segment:
        return next(segment for segment in self.segments if any(piece is one for one in segment.pieces))

    def _best_fit(self, size: int, stream: int, small: bool, pool: int) -> tuple[Segment, Piece] | None:
        fits = [
            (piece.size, piece.address, segment, piece)
            for segment in self.segments
            if (segment.stream, segment.small, segment.pool) == (stream, small, pool)
            for piece in segment.pieces
            if piece.state == FREE and piece.size >= size
        ]
        return min(fits, key=lambda fit: fit[:2])[2:] if fits else None

    def _obtain(self, size: int, stream: int, small: bool, pool: int, stack: int) -> tuple[Segment, Piece] | None:
        if self.expandable:
            return self._map(size, stream, small, pool, stack)
        wanted = 2 * MIB if small else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        if self.state().reserved + wanted > self.limit:
            return None
        piece = Piece(self._next, wanted)
        self._next += wanted + 2 * MIB
        segment = Segment(stream, small, pool, False, [piece], stack if self.recording else -1)
        self.segments.append(segment)
        self._note("segment_alloc", piece.address, wanted, stream, stack)
        return segment, piece

    def _map(self, size: int, stream: int, small: bool, pool: int, stack: int) -> tuple[Segment, Piece] | None:
        page = 2 * MIB if small else 20 * MIB
        key = (stream, small, pool)
        segment = next((one for one in self.segments if (one.stream, one.small, one.pool) == key), None)
        last = segment.pieces[-1] if segment and segment.pieces[-1].state == FREE else None
        wanted = -(-(size - (last.size if last else 0)) // page) * page
        if self.state().reserved + wanted > self.limit:
            return None
        if segment is None:
            segment = Segment(stream, small, pool, True, [], stack if self.recording else -1)
            address = self._next
            self._next += 1 << 34
        else:
            address = segment.end
        if last is None:
            last = Piece(address, 0)
            segment.pieces.append(last)
        last.size += wanted
        if segment not in self.segments:
            self.segments.append(segment)
        self._note("segment_map", address, wanted, stream, stack)
        return segment, last

    def _synchronize(self, stack: int) -> None:
        for name in list(self.pending):
            self.complete(name, stack)

    def _release(self, stack: int) -> None:
        for segment in list(self.segments):
            last = segment.pieces[-1]
            if last.state != FREE:
                continue
            if segment.expandable:
                self._unmap(segment, last, stack)
            elif len(segment.pieces) == 1:
                self.segments.remove(segment)
                self._note("segment_free", last.address, last.size, segment.stream, stack)

    def _unmap(self, segment: Segment, last: Piece, stack: int) -> None:
        page = 2 * MIB if segment.small else 20 * MIB
        pages = last.size // page
        if not pages:
            return
        last.size -= pages * page
        address = last.address + last.size
        if not last.size:
            segment.pieces.remove(last)
        if not segment.pieces:
            self.segments.remove(segment)
        self._note("segment_unmap", address, pages * page, segment.stream, stack)

    def _note(self, action: str, address: int, size: int, stream: int, stack: int) -> None:
        self._clock += 1
        if self.recording:
            time = 1_700_000_000_000_000 + self._clock
            frames = self._frames(stack)
            self.entries.append(builders.entry(action, address, size, stream=stream, time_us=time, frames=frames))
            self.states.append(self.state())
