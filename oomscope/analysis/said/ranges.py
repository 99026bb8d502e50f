"""The ranges that a program marked with `record_function`, on the trace of one device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from oomscope.frozen import frozen
from oomscope.history import DeviceHistory
from oomscope.model import Annotation, IntArray, Snapshot
from oomscope.model.arrays import StackArray

NO_RANGE = -1


@frozen(eq=False)
class Ranges:
    """Ranges in the order in which they began; those that had begun before the first annotation come first.

    Attributes:
        names: of each range.
        begin, end: int64[ranges], its entries are ``begin:end``. One that never ended reaches to the end.
        parent: int32[ranges], the range in which it began, which comes before it; `NO_RANGE` for none.
        innermost: int32[entries], the innermost range around each entry; `NO_RANGE` for none.
    """

    names: tuple[str, ...]
    begin: IntArray
    end: IntArray
    parent: StackArray
    innermost: StackArray

    def __len__(self) -> int:
        return len(self.names)

    def around(self, entry: int) -> tuple[int, ...]:
        """The ranges around `entry`, outermost first."""
        found: list[int] = []
        number = int(self.innermost[entry]) if 0 <= entry < len(self.innermost) else NO_RANGE
        while number != NO_RANGE:
            found.append(number)
            number = int(self.parent[number])
        return tuple(reversed(found))


def find_ranges(snapshot: Snapshot, history: DeviceHistory) -> Ranges:
    """The ranges of the threads that worked on the device; of all threads where none is put down to it.

    An annotation has the device that was current in its thread, a time in microseconds, and no thread. Within a name
    the one that began last ends first. One whose beginning the ring has lost began before all others.
    """
    entries = history.entries
    marks = _marks_of(snapshot, history.index) if history.trace.timed and entries else ()
    if not marks:
        nothing = np.zeros(0, np.int64)
        return Ranges((), nothing, nothing, nothing.astype(np.int32), np.full(entries, NO_RANGE, np.int32))
    clock = np.maximum.accumulate(history.trace.time_us)
    times = np.array([mark.time_us for mark in marks], np.int64)
    is_start = np.array([mark.stage == "START" for mark in marks], np.bool_)
    # What happens in the microsecond of a mark belongs to the range: it is what the range is there for.
    left, right = np.searchsorted(clock, times, "left"), np.searchsorted(clock, times, "right")
    place = np.maximum.accumulate(np.where(is_start, left, right))
    return _matched(marks, place.tolist(), entries)


def _marks_of(snapshot: Snapshot, device: int) -> Sequence[Annotation]:
    marks = [mark for mark in snapshot.annotations if mark.stage in ("START", "END")]
    here = [mark for mark in marks if mark.device == device]
    return sorted(here or marks, key=lambda mark: mark.time_us)


def _matched(marks: Sequence[Annotation], places: list[int], entries: int) -> Ranges:
    names = [mark.name for mark in _begun_before(marks)]
    begin, end = [0] * len(names), [entries] * len(names)
    parent = list(range(-1, len(names) - 1))
    open_: list[int] = list(range(len(names)))
    is_open = [True] * len(names)
    by_name: dict[str, list[int]] = defaultdict(list)
    for number, name in enumerate(names):
        by_name[name].append(number)
    tops = [open_[-1] if open_ else NO_RANGE]
    for mark, place in zip(marks, places, strict=True):
        if mark.stage == "START":
            parent.append(open_[-1] if open_ else NO_RANGE)
            by_name[mark.name].append(len(names))
            open_.append(len(names))
            is_open.append(True)
            names.append(mark.name)
            begin.append(place)
            end.append(entries)
        elif waiting := by_name[mark.name]:
            number = waiting.pop()
            is_open[number], end[number] = False, place
        while open_ and not is_open[open_[-1]]:
            open_.pop()
        tops.append(open_[-1] if open_ else NO_RANGE)
    lengths = np.diff([0, *places, entries])
    return Ranges(
        tuple(names),
        np.array(begin, np.int64),
        np.array(end, np.int64),
        np.array(parent, np.int32),
        np.repeat(np.array(tops, np.int32), lengths),
    )


def _begun_before(marks: Sequence[Annotation]) -> list[Annotation]:
    """The ends whose beginning is not among `marks`: the ring has lost it. The outermost ended last."""
    depth: dict[str, int] = defaultdict(int)
    lost = []
    for mark in marks:
        if mark.stage == "START":
            depth[mark.name] += 1
        elif depth[mark.name]:
            depth[mark.name] -= 1
        else:
            lost.append(mark)
    return lost[::-1]
