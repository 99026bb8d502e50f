"""Which blocks a recorded object keeps alive, so that holders are counted in the same bytes as everything else.

The recording counts tensors; the allocator rounds each up to a block. A page that shows both has two sizes for one
object, so a holder's tensors are looked up, and their blocks are counted instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from oomscope.analysis.study import DeviceStudy
from oomscope.model import IntArray
from oomscope.model.ordering import among, ascending
from oomscope.model.recorded_holders import RecordedHolder, RecordedTensor

BELONGINGS = frozenset({"parameter", "buffer", "gradient", "optimizer_state"})
"""Kinds of holders that every training has; what they hold is seldom what went wrong."""

_LAST_ERROR = re.compile(r"^(sys: last_(?:exc|value|traceback))(?:\.__traceback__)? → ")
"""The way through the error that Python showed last. Where the dump was made while an error was handled, that is the
very one of this failure, and its frames were running when the request failed; else it is an earlier one's."""
_CYCLE = "reference cycle: "
_COLLECTIONS = frozenset({"list", "dict", "deque", "set", "collection", "attribute"})
"""Kinds of holders that are objects with parts of their own."""
_NOBODY = (None, "", "self", "cls")
"""Names that tell no object from another."""
_SAME = 0.05
"""Of the bytes of states: what rounding, and states that are no tensors of the device, may differ by."""
_LEFT_OUT = " … "
"""Stands in the middle of a long way; the recorder tells its first and its last steps."""
_STEP = re.compile(r"\.(?=[^.])|\[")
_ANY_ITEM, _ANY_STEPS = re.escape("[*]"), re.escape(".*.")
ANY_GRADIENT = ".*.grad"
"""Ends the way to the gradients of all parameters that a variable reaches."""


def holders_in_blocks(study: DeviceStudy) -> tuple[RecordedHolder, ...]:
    """Who keeps memory alive, told as it was when the dump was made.

    `bytes` and `retained` are bytes of blocks wherever the recorded tensors of a holder add up to what the recording
    says of it. Where they do not (several objects share some, or the recording left small ones out), they stay bytes
    of tensors: less than the blocks by what rounding adds.
    """
    return study.once(
        "holders in blocks", lambda: tuple(_in_blocks(study, *one) for one in _outermost(_recorded(study)))
    )


def ways_to(study: DeviceStudy, tensor: RecordedTensor) -> tuple[str, ...]:
    """The ways from what a person knows to `tensor`, as they were when the request failed; its name where none is."""
    return tuple(_before_failure(study, way) for way in tensor.holders or (tensor.name or "",))


def first_ways(study: DeviceStudy) -> tuple[tuple[RecordedTensor, str], ...]:
    """Each recorded tensor of the device with the first of `ways_to` it: every holder is looked for among them."""
    tensors = study.snapshot.recorded.tensors_on(study.index)
    return study.once("first ways", lambda: tuple((one, ways_to(study, one)[0]) for one in tensors))


def _before_failure(study: DeviceStudy, way: str) -> str:
    """`way` without the part that leads through the exception of this very failure."""
    return way if _shown_earlier(study) else _LAST_ERROR.sub("", way)


def _shown_earlier(study: DeviceStudy) -> bool:
    """Whether the error that Python showed last is an earlier one: this one had not been raised yet."""
    return study.snapshot.recorded.captured_at == "observer"


def is_within(path: str, holder: str) -> bool:
    """Whether `path` leads through `holder`: ``metric.outputs[3]['loss']`` through ``metric.outputs``."""
    start, pattern = _pattern(holder)
    path = path.removeprefix(_CYCLE)
    if path.startswith(start) and pattern.match(path) is not None:
        return True
    return _LEFT_OUT in path and _goes_through(path, holder.removeprefix(_CYCLE))


def _goes_through(path: str, holder: str) -> bool:
    """The same of a way whose middle was left out: another part of it than of the way to the holder, which is shorter.

    Its first steps are those of the holder, and its last ones begin with some that the holder ends with.
    """
    head, _, tail = path.partition(_LEFT_OUT)
    holder_head, _, end = holder.partition(_LEFT_OUT)
    if not end and holder.startswith(head):
        holder_head, end = head, holder[len(head) :]
    if holder_head != head:
        return False
    return any(_pattern(end[step.start() :])[1].match(tail) is not None for step in _STEP.finditer(end))


@lru_cache(maxsize=256)
def _pattern(holder: str) -> tuple[str, re.Pattern[str]]:
    """What a way through `holder` begins with, for most ways do not, and all that it must look like."""
    name = holder.removeprefix(_CYCLE)
    items = re.escape(name).replace(_ANY_ITEM, r"\[[^\]]*\]").replace(_ANY_STEPS, r"(?:[.\[](?:[^ ]| … )*)?\.")
    return re.split(r"\[\*\]|\.\*\.", name, maxsplit=1)[0], re.compile(items + r"(?![A-Za-z0-9_])")


def live_rows(study: DeviceStudy, entry: int, addresses: Sequence[int]) -> IntArray:
    """The lifetime that is live at each address once `entry` has happened; -1 where none is."""
    history = study.history
    rows = np.flatnonzero(history.lifetimes.active_at(entry))
    rows = rows[np.argsort(history.lifetimes.address[rows], kind="stable")]
    wanted = np.array(addresses, np.int64)
    if not len(rows):
        return np.full(len(wanted), -1, np.int64)
    start = history.lifetimes.address[rows]
    at = np.maximum(np.searchsorted(start, wanted, side="right") - 1, 0)
    inside = (wanted >= start[at]) & (wanted < start[at] + history.size[rows[at]])
    return np.where(inside, rows[at], -1)


