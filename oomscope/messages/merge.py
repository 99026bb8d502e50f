"""One failure printed several times is one message: in parts, by the logger and the interpreter, by its launcher."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from oomscope.messages.families import tensorflow
from oomscope.messages.figures import Figure
from oomscope.messages.records import OomMessage, Reading

NEAR = 60
"""Lines within which programs print the same failure again in other words."""
NEAR_SAME = 400
"""Lines within which a traceback is printed again word for word."""
_VAGUE = ("nccl.unhandled", tensorflow.STATS)
"""What a later line makes clear: why NCCL failed, and what TensorFlow wanted besides its table."""
_SURE = 3
"""So many equal figures are no coincidence."""


def absorbed(last: OomMessage, new: OomMessage, *, ends_traceback: bool) -> OomMessage | None:
    """`last` with what `new` adds to it, where both tell of the same failure; else None.

    Args:
        last: an earlier message of the same process.
        new: the later one.
        ends_traceback: whether both stand after the name of an exception.
    """
    gap = new.line - last.line
    if last.kind != new.kind or gap > NEAR_SAME:
        return None
    if last.reading.device is not None and new.reading.device not in (None, last.reading.device):
        return None
    if _names_others(last.reading, new.reading):
        return None
    one, two = last.reading.figures, new.reading.figures
    if len(one) >= _SURE and dict(one) == dict(two):
        return replace(last, times=last.times + 1) if ends_traceback or not gap else None
    if gap > NEAR or not _agree(one, two, reworded=last.reading.wording != new.reading.wording):
        return None
    if last.kind.startswith("torch") and one and two:
        return None
    text = new.text if last.reading.wording == tensorflow.STATS else last.text
    return replace(last, reading=_joined(last.reading, new.reading), text=text, rank=_first(last.rank, new.rank))


def _names_others(last: Reading, new: Reading) -> bool:
    """Whether both name a process, and not the same; what calls the kernel's killer has none killed yet."""
    before, after = (reading.values.get("pid") or reading.values.get("pid2") for reading in (last, new))
    return before is not None and (before != after if after is not None else "name" in new.values)


def _agree(one: Mapping[str, Figure], two: Mapping[str, Figure], *, reworded: bool) -> bool:
    """Whether no figure contradicts.

    Allocators round what was asked for, so sizes may differ by a little; but not where one wording prints both rounded.
    """
    for name in one.keys() & two.keys():
        rounded = reworded or not (one[name].off_by and two[name].off_by)
        little = one[name].value // 100 if rounded else 0
        if abs(one[name].value - two[name].value) > max(one[name].off_by, two[name].off_by, little):
            return False
    return True


def _joined(last: Reading, new: Reading) -> Reading:
    main = new if len(new.figures) > len(last.figures) or last.wording in _VAGUE else last
    figures = {**new.figures, **last.figures}
    values = {**new.values, **last.values}
    return replace(
        main, start=last.start, end=last.end, figures=figures, values=values, device=_first(last.device, new.device)
    )


def _first(one: int | None, two: int | None) -> int | None:
    return two if one is None else one
