"""A checkpoint on the card beside what was copied from it: told from the trace alone.

``torch.load`` and safetensors put a checkpoint's tensors on the card. ``load_state_dict`` copies them into tensors that
were there, or that an optimizer makes of them, and the checkpoint serves no more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oomscope.analysis.labels.categories import OPTIMIZER_STATE, PARAMETER
from oomscope.analysis.labels.size_matching import LEAST_SIZES, NEARLY_ALL, one_for_each
from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.model import BoolArray, Frame, IntArray, StackTable, package_path
from oomscope.model.ordering import ascending

LEAST_TENSORS = 4
"""Of fewer, equal sizes may be chance."""
MOSTLY = 0.5
"""Of the bytes that were loaded: what must come again. The rest may be in use as it was loaded."""
_LOADS = {
    "torch/serialization.py": ("restore_location", "load", "_load"),
    "safetensors/torch.py": ("load", "load_file"),
}
_COPIES = ("load_state_dict", "load_model")


class LoadedCopies(NamedTuple):
    """`bytes` that were loaded at `place` and come again, tensor for tensor, among parameters and states.

    `rows` are their lifetimes.
    """

    bytes: int
    place: Location | None
    rows: IntArray


def find_loaded_copies(study: DeviceStudy, entry: int) -> LoadedCopies | None:
    """What a checkpoint keeps at `entry`; None where none was loaded twice over, or it is still being copied from."""
    loads, asking = _through_loads(study), int(study.history.trace.stack[entry])
    if loads[asking] or any(frame.name in _COPIES for frame in study.snapshot.stacks[asking]):
        return None
    return _found(study, _twice(study, entry, loads))


def find_loading(study: DeviceStudy, entry: int) -> LoadedCopies | None:
    """What a load underway at `entry` has put on the card, beside tensors of the same sizes that it is to fill."""
    loads, asking = _through_loads(study), int(study.history.trace.stack[entry])
    if not loads[asking] or not len(_twice(study, entry, loads)):
        return None
    lifetimes, caller_of = study.history.lifetimes, study.sites.caller_of
    loads[:-1] &= caller_of == caller_of[asking]  # another load may have come before this one
    return _found(study, np.flatnonzero(lifetimes.allocated_at(entry) & loads[lifetimes.stack]))


def _through_loads(study: DeviceStudy) -> BoolArray:
    """bool[stacks + 1]: which stacks go through the loading of a checkpoint."""
    stacks = study.snapshot.stacks
    return _through(stacks, [frame for frame in stacks.frames if _loads(frame)])


def _twice(study: DeviceStudy, entry: int, loads: BoolArray) -> IntArray:
    """Numbers of the lifetimes: what was loaded and is there a second time, among parameters and states."""
    lifetimes = study.history.lifetimes
    alive = lifetimes.allocated_at(entry)
    rows = np.flatnonzero(alive & loads[lifetimes.stack])
    lasting = (study.categories == PARAMETER) | (study.categories == OPTIMIZER_STATE)
    others = np.flatnonzero(alive & lasting & ~loads[lifetimes.stack])
    return _copied(study.history.size, rows, others, lifetimes.born[rows]) if len(rows) else rows


def _found(study: DeviceStudy, rows: IntArray) -> LoadedCopies | None:
    """`rows` with their bytes and the line that loads; None for so few that their sizes may be chance."""
    size, stack = study.history.size[rows], study.history.lifetimes.stack[rows]
    if len(rows) < LEAST_TENSORS or len(ascending(size)) < LEAST_SIZES:
        return None
    largest = int(stack[np.argmax(size)])
    return LoadedCopies(int(size.sum()), study.sites.location(int(study.sites.caller_of[largest])), rows)


def _copied(size: IntArray, rows: IntArray, others: IntArray, born: IntArray) -> IntArray:
    """Those of `rows` that were copied from: most of what was loaded, or several copies of a whole model.

    A checkpoint may hold the model, an average of it, and two moments, of which only the first is copied.
    """
    twice = rows[one_for_each(size[rows], born, size[others])]
    alike = rows[np.isin(size[rows], size[others])]
    shared, loaded = int(size[twice].sum()), int(size[rows].sum())
    if shared >= NEARLY_ALL * int(size[others].sum()) and int(size[alike].sum()) >= NEARLY_ALL * loaded:
        return alike
    return twice if shared >= MOSTLY * loaded else twice[:0]


def _loads(frame: Frame) -> bool:
    return frame.name in _LOADS.get(package_path(frame.filename) or "", ())


def _through(stacks: StackTable, frames: list[Frame]) -> BoolArray:
    """bool[stacks + 1]: which stacks have one of `frames`; the last is that of `NO_STACK`."""
    wanted = set(frames)
    return stacks.holding(np.array([frame in wanted for frame in stacks.frames], np.bool_))