def _recorded(study: DeviceStudy) -> list[RecordedHolder]:
    return [_told(study, one) for one in study.snapshot.recorded.holders_on(study.index)]


def _told(study: DeviceStudy, one: RecordedHolder) -> RecordedHolder:
    """`one` as it was when the request failed; all that an earlier error keeps is told of that error."""
    found = _LAST_ERROR.match(one.holder or "")
    if found is None or one.holder is None:
        return one
    if _shown_earlier(study):
        return replace(one, holder=found[1], kind="exception")
    return replace(one, holder=_before_failure(study, one.holder))


def _outermost(holders: list[RecordedHolder]) -> list[tuple[RecordedHolder, bool]]:
    """`holders`, where what is told of an object within another one is counted for that one; and which those are.

    The recording has a row for a dict and one for each of its lists; what two of the lists share is the dict's.
    """
    found: list[tuple[RecordedHolder, bool]] = []
    for one in sorted(holders, key=lambda holder: len(holder.holder or "")):
        outer = next((index for index, (other, _) in enumerate(found) if _is_part(one, other)), None)
        if outer is None:
            found.append((one, False))
        else:
            found[outer] = _joined(found[outer][0], one), True
    return found


def _is_part(one: RecordedHolder, of: RecordedHolder) -> bool:
    if not (one.holder and of.holder) or one.kind in BELONGINGS:
        return False
    if one.kind == of.kind == "exception" and one.holder == of.holder:
        return True
    if of.kind not in _COLLECTIONS:
        return False
    return one.holder != of.holder and is_within(one.holder, of.holder)


def _joined(outer: RecordedHolder, inner: RecordedHolder) -> RecordedHolder:
    return replace(
        outer,
        bytes=(outer.bytes or 0) + (inner.bytes or 0),
        retained=(outer.retained or 0) + (inner.retained or 0),
        tensors=(outer.tensors or 0) + (inner.tensors or 0),
        path=(*outer.path, *inner.path)[: max(len(outer.path), len(inner.path))],
    )


def _in_blocks(study: DeviceStudy, holder: RecordedHolder, joined: bool) -> RecordedHolder:
    reached, kept = _tensors_of(study, holder)
    return replace(
        holder,
        bytes=_blocks(study, reached, holder.bytes, joined=joined),
        retained=_blocks(study, kept, holder.retained, joined=joined),
    )


def kept_within(study: DeviceStudy, holder: RecordedHolder, rows: IntArray) -> int:
    """Bytes of those `rows`, lifetimes, that `holder` alone keeps by what the recording says of its tensors."""
    _, kept = _tensors_of(study, holder)
    found = live_rows(study, _last(study), [one.address or 0 for one in kept])
    return _bytes_of_both(study, found, rows)


def keeper_of(study: DeviceStudy, rows: IntArray) -> str | None:
    """The holder of most of `rows`, lifetimes, by what the recording says of its tensors; None where none has half.

    A state is told of its parameter, not of its optimizer: of several optimizers it is the one that has as many bytes.
    """
    whole = int(study.history.size[rows].sum())
    covered = []
    for one in holders_in_blocks(study):
        found = live_rows(study, _last(study), [tensor.address or 0 for tensor in _tensors_of(study, one)[0]])
        own = _bytes_of_both(study, found, rows)
        is_whole = one.kind != "optimizer_state" or abs((one.bytes or 0) - own) <= _SAME * own
        if one.holder not in _NOBODY and own and is_whole:
            covered.append((own, one.holder or ""))
    most, holder = max(covered, default=(0, ""))
    return holder if 2 * most >= max(whole, 1) else None


def _bytes_of_both(study: DeviceStudy, some: IntArray, others: IntArray) -> int:
    """Bytes of the rows that are in both, each counted once."""
    return int(study.history.size[ascending(some[among(some, others)])].sum())


def _last(study: DeviceStudy) -> int:
    return len(study.history.curves.allocated) - 2


def _tensors_of(study: DeviceStudy, holder: RecordedHolder) -> tuple[list[RecordedTensor], list[RecordedTensor]]:
    """The tensors that `holder` reaches, and those that nothing else reaches."""
    name = holder.holder or ""
    tensors = [one for one in study.snapshot.recorded.tensors_on(study.index) if one.address is not None]
    if holder.kind in BELONGINGS:
        own = [one for one in tensors if one.category == holder.kind]
        # A state is named after its parameter, not after its optimizer.
        if holder.kind != "optimizer_state":
            own = [one for one in own if is_within(one.name or "", name)]
        return own, own
    found = [(one, [is_within(way, name) for way in ways_to(study, one)]) for one in tensors]
    return [one for one, ways in found if any(ways)], [one for one, ways in found if all(ways)]


def _blocks(study: DeviceStudy, tensors: list[RecordedTensor], recorded: int | None, *, joined: bool) -> int | None:
    """The blocks of `tensors` in bytes, where their own bytes are those `recorded`; else what is `recorded`.

    Never more than those blocks, where rows were joined, each of which may have counted the same tensor.
    """
    rows = live_rows(study, _last(study), [one.address or 0 for one in tensors])
    if not recorded or not len(rows) or (rows < 0).any():
        return recorded
    blocks = int(study.history.size[ascending(rows)].sum())
    same = sum(one.bytes or 0 for one in tensors) == recorded
    return blocks if same or (joined and blocks < recorded) else recorded
