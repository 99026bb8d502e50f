"""What entries of a trace look like in a pickle, so that thousands of them are read at once.

Nearly all entries of a trace are the same few bytes: keys that were remembered, an address, a size, a time, and a stack
that was remembered or is a list of frames that were. So an entry is walked once and becomes a `Shape`; numpy then finds
and reads all that have the same. Every byte of them is either compared with the shape's or is a value: nothing is
guessed, and what has no shape is left to the unpickler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from oomscope.frozen import frozen
from oomscope.model import BoolArray, IntArray
from oomscope.model.ordering import ascending, numbered
from oomscope.reading.entry_walk import EntryWalk
from oomscope.reading.traces import ACTION_NUMBERS

if TYPE_CHECKING:
    import numpy.typing as npt

BEGIN = b"}\x94("  # EMPTY_DICT MEMOIZE MARK
_MEMOIZED = b"\x94"
_MEMOIZE, _MARK, _LIST, _APPEND, _APPENDS, _SETITEMS = b"\x94(]aeu"
_BINGET, _LONG_BINGET, _LONG1 = b"hj\x8a"
_STEPS = np.zeros(256, np.int64)
"""Bytes of the instructions that items of a list of frames are; 0 for all others."""
_STEPS[[_BINGET, _LONG_BINGET]] = 2, 5
_WIDTHS = {ord("K"): 1, ord("M"): 2, ord("J"): 4}
_INTEGERS = frozenset({"addr", "device_free", "size", "stream", "time_us"})
_LABELS = frozenset({"compile_context", "user_metadata"})
_NOTHING = (b"\x8c\x00\x94", b"\x8c\x03N/A\x94")
"""What torch writes where there is nothing to say."""
_UNKNOWN_ACTION = 255
_LONGEST_STACK = 4096
_ROOM = 16
"""Bytes that may be read beyond an entry."""

ByteArray: TypeAlias = "npt.NDArray[np.uint8]"


@frozen(eq=False)
class Shape:
    """The layout of entries whose last key is ``frames``, up to the value of that.

    Attributes:
        size: its bytes.
        words: those bytes in words of eight, the values blanked.
        masks: which of their bits are no value.
        numbers: where each integer begins, how many bytes it has, and whether it has a sign; by key.
        action: where the index of the action's text begins, and its bytes.
        pool: where the bytes of the pool's id stand; None: there are none.
        keys: of the entry.
        remembered: how many objects it adds to the memo, without a list of frames.
        remembering: instructions that add as many: texts by one of the same that is there already, all else by
            whatever lies on the stack.
        held: how many are added by that.
        boundaries: where its instructions begin, as far as they are the same in all of its entries.
    """

    size: int
    words: npt.NDArray[np.uint64]
    masks: npt.NDArray[np.uint64]
    numbers: Mapping[str, tuple[int, int, bool]]
    action: tuple[int, int]
    pool: tuple[int, int] | None
    keys: tuple[str, ...]
    remembered: int
    remembering: bytes
    held: int
    boundaries: frozenset[int]


def shape_of(data: bytes, at: int, walk: EntryWalk, texts: Mapping[int, str], base: int) -> Shape | None:
    """The shape of the entry that `walk` went over from `at` on; None where it has none.

    Args:
        data: the instructions.
        at: where the entry begins.
        walk: over the entry.
        texts: remembered texts by index.
        base: the index of the first object that the entry adds to the memo.
    """
    keys = tuple(texts.get(pair.key, "") for pair in walk.pairs)
    if not keys or keys[-1] != "frames" or len(set(keys)) < len(keys):
        return None
    numbers: dict[str, tuple[int, int, bool]] = {}
    action, pool, blank = None, None, []
    own_texts, added = iter(sorted(walk.texts)), [_MEMOIZED]
    for key, pair in zip(keys[:-1], walk.pairs, strict=False):
        begin, end = pair.begin - at, pair.end - at
        value = data[pair.begin : pair.end]
        code = value[0]
        if key in _INTEGERS and _is_integer(value):
            first = begin + (2 if code == _LONG1 else 1)
            numbers[key] = first, end - first, code not in b"KM"
            blank.append((first, end))
        elif key == "action" and code in (_BINGET, _LONG_BINGET):
            action = begin + 1, end - begin - 1
            blank.append((begin + 1, end))
        elif key == "pool_id" and len(value) == 6 and value[::2] == b"KK\x86":
            pool = begin + 1, begin + 3
            blank += [(begin + 1, begin + 2), (begin + 3, begin + 4)]
            added.append(_MEMOIZED)
        elif key in _LABELS and value in _NOTHING:
            index = base + next(own_texts)
            added.append(b"j" + index.to_bytes(4, "little") + _MEMOIZED + b"0")  # LONG_BINGET, MEMOIZE, POP
        elif key not in _LABELS or texts.get(_index(value)) not in ("", "N/A"):
            return None
    if action is None or not {"size", "stream"} <= numbers.keys() or len({"addr", "device_free"} & numbers.keys()) != 1:
        return None
    boundaries = frozenset(place - at for place in walk.boundaries if place <= walk.pairs[-1].begin)
    return _shape(data[at : walk.pairs[-1].begin], blank, numbers, action, pool, keys, added, boundaries)


def _is_integer(value: bytes) -> bool:
    return len(value) == 1 + _WIDTHS.get(value[0], -1) or (value[0] == _LONG1 and 2 < len(value) <= 10)


def _index(value: bytes) -> int:
    return int.from_bytes(value[1:], "little") if value[0] in (_BINGET, _LONG_BINGET) else -1


def _shape(
    head: bytes,
    blank: Sequence[tuple[int, int]],
    numbers: Mapping[str, tuple[int, int, bool]],
    action: tuple[int, int],
    pool: tuple[int, int] | None,
    keys: tuple[str, ...],
    added: Sequence[bytes],
    boundaries: frozenset[int],
) -> Shape:
    size = len(head)
    mask = np.zeros(-(-size // 8) * 8, np.uint8)
    mask[:size] = 255
    for begin, end in blank:
        mask[begin:end] = 0
    constant = np.zeros(len(mask), np.uint8)
    constant[:size] = np.frombuffer(head, np.uint8)
    masks = mask.view("<u8")
    return Shape(
        size,
        constant.view("<u8") & masks,
        masks,
        numbers,
        action,
        pool,
        keys,
        len(added),
        b"".join(added),
        added.count(_MEMOIZED),
        boundaries,
    )


@dataclass(slots=True, eq=False)
class Entries:
    """What was read of the entries in a stretch of instructions; all arrays have one value an entry that may be one.

    Attributes:
        at: where each begins, ascending.
        next: where the next begins; 0 where the entry has no known shape.
        is_followed: whether that is the next of `at`, maybe after the end of a batch.
        shape: the number of its shape.
        action: numbers of `Action`.
        numbers: the integers, by key; 0 where an entry lacks the key.
        pool: both parts of the pool's id, in 16 bits; −1 where it lacks one.
        remembered: how many objects each adds to the memo.
        stack: the index of its stack among the remembered objects; −1 where that is written out.
        written: which of `distinct` its stack is, where that is written out; else −1.
        distinct: the instructions of stacks that are written out: frames that were remembered.
    """

    at: IntArray
    next: IntArray
    is_followed: BoolArray
    shape: IntArray
    action: ByteArray
    numbers: Mapping[str, IntArray]
    pool: IntArray
    remembered: IntArray
    stack: IntArray
    written: IntArray
    distinct: list[bytes]


def read_entries(data: bytes, start: int, shapes: Sequence[Shape], texts: Mapping[int, str]) -> Entries:
    """Every entry in `data` from `start` on that has one of `shapes`."""
    octets = np.frombuffer(data + bytes(_ROOM + max((shape.size for shape in shapes), default=0)), np.uint8)
    at = _candidates(octets, start, len(data))
    count = len(at)
    found = Entries(
        at=at,
        next=np.zeros(count, np.int64),
        is_followed=np.zeros(count, np.bool_),
        shape=np.full(count, -1, np.int64),
        action=np.full(count, _UNKNOWN_ACTION, np.uint8),
        numbers={key: np.zeros(count, np.int64) for key in sorted(_INTEGERS)},
        pool=np.full(count, -1, np.int64),
        remembered=np.zeros(count, np.int64),
        stack=np.full(count, -1, np.int64),
        written=np.full(count, -1, np.int64),
        distinct=[],
    )
    words = _at_each_byte(octets, "<u8")
    left = np.arange(count)
    for number, shape in enumerate(shapes):
        if not len(left):
            break
        left = _match(octets, found, left, number, shape, texts)
    _read_stacks(octets, words, found, shapes, len(data))
    _follow(octets, found)
    return found


def _candidates(octets: ByteArray, start: int, size: int) -> IntArray:
    text = octets[start:size]
    if len(text) < len(BEGIN):
        return np.zeros(0, np.int64)
    first = np.flatnonzero(text[:-2] == BEGIN[0])  # few: the others are looked at there alone
    found: IntArray = first[(text[first + 1] == BEGIN[1]) & (text[first + 2] == BEGIN[2])] + start
    return found


def _at_each_byte(octets: ByteArray, kind: str) -> npt.NDArray[Any]:
    """What stands at each byte, taken as `kind`, as far as that reaches: a view, to be indexed."""
    found: npt.NDArray[Any] = np.ndarray((len(octets) - np.dtype(kind).itemsize + 1,), kind, octets, strides=(1,))
    return found


def _match(
    octets: ByteArray, found: Entries, rows: IntArray, number: int, shape: Shape, texts: Mapping[int, str]
) -> IntArray:
    """Read those of `rows` that have `shape`; the others."""
    heads = _words_at(octets, found.at[rows], len(shape.words) + 1)  # one more for `_number`
    has = np.ones(len(rows), np.bool_)
    for column, (mask, word) in enumerate(zip(shape.masks, shape.words, strict=True)):
        has &= (heads[:, column] & mask) == word
    matched = rows[has]
    if not len(matched):
        return rows
    if len(matched) < len(rows):
        heads = _words_at(octets, found.at[matched], heads.shape[1])
    action = _actions(_number(heads, *shape.action, False), texts)
    for key, place in shape.numbers.items():
        found.numbers[key][matched] = _number(heads, *place)
    if shape.pool is not None:
        first, second = (_number(heads, place, 1, False) for place in shape.pool)
        found.pool[matched] = first * 256 + second
    found.action[matched] = action
    found.shape[matched] = np.where(action == _UNKNOWN_ACTION, -1, number)
    found.remembered[matched] = shape.remembered
    left: IntArray = rows[~has]
    return left


def _words_at(octets: ByteArray, at: IntArray, count: int) -> npt.NDArray[np.uint64]:
    """uint64[len(at), count]: the words that stand at each of `at`."""
    taken = _at_each_byte(octets, f"V{8 * count}")[at]  # one item each is taken much faster than a row of bytes
    found: npt.NDArray[np.uint64] = taken.view("<u8").reshape(len(at), count)
    return found


def _number(heads: npt.NDArray[np.uint64], offset: int, width: int, has_sign: bool) -> IntArray:
    """The integer of so many bytes that stands `offset` bytes from the beginning of each of `heads`."""
    whole = np.ndarray((len(heads),), "<u8", heads, offset, heads.strides[:1])
    shift = 64 - 8 * width
    values = whole << np.uint64(shift)
    found: IntArray = values.view("<i8") >> shift if has_sign else (values >> np.uint64(shift)).astype(np.int64)
    return found


def _actions(indexes: IntArray, texts: Mapping[int, str]) -> ByteArray:
    distinct, inverse = numbered(indexes)
    numbers = [ACTION_NUMBERS.get(texts.get(index, ""), _UNKNOWN_ACTION) for index in distinct.tolist()]
    found: ByteArray = np.array(numbers, np.uint8)[inverse]
    return found


def _read_stacks(
    octets: ByteArray, words: npt.NDArray[np.uint64], found: Entries, shapes: Sequence[Shape], size: int
) -> None:
    """Read what follows the heads: the index of a stack, or a list of remembered frames; then SETITEMS."""
    rows = np.flatnonzero(found.shape >= 0)
    if not len(rows):
        return
    sizes = np.array([shape.size for shape in shapes], np.int64)
    at = found.at[rows] + sizes[found.shape[rows]]
    end, index = _gets(words, at)
    found.stack[rows] = index
    is_list = (octets[at] == _LIST) & (octets[np.minimum(at + 1, len(octets) - 1)] == _MEMOIZE)
    lists = rows[is_list]
    begin, after, past = _lists(octets, words, at[is_list] + 2)
    found.written[lists], found.distinct = _distinct(octets, begin, after)
    end[is_list] = past
    found.remembered[lists] += 1
    end = np.minimum(end, len(octets) - 1)
    is_whole = (end > at) & (octets[end] == _SETITEMS) & (end < size)
    found.next[rows] = np.where(is_whole, end + 1, 0)


def _gets(words: npt.NDArray[np.uint64], at: IntArray) -> tuple[IntArray, IntArray]:
    """Where BINGET or LONG_BINGET at `at` ends, and its index; 0 and −1 where neither stands there."""
    at = np.minimum(at, len(words) - 1)
    instruction = words[at].view("<i8")
    code, index = instruction & 0xFF, instruction >> 8 & 0xFFFF_FFFF
    is_long, is_short = code == _LONG_BINGET, code == _BINGET
    end = np.where(is_long, at + 5, np.where(is_short, at + 2, 0))
    return end, np.where(is_long, index, np.where(is_short, index & 0xFF, -1))


def _lists(octets: ByteArray, words: npt.NDArray[np.uint64], at: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Where the items of the lists that were opened before `at` begin and end, and where the lists do; 0: unknown."""
    code = octets[at]
    begin = np.where(code == _MARK, at + 1, at)
    end, past = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
    # One item, followed by APPEND.
    lone = np.flatnonzero(code != _MARK)
    one, _ = _gets(words, at[lone])
    is_single = (one > 0) & (octets[np.minimum(one, len(octets) - 1)] == _APPEND)
    single, one = lone[is_single], one[is_single]
    end[single], past[single] = one, one + 1
    empty = code == _SETITEMS
    end[empty] = past[empty] = at[empty]
    going = np.flatnonzero(code == _MARK)
    here = begin[going]
    for _ in range(_LONGEST_STACK):
        if not len(going):
            break
        here = np.minimum(here, len(octets) - 1)
        code = octets[here]
        steps = _STEPS[code]
        on = steps > 0
        if on.all():
            here = here + steps
            continue
        done = np.flatnonzero(code == _APPENDS)
        end[going[done]], past[going[done]] = here[done], here[done] + 1
        going, here = going[on], (here + steps)[on]
    return begin, end, past


