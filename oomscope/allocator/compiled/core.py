"""`malloc` and `free_block` of `device.py` over columns, compiled by numba.

Only what nearly every step of a program is stands here. Where memory comes from the device or goes back to it, the step
is handed to the rules of the plain model, which work on the same columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar, cast

import numba

from oomscope.model import IntArray, UInt8Array

F = TypeVar("F", bound=Callable[..., object])

DONE, NEEDS_DEVICE, NEEDS_ROOM, RARE = 0, 1, 2, 3
"""Why `take` stops: at the end; at a request that no cached block serves; where columns are full; at another step."""
MALLOC, FREE, FREE_REQUESTED, FREE_COMPLETED, TRY_MALLOC = 0, 1, 2, 3, 4
"""`Op`, which compiled code does not know."""

ADDRESS, SIZE, PREV, NEXT, HOME, SEGMENT, GC_COUNT_BASE, IS_FREE, MAPPED = range(9)
"""Columns of `State.block`: the attributes of `Block`."""
COUNT, HAS_UNMAPPED, SPLIT_LIMIT, KEEP, POOL = range(5)
"""Columns of `State.home`: how many free blocks there are, and the attributes of `StreamPool`."""
WANTED, FROM, HELD, PENDING, SINCE = range(5)
"""Columns of `State.request`: rounded size and home; its block, or the one that waits for other streams, since when."""
ALLOCATED, PEAK_ALLOCATED, SPARE, NOTED, LAST_PENDING, WAITING = range(6)
"""Places in `State.number`."""
JUDGES, COLLECTS, MAX_SPLIT, MAX_ROUNDING = range(4)
"""Places in `State.rule`."""
MARGIN = 4
"""Rows, and places in a home, that are there before a step is taken."""


class State(NamedTuple):
    """The state of an allocator. A block, a home, a segment, a request and a pool is a row; -1 stands for none.

    Attributes:
        block: int64[rows, 9].
        spare: int64[rows]: the rows that no block has, as many as `number[SPARE]`.
        home: int64[homes, 5].
        order: int64[homes, room]: the rows of the free blocks of each home, by size and address.
        calls: int64[pools]: get_free_blocks_call_count.
        request: int64[requests, 5].
        noted: int64: the addresses of blocks in the order of requests; empty if they are not to be noted.
        number, rule: int64: what changes, and what holds for the whole replay.
    """

    block: IntArray
    spare: IntArray
    home: IntArray
    order: IntArray
    calls: IntArray
    request: IntArray
    noted: IntArray
    number: IntArray
    rule: IntArray


def _compiled(function: F) -> F:
    # Without numba's counting of references to arrays, which would take more time than the work: the caller holds them.
    return cast("F", numba.njit(cache=True, nogil=True, _nrt=False)(function))


def _inlined(function: F) -> F:
    return cast("F", numba.njit(cache=True, nogil=True, _nrt=False, inline="always")(function))


@_inlined
def _place(s: State, home: int, low: int, high: int, size: int, address: int) -> int:
    """Where, from `low` to `high`, the first free block stands that is not below a size and an address."""
    while low < high:
        middle = (low + high) >> 1
        row = s.order[home, middle]
        found = s.block[row, SIZE]
        if found < size or (found == size and s.block[row, ADDRESS] < address):
            low = middle + 1
        else:
            high = middle
    return low


@_inlined
def _place_of(s: State, home: int, row: int) -> int:
    """Where a free block stands, or belongs."""
    return _place(s, home, 0, s.home[home, COUNT], s.block[row, SIZE], s.block[row, ADDRESS])


@_inlined
def _move(s: State, home: int, old: int, new: int, row: int) -> None:
    """Take out what stands at `old` and put `row` in, so that it stands at `new` afterwards."""
    for at in range(old, new):
        s.order[home, at] = s.order[home, at + 1]
    for at in range(old, new, -1):
        s.order[home, at] = s.order[home, at - 1]
    s.order[home, new] = row


@_compiled
def insert(s: State, row: int) -> None:
    """Put a free block into its home, which has room."""
    home = s.block[row, HOME]
    _move(s, home, s.home[home, COUNT], _place_of(s, home, row), row)
    s.home[home, COUNT] += 1
    s.block[row, IS_FREE] = 1


@_compiled
def erase(s: State, row: int) -> None:
    """Take a free block out of its home."""
    home = s.block[row, HOME]
    s.home[home, COUNT] -= 1
    _move(s, home, _place_of(s, home, row), s.home[home, COUNT], row)
    s.block[row, IS_FREE] = 0


@_inlined
def _grown(block: IntArray, row: int) -> int:
    following = block[row, NEXT]
    if following >= 0 and not block[following, MAPPED]:
        return int(block[row, SIZE] + block[following, SIZE])
    return int(block[row, SIZE])


@_inlined
def _choose(s: State, size: int, home: int, place: int) -> int:
    """See `DeviceCachingAllocator._choose`."""
    block, end = s.block, s.home[home, COUNT]
    s.calls[s.home[home, POOL]] += 1
    if place == end:
        return int(end)
    row = s.order[home, place]
    behind = block[row, NEXT]
    if behind >= 0 and not block[behind, MAPPED]:
        grown = block[row, SIZE] + block[behind, SIZE]
        while block[row, SEGMENT] >= 0 and place + 1 < end:
            following = s.order[home, place + 1]
            if block[following, SIZE] >= grown:
                break
            following_grown = _grown(block, following)
            if following_grown >= grown:
                break
            row, grown, place = following, following_grown, place + 1
    if size < s.rule[MAX_SPLIT] <= block[row, SIZE]:
        return int(end)
    if size >= s.rule[MAX_SPLIT] and block[row, SIZE] >= size + s.rule[MAX_ROUNDING]:
        return int(end)
    return place


@_inlined
def _hand_out(s: State, row: int, place: int, size: int, home: int) -> int:
    """Hand out the block that stands at `place`, or its head, whose tail stays. The second half of `malloc`."""
    block = s.block
    remaining = block[row, SIZE] - size
    if remaining > s.home[home, KEEP] and size < s.home[home, SPLIT_LIMIT]:
        s.number[SPARE] -= 1
        head, before = s.spare[s.number[SPARE]], block[row, PREV]
        block[head, ADDRESS], block[head, SIZE] = block[row, ADDRESS], size
        block[head, PREV], block[head, NEXT] = before, row
        block[head, HOME], block[head, SEGMENT] = home, block[row, SEGMENT]
        block[head, GC_COUNT_BASE], block[head, IS_FREE], block[head, MAPPED] = 0, 0, 1
        if before >= 0:
            block[before, NEXT] = head
        address = block[row, ADDRESS] + size
        # Smaller than before, the tail stands no higher.
        _move(s, home, place, _place(s, home, 0, place, remaining, address), row)
        block[row, PREV], block[row, ADDRESS], block[row, SIZE] = head, address, remaining
        block[row, IS_FREE] = 1
        if s.rule[COLLECTS]:
            block[row, GC_COUNT_BASE] = s.calls[s.home[home, POOL]]
        row = head
    else:
        size = block[row, SIZE]
        s.home[home, COUNT] -= 1
        _move(s, home, place, s.home[home, COUNT], row)
        block[row, IS_FREE] = 0
    s.number[ALLOCATED] += size
    s.number[PEAK_ALLOCATED] = max(s.number[PEAK_ALLOCATED], s.number[ALLOCATED])
    return row


@_inlined
def find(s: State, size: int, home: int) -> int:
    """Serve a request from the free blocks; -1 where none does."""
    count = s.home[home, COUNT]
    place = _place(s, home, 0, count, size, 0)
    if s.rule[JUDGES] or (s.home[home, HAS_UNMAPPED] and place < count):
        place = _choose(s, size, home, place)
    if place >= count:
        return -1
    return _hand_out(s, s.order[home, place], place, size, home)


@_compiled
def serve(s: State, row: int, size: int, home: int) -> int:
    """Serve a request from a block that stands in no home, in one that has room."""
    count = s.home[home, COUNT]
    s.order[home, count] = row
    s.home[home, COUNT] = count + 1
    return _hand_out(s, row, count, size, home)


@_compiled
def free_block(s: State, row: int) -> None:
    """Put a block back into its home, which has room, merged with its free neighbours."""
    block, home = s.block, s.block[row, HOME]
    count = s.home[home, COUNT]
    old, address, size = count, block[row, ADDRESS], block[row, SIZE]
    before, behind = block[row, PREV], block[row, NEXT]
    if before >= 0 and block[before, IS_FREE]:
        old = _place_of(s, home, before)
        address, size = block[before, ADDRESS], size + block[before, SIZE]
        block[row, PREV] = block[before, PREV]
        if block[row, PREV] >= 0:
            block[block[row, PREV], NEXT] = row
        s.spare[s.number[SPARE]] = before
        s.number[SPARE] += 1
    if behind >= 0 and block[behind, IS_FREE]:
        place = _place_of(s, home, behind)
        size += block[behind, SIZE]
        block[row, NEXT] = block[behind, NEXT]
        if block[row, NEXT] >= 0:
            block[block[row, NEXT], PREV] = row
        s.spare[s.number[SPARE]] = behind
        s.number[SPARE] += 1
        if old == count:
            old = place
        else:
            count -= 1
            _move(s, home, place, count, behind)
            old -= place < old
    block[row, ADDRESS], block[row, SIZE], block[row, IS_FREE] = address, size, 1
    if s.rule[COLLECTS]:
        block[row, GC_COUNT_BASE] = s.calls[s.home[home, POOL]]
    if old == count:
        new = _place(s, home, 0, count, size, address)
        count += 1
    else:
        # What it was merged with is smaller, and stands below.
        new = _place(s, home, old + 1, count, size, address) - 1
    _move(s, home, old, new, row)
    s.home[home, COUNT] = count


@_inlined
def keep_served(s: State, request: int, row: int, is_tried: bool) -> None:
    """Note the block of a request; what the recorded run was refused is given back at once."""
    if len(s.noted):
        s.noted[s.number[NOTED]] = s.block[row, ADDRESS]
        s.number[NOTED] += 1
    if is_tried:
        s.number[ALLOCATED] -= s.block[row, SIZE]
        free_block(s, row)
    else:
        s.request[request, HELD] = row


@_compiled
def take(s: State, op: UInt8Array, argument: IntArray, begin: int) -> tuple[int, int]:
    """Take the steps from `begin` on; where it stops, and why."""
    room = s.order.shape[1]
    for step in range(begin, len(op)):
        code, request = op[step], argument[step]
        if code == MALLOC or code == TRY_MALLOC:  # noqa: SIM109 - numba compares with a tuple slowly
            home = s.request[request, FROM]
            if s.number[SPARE] < MARGIN or s.home[home, COUNT] + MARGIN > room:
                return step, NEEDS_ROOM
            row = find(s, s.request[request, WANTED], home)
            if row < 0:
                return step, NEEDS_DEVICE
            keep_served(s, request, row, code == TRY_MALLOC)
        elif code == FREE or code == FREE_REQUESTED:  # noqa: SIM109
            row = s.request[request, HELD]
            if row >= 0:
                if s.home[s.block[row, HOME], COUNT] + MARGIN > room:
                    return step, NEEDS_ROOM
                s.request[request, HELD] = -1
                s.number[ALLOCATED] -= s.block[row, SIZE]
                if code == FREE:
                    free_block(s, row)
                else:
                    s.number[LAST_PENDING] += 1
                    s.number[WAITING] += 1
                    s.request[request, PENDING], s.request[request, SINCE] = row, s.number[LAST_PENDING]
        elif code == FREE_COMPLETED:
            row = s.request[request, PENDING]
            if row >= 0:
                if s.home[s.block[row, HOME], COUNT] + MARGIN > room:
                    return step, NEEDS_ROOM
                s.request[request, PENDING] = -1
                s.number[WAITING] -= 1
                free_block(s, row)
        else:
            return step, RARE
    return len(op), DONE
