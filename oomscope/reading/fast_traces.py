"""Entries taken from the instructions themselves, before the unpickler makes a dict of each.

While a trace goes by, stretches of entries that have a known shape are read as columns. In their place the unpickler
gets ``NEWTRUE BINPERSID``, "fetch the object with the id True", which hands it the stretch as one item of the trace;
then MEMOIZE as often as the entries would have, so that every index stays what it was, with an empty list for each list
of frames; and a list of these, and of the objects that the stretch refers to and only the unpickler knows, by their
indexes. What has no known shape goes to it as ever.

What the unpickler remembers in place of the entries is the stretch. Torch never refers to one of them; where a file
does, the stretch turns up where it does not belong, and the file is read the plain way.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from oomscope.errors import SnapshotError
from oomscope.model import IntArray
from oomscope.reading.entry_shapes import Entries, Shape, read_entries, shape_of
from oomscope.reading.entry_walk import EntryWalk, UnfitError
from oomscope.reading.framing import Framing, check_after_head, check_boundary
from oomscope.reading.instructions import Instructions
from oomscope.reading.remembering import list_of, remembering
from oomscope.reading.tables import Tables
from oomscope.reading.traces import EntryColumns, TraceBuilder

# The key, the list of traces, those that are empty, the first that is not; then the MARK before its entries.
_ENTRANCE = re.compile(rb"\x8c\x0ddevice_traces\x94\]\x94\(?(?:\]\x94)+\((?=\}\x94\()")
_NEXT_TRACE = re.compile(rb"e(?:\]\x94)+\((?=\}\x94\()")
# Between two entries: the end of a batch and the beginning of the next.
_NEXT_ENTRY = re.compile(rb"(?:e\()?(?=\}\x94\()")
_LONGEST_ENTRANCE = 1024
_STRETCH = b"\x88Q"  # NEWTRUE BINPERSID
_MEMOIZE, _NEW_BATCH = b"\x94", b"e("
CHUNK = 2 << 20
"""Bytes of instructions that are read at once."""
_LONGEST_ENTRY = 1 << 20
_LONGEST_BEGINNING = 32 << 20
"""Of what stands before the traces: its objects have to be looked through for texts."""
_MOST_SHAPES = 48
_MOST_SLOW = 200
"""Entries without a shape in one chunk, beyond which at least as many must have one."""
_UNKNOWN, _PENDING = -2, -3  # -1 is NO_STACK


class Stretch:
    """Entries that stand in a row, in the order of the trace.

    Attributes:
        entries, begin, end: which they are.
        memo: for each, the index of its list of frames, where that is written out.
        news: the stacks that were not met before, in order: the index of a remembered one, or a slot with the indexes
            of its frames.
        slots: for each list of frames that is written out, its slot.
        total: how often they stand in the memo.
        wanted: the indexes of the objects that have to be fetched.
    """

    __slots__ = ("begin", "end", "entries", "memo", "news", "slots", "total", "wanted")

    def __init__(self, entries: Entries, begin: int, end: int, memo: IntArray, slots: IntArray) -> None:
        self.entries, self.begin, self.end, self.memo, self.slots = entries, begin, end, memo, slots
        self.total = 0
        self.news: list[tuple[int, list[int] | None]] = []
        self.wanted: list[int] = []


class TraceReader:
    """Reads the entries of traces from the instructions of a pickle.

    Args:
        tables: numbers stacks and pools.
        patch: changes the instructions that go to the unpickler as they are.
        memo: what the unpickler remembers, by index; asked for once.
    """

    def __init__(self, tables: Tables, patch: Callable[[bytes], bytes], memo: Callable[[], dict[int, Any]]) -> None:
        self._tables, self._patch, self._memo = tables, patch, memo
        self._state, self._frames = "before", Framing()
        self._remembered = 0
        self._texts: dict[int, str] = {}
        self._shapes: list[Shape] = []
        self._slow = self._fast = 0
        self._waiting: deque[Stretch] = deque()
        self._given: list[Stretch] = []
        # The number of each remembered stack, by its index. Lists of the same frames have a slot: the number of that
        # stack, and the index of the first such list, which stands for all that follow.
        self._stacks, self._slots, self._slot_lists = _NumbersByIndex(), _NumbersByIndex(), _NumbersByIndex()
        self._by_text: dict[bytes, int] = {}
        self._slot_texts: list[bytes] = []
        self._met_frames: dict[int, Any] = {}
        self._asked: set[int] = set()

    # What the stream asks for

    def __call__(self, found: Instructions, data: bytes, is_last: bool) -> tuple[bytes, int]:
        """What the unpickler gets in the place of `data`, and how many bytes of that were used.

        Args:
            found: walks what is left to the unpickler.
            data: the next instructions.
            is_last: whether nothing follows `data`.
        """
        parts: list[bytes] = []
        at = 0
        if self._state == "at entrance":
            self._enter()
        if self._state == "inside":
            at = self._inside(found, data, is_last, parts)
            if self._state == "inside" and not is_last:
                found.wanted = CHUNK
                return b"".join(parts), at
            self._state = "after"
        begin = found.walked
        parts.append(self._outside(found, data[at:], is_last))
        if self._state != "after":
            self._frames.pass_over(data, begin, found.walked)
        return b"".join(parts), at + self._used

    def _outside(self, found: Instructions, data: bytes, is_last: bool) -> bytes:
        entrance = None
        if self._state == "before":
            entrance = _ENTRANCE.search(data)
            if entrance is not None:
                data = data[: entrance.end()]
            elif not is_last:
                data = data[:-_LONGEST_ENTRANCE]
        body, self._used = found.take(data)
        # Only there do the instructions begin anew: elsewhere those bytes are part of one.
        if entrance is not None and self._used == len(data) and found.walked <= _LONGEST_BEGINNING:
            self._state = "at entrance"
        elif entrance is not None and self._used == len(data):
            self._state = "after"
        return self._patch(body)

    def _enter(self) -> None:
        """Begin to read entries: the unpickler has done all that stands before them."""
        memo = self._memo()
        self._remembered = len(memo)
        is_plain = not memo or max(memo) == len(memo) - 1
        self._texts = {index: value for index, value in memo.items() if type(value) is str}
        self._state = "inside" if is_plain else "after"

    def _inside(self, found: Instructions, framed: bytes, is_last: bool, parts: list[bytes]) -> int:
        """Read entries from `framed`; where they end, or those that are whole do."""
        start, at = found.walked, 0
        self._slow = self._fast = 0
        data, places = self._frames.without(framed, start)
        is_last = is_last and len(data) + 9 * len(places) == len(framed)
        entries, slots = self._read(data, at)
        while self._state == "inside":
            row = int(np.searchsorted(entries.at, at))
            if row < len(entries.at) and entries.at[row] == at and entries.is_followed[row]:
                rest = entries.is_followed[row:]
                end = row + (len(rest) if rest.all() else int(np.argmin(rest)))
                begun, at = at, int(entries.next[end - 1])
                for place in (place for place in places if begun < place < at):
                    within = int(np.searchsorted(entries.at, place, side="right")) - 1
                    entry = int(entries.at[within])
                    known = self._shapes[entries.shape[within]]
                    if place - entry not in known.boundaries:
                        check_after_head(data, entry + known.size, place)
                parts.append(self._stretch(entries, slots, row, end))
                continue
            try:
                walk = EntryWalk(data, at)
            except UnfitError:
                if is_last or len(data) - at > _LONGEST_ENTRY:
                    self._state = "after"
                break
            if len(data) - walk.end < _LONGEST_ENTRANCE and not is_last:
                break
            for place in (place for place in places if at < place < walk.end):
                check_boundary(walk, place)
            is_known = row < len(entries.at) and entries.at[row] == at and entries.shape[row] >= 0
            shape = None if is_known else self._learn(data, at, walk)
            at = self._slow_entry(found, data, at, walk, parts)
            if shape is not None:
                entries, slots = self._read(data, at)
        at += 9 * sum(place < at for place in places)
        found.walked = start + at
        self._frames.pass_over(framed, start, found.walked)
        return at

    def _read(self, data: bytes, at: int) -> tuple[Entries, IntArray]:
        entries = read_entries(data, at, self._shapes, self._texts)
        return entries, self._slots_of(entries)

    def _learn(self, data: bytes, at: int, walk: EntryWalk) -> Shape | None:
        if len(self._shapes) >= _MOST_SHAPES:
            return None
        shape = shape_of(data, at, walk, self._texts, self._remembered)
        if shape is not None:
            self._shapes.append(shape)
        return shape

    def _slow_entry(self, found: Instructions, data: bytes, at: int, walk: EntryWalk, parts: list[bytes]) -> int:
        """Leave the entry at `at` to the unpickler, with what stands between it and the next; where that begins."""
        self._texts |= {self._remembered + place: text for place, text in walk.texts.items()}
        self._remembered += walk.remembered
        self._slow += 1
        end = walk.end
        if (following := _NEXT_ENTRY.match(data, end)) is not None:
            end = following.end()
        elif (following := _NEXT_TRACE.match(data, end)) is not None:
            end = following.end()
            self._remembered += data.count(_MEMOIZE, walk.end, end)
        else:
            self._state = "after"
        if self._slow > _MOST_SLOW and self._fast < self._slow:
            self._state = "after"
        body, used = found.take(data[at:end])
        if used < end - at:
            self._state = "after"
        parts.append(self._patch(body))
        return at + used

    def _stretch(self, entries: Entries, slots: IntArray, begin: int, end: int) -> bytes:
        """Take the entries from `begin` to `end`; what the unpickler gets in their place."""
        self._fast += end - begin
        remembered, index, slot = entries.remembered[begin:end], entries.stack[begin:end], slots[begin:end]
        # The list of frames is the last that an entry adds.
        memo = self._remembered + np.cumsum(remembered) - 1
        first = memo - remembered + 1
        if (index >= first).any():
            raise SnapshotError("an entry refers to a stack that comes after it.")
        is_written = index < 0
        stretch = Stretch(entries, begin, end, memo, slot)
        shape = entries.shape[begin:end]
        held = np.array([one.held for one in self._shapes])
        stretch.total = int(held[shape].sum())
        self._stacks.make_room(self._remembered + int(remembered.sum()))
        self._stacks.values[memo[is_written]] = _PENDING
        met = np.where(is_written, self._slots.values[slot], self._stacks.values[index])
        is_new = np.zeros(end - begin, np.bool_)
        unknown = np.flatnonzero(met == _UNKNOWN)
        _, firsts = np.unique(np.where(is_written, -1 - slot, index)[unknown], return_index=True)
        for row in unknown[np.sort(firsts)].tolist():
            if is_written[row]:
                is_new[row] = True
                self._take_slot(stretch, int(slot[row]), int(memo[row]), int(first[row]))
            else:
                self._stacks.values[index[row]] = _PENDING
                stretch.news.append((int(index[row]), None))
                stretch.wanted.append(int(index[row]))
        self._remembered += int(remembered.sum())
        self._waiting.append(stretch)
        heads, lists = [one.remembering for one in self._shapes], self._slot_lists.values[slot]
        memory = remembering(heads, shape, lists, is_written, is_new)
        return _STRETCH + memory + list_of(stretch.wanted) + _NEW_BATCH

    def _take_slot(self, stretch: Stretch, slot: int, memo: int, first: int) -> None:
        """Have `stretch` make the list of frames at `memo`, the first in its slot."""
        self._slots.values[slot] = _PENDING
        self._slot_lists.values[slot] = memo
        frames = _indexes(self._slot_texts[slot])
        if any(index >= first for index in frames):
            raise SnapshotError("a stack refers to a frame that comes after it.")
        unknown = [index for index in dict.fromkeys(frames) if index not in self._asked]
        self._asked.update(unknown)
        stretch.wanted += [memo, *unknown]
        stretch.news.append((slot, frames))

    def _slots_of(self, entries: Entries) -> IntArray:
        """The slot of each list of frames that is written out; 0 where none is."""
        slots = [self._by_text.setdefault(text, len(self._by_text)) for text in entries.distinct]
        self._slot_texts = list(self._by_text) if len(self._by_text) > len(self._slot_texts) else self._slot_texts
        self._slots.make_room(len(self._by_text))
        self._slot_lists.make_room(len(self._by_text))
        found: IntArray = np.array([*slots, 0], np.int64)[entries.written]
        return found

    # What the unpickler asks for

    def next_stretch(self) -> Stretch | None:
        """The stretch whose turn it is; None where there is none."""
        if not self._waiting:
            return None
        stretch = self._waiting.popleft()
        self._given.append(stretch)
        return stretch

    def put(self, stretch: Stretch, objects: list[Any], builder: TraceBuilder) -> int:
        """Append `stretch` to `builder`; how many entries those are.

        Args:
            stretch: as it was handed out.
            objects: its lists of frames, and what it wanted.
            builder: of its trace.

        Raises:
            SnapshotError: an object is not what it should be.
        """
        entries, begin, end = stretch.entries, stretch.begin, stretch.end
        fetched = dict(zip(stretch.wanted, objects, strict=True))
        stacks = self._tables.stacks
        for name, frames in stretch.news:
            if frames is None:
                self._stacks.values[name] = stacks.numbers([fetched[name]])[0]
                continue
            self._met_frames |= {index: fetched[index] for index in frames if index in fetched}
            number = stacks.number_of_frames([self._met_frames[index] for index in frames])
            stacks.mark([fetched[int(self._slot_lists.values[name])]], number)
            self._slots.values[name] = number
        index = entries.stack[begin:end]
        is_written = index < 0
        written = self._slots.values[stretch.slots]
        self._stacks.values[stretch.memo[is_written]] = written[is_written]
        stack = np.where(is_written, written, self._stacks.values[index])
        builder.extend_columns(self._columns(entries, begin, end, stack))
        # The stretch itself stays, in the unpickler's memo; what it holds need not.
        del stretch.entries, stretch.memo, stretch.slots, stretch.news
        return end - begin

    def _columns(self, entries: Entries, begin: int, end: int, stack: IntArray) -> EntryColumns:
        of = entries.shape[begin:end]
        distinct = np.flatnonzero(np.bincount(of)).tolist()
        keys = frozenset(key for number in distinct for key in self._shapes[number].keys)
        timeless = [number for number in distinct if "time_us" not in self._shapes[number].keys]
        numbers, pool = entries.numbers, entries.pool[begin:end]
        return EntryColumns(
            keys=keys,
            action=entries.action[begin:end],
            address=numbers["addr"][begin:end] + numbers["device_free"][begin:end],  # an entry has one of them
            size=numbers["size"][begin:end],
            stream=numbers["stream"][begin:end],
            time_us=numbers["time_us"][begin:end],
            timeless=int(np.isin(of, timeless).sum()) if timeless else 0,
            stack=stack,
            pool=self._pools(pool) if "pool_id" in keys else None,
        )

    def _pools(self, ids: IntArray) -> IntArray:
        distinct, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
        numbers = np.zeros(len(distinct), np.int64)
        for place in np.argsort(first).tolist():
            pair = None if distinct[place] < 0 else divmod(int(distinct[place]), 256)
            numbers[place] = self._tables.pools.numbers([pair], str)[0]
        return numbers[inverse]

    def are_where_they_belong(self) -> bool:
        """Whether, once all is read, nothing refers to an entry that was taken but the unpickler's memo."""
        usual = [object()]
        expected = next(sys.getrefcount(one) for one in usual)
        stray = [sys.getrefcount(stretch) - stretch.total - expected for stretch in self._given]
        return not self._waiting and not any(stray)


class _NumbersByIndex:
    """Numbers by index.

    Attributes:
        values: at least as many as there was room asked for; `_UNKNOWN` where none was put.
    """

    def __init__(self) -> None:
        self.values: IntArray = np.full(1 << 12, _UNKNOWN, np.int32)

    def make_room(self, size: int) -> None:
        """Have room for `size` numbers."""
        if size > len(self.values):
            begin = len(self.values)
            # In place: nothing else refers to the array, and copies of tens of megabytes would be made again and again.
            self.values.resize(max(size, begin * 3 // 2), refcheck=False)
            self.values[begin:] = _UNKNOWN


def _indexes(written: bytes) -> list[int]:
    """The indexes in a row of BINGET and LONG_BINGET."""
    found, at = [], 0
    while at < len(written):
        size = 4 if written[at] == 0x6A else 1
        found.append(int.from_bytes(written[at + 1 : at + 1 + size], "little"))
        at += 1 + size
    return found
