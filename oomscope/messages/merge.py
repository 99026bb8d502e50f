"""One failure printed several times is one message: in parts, by the logger and the interpreter, by its launcher."""

from __future__ import annotations

import re
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
_WHOEVER = ("killed.signal", "killed.said")
"""That a process was killed, which a later line may say more of: by whom."""
_SHARED = ("tensorflow.allocator", tensorflow.STATS)
"""Words of the allocator of XLA, a part of both."""
_ELLIPSIS = ".…`*'\""
"""With what a quotation ends that was cut off."""
_LEFT_OUT = re.compile(r"(?<=\w)(?:\.{3}|…).*", re.DOTALL)
"""Where a program breaks a text off: what follows is no part of it."""
_OWN = ("shape", "step", "fatal")
"""What a request has for its own: the tensor, the step of a job, the last words of a program."""
_SURE = 3
"""So many equal figures are no coincidence."""


_SHORT = "alloc"
"""In the status of a library that got no memory."""


def of_xla(message: OomMessage, beside: OomMessage | None) -> OomMessage:
    """`message` as JAX's, where it is in words of the allocator that TensorFlow has too and JAX failed `beside` it."""
    if beside is None or beside.kind != "jax" or message.reading.wording not in _SHARED:
        return message
    if abs(beside.line - message.line) > NEAR:
        return message
    return replace(message, reading=replace(message.reading, kind="jax", wording="jax.tried"))


def absorbed(last: OomMessage, new: OomMessage, *, raised_once: bool) -> OomMessage | None:
    """`last` with what `new` adds to it, where both tell of the same failure; else None.

    Args:
        last: an earlier message of the same process.
        new: the later one.
        raised_once: whether equal figures in both are one exception's.
    """
    gap = new.line - last.line
    if last.kind != new.kind or gap > NEAR_SAME:
        return None
    if last.reading.device is not None and new.reading.device not in (None, last.reading.device):
        return None
    if _names_others(last.reading, new.reading):
        return None
    one, two = last.reading.figures, new.reading.figures
    if _is_cut_copy(last, new):
        return replace(last, times=last.times + 1)
    if _is_cut_copy(new, last):
        return replace(new, line=last.line, times=last.times + 1, rank=_first(last.rank, new.rank))
    if len(one) >= _SURE and dict(one) == dict(two):
        return replace(last, times=last.times + 1) if raised_once or not gap else None
    if gap > NEAR or not _agree(one, two, reworded=last.reading.wording != new.reading.wording):
        return None
    if last.kind.startswith("torch") and one and two:
        return None
    shown = new if last.reading.wording == tensorflow.STATS else last
    rank = _first(last.rank, new.rank)
    return replace(last, reading=_joined(last.reading, new.reading), line=shown.line, text=shown.text, rank=rank)


def repeats(earlier: OomMessage, between: OomMessage, new: OomMessage) -> bool:
    """Whether `new` is `earlier` word for word, as where a program asks for the same after another of its refusals.

    What stands between tells of that one in other words; else it may be another process that prints the same.
    """
    return (
        new.text == earlier.text
        and new.kind == earlier.kind
        and new.reading.device == earlier.reading.device
        and 0 < len(new.reading.figures) < _SURE
        and between.reading.wording != new.reading.wording
        and new.line - earlier.line <= NEAR
    )


def _is_cut_copy(last: OomMessage, new: OomMessage) -> bool:
    """Whether `new` is a copy of `last` that ends in the midst of a sentence, as where an excerpt ends."""
    one, two = last.reading.figures, new.reading.figures
    told = _LEFT_OUT.sub("", _told(new))
    begun = told.rstrip(_ELLIPSIS)
    if told == f"{begun}." and _told(last).startswith(told):
        return False  # the sentence is finished: a whole copy
    if len(two) < _SURE or not (begun[-1:].isalnum() or begun[-1:] == "_") or not _told(last).startswith(begun):
        return False
    return begun != _told(last) and all(one.get(name) == figure for name, figure in two.items())


def _told(message: OomMessage) -> str:
    """The message and what follows it, without blanks."""
    return "".join(message.text.split()) + str(message.reading.values.get("after", ""))


def _names_others(last: Reading, new: Reading) -> bool:
    """Whether both name what is theirs, and not the same; what calls the kernel's killer has none killed yet."""
    own = [(last.values.get(name), new.values.get(name)) for name in _OWN]
    if any(one is not None and two is not None and one != two for one, two in own):
        return True
    before, after = (reading.values.get("pid") or reading.values.get("pid2") for reading in (last, new))
    return before is not None and (
        before != after if after is not None else not new.values.keys().isdisjoint(("name", "by"))
    )


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
    clearer = last.wording in _VAGUE or (last.wording in _WHOEVER and new.wording not in _WHOEVER)
    clearer = clearer or ("full" in new.values and "full" not in last.values)
    main = new if clearer or len(new.figures) > len(last.figures) else last
    figures = {**new.figures, **{name: _sharper(one, new.figures.get(name)) for name, one in last.figures.items()}}
    values = {**new.values, **last.values}
    if _SHORT in str(new.values.get("status", "")).lower():
        values["status"] = new.values["status"]  # of several algorithms that a library tried, it may be the last's
    return replace(
        main, start=last.start, end=last.end, figures=figures, values=values, device=_first(last.device, new.device)
    )


def _sharper(one: Figure, two: Figure | None) -> Figure:
    """`one`, or the exact size `two` of which it is the rounded one."""
    return two if two is not None and not two.off_by and one.low <= two.value <= one.high else one


def _first(one: int | None, two: int | None) -> int | None:
    return two if one is None else one