def _distinct(octets: ByteArray, begin: IntArray, end: IntArray) -> tuple[IntArray, list[bytes]]:
    """Which stretches of bytes are alike: a number for each, and the bytes of each number."""
    numbers = np.zeros(len(begin), np.int64)
    texts: list[bytes] = []
    lengths = np.maximum(end - begin, 0)
    for length in np.flatnonzero(np.bincount(lengths)).tolist():
        rows = np.flatnonzero(lengths == length)
        if not length:
            numbers[rows] = len(texts)
            texts.append(b"")
            continue
        words = _words_at(octets, begin[rows], -(-length // 8))
        words[:, -1] &= np.uint64((1 << (8 * ((length - 1) % 8 + 1))) - 1)
        # Sorting sums of the words is much faster than sorting the words; that they agree is checked.
        sums = words @ _factors(words.shape[1])
        distinct, inverse = _numbered(sums)
        first = np.empty(len(distinct), np.int64)
        first[inverse] = np.arange(len(rows))
        if not np.array_equal(words[first][inverse], words):
            first, inverse = np.arange(len(rows)), np.arange(len(rows))
        numbers[rows] = inverse + len(texts)
        texts += [words[row].tobytes()[:length] for row in first.tolist()]
    return numbers, texts


def _numbered(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], IntArray]:
    """The distinct values, ascending, and for each value which it is: for few distinct ones faster than `np.unique`."""
    distinct = ascending(values)
    return distinct, np.searchsorted(distinct, values)


@cache
def _factors(count: int) -> npt.NDArray[np.uint64]:
    """Odd factors without a pattern: splitmix64, for loading numpy's generators takes longer than a small file."""
    found = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        found = (found ^ (found >> np.uint64(shift))) * np.uint64(factor)
    mixed: npt.NDArray[np.uint64] = (found ^ (found >> np.uint64(31))) | np.uint64(1)
    return mixed


def _follow(octets: ByteArray, found: Entries) -> None:
    """See which entries are followed, maybe after the end of a batch (APPENDS MARK), by the next candidate."""
    ends_batch = (octets[found.next] == _APPENDS) & (octets[found.next + 1] == _MARK) & (found.next > 0)
    found.next += 2 * ends_batch
    found.is_followed[:-1] = found.next[:-1] == found.at[1:]
