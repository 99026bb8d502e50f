"""Under which names of the program each allocation was made, and each request failed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import numpy as np

from oomscope.analysis.said.range_names import is_programs, phase_named
from oomscope.analysis.said.ranges import NO_RANGE, Ranges
from oomscope.analysis.said.records import Said
from oomscope.history import DeviceHistory
from oomscope.model import Snapshot, Trace, UInt8Array
from oomscope.model.arrays import StackArray

MOST_DEEP = 6
"""Of the ranges around one another, so many names are said: the outermost ones."""


def said_at(snapshot: Snapshot, history: DeviceHistory, ranges: Ranges, entry: int) -> Said:
    """What the program had said when entry `entry` was made."""
    trace = history.trace
    number = int(trace.pool[entry])
    pool = snapshot.pools[number] if number > 0 else None
    return Said(
        ranges=own_names(ranges, ranges.around(entry)),
        metadata=text_at(trace, trace.user_metadata, entry),
        compiled=text_at(trace, trace.compile_context, entry),
        pool=pool,
        pool_name=None if pool is None else snapshot.recorded.pool_name(pool),
    )


def own_names(ranges: Ranges, numbers: Iterable[int]) -> tuple[str, ...]:
    """The program's own names among `numbers`, in their order, each once."""
    names = dict.fromkeys(ranges.names[number] for number in numbers if is_programs(ranges.names[number]))
    return tuple(islice(names, MOST_DEEP))


def text_at(trace: Trace, column: StackArray | None, entry: int) -> str | None:
    """The text of an entry in one of the columns of numbers in `texts`; None where it has none."""
    number = -1 if column is None else int(column[entry])
    return trace.texts[number] if number >= 0 else None


def phases_said(ranges: Ranges, phases: tuple[str, ...], none: int) -> UInt8Array:
    """uint8[entries]: the phase that the innermost range with such a name says; `none` where none does.

    Args:
        ranges: of the device.
        phases: the names, whose indices stand in the result.
        none: stands for no phase.
    """
    of_range = np.full(len(ranges) + 1, none, np.uint8)
    for number, (name, parent) in enumerate(zip(ranges.names, ranges.parent.tolist(), strict=True)):
        phase = phase_named(name)
        inherited = of_range[parent] if parent != NO_RANGE else none
        of_range[number] = inherited if phase is None else phases.index(phase)
    said: UInt8Array = of_range[ranges.innermost]
    return said
