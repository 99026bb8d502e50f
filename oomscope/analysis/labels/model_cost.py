"""The model's bill: what training these parameters must cost, against what is there."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.kinds import ACTIVATION, GRADIENT, OPTIMIZER_STATE, PARAMETER, TEMPORARY
from oomscope.analysis.records import Bill
from oomscope.analysis.study import DeviceStudy
from oomscope.history import DeviceHistory
from oomscope.model import BoolArray, Snapshot, UInt8Array

_ITEM_SIZES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int8": 1, "uint8": 1}
_FULL_PRECISION = 4

PARAMETERS, GRADIENTS, OPTIMIZER_STATES, WORKING_SET = (
    "parameters", "gradients", "optimizer_state", "activations_and_temporaries",
)  # fmt: skip
"""The rows of a bill; `oomscope.wording.labels` has what they are called."""


def make_bill(study: DeviceStudy, at_entry: int) -> Bill | None:
    """The bill of one device once `at_entry` has happened; None where no parameters are known.

    A gradient is as large as its parameter; Adam keeps two states a parameter, and in mixed precision those and a
    master copy stand in float32 beside parameters in 16 bits (4P + 4P + 8P, or 2P + 2P + 12P).

    Args:
        study: of the device.
        at_entry: the instant that it is about.
    """
    snapshot, history, categories = study.snapshot, study.history, study.categories
    live = history.lifetimes.allocated_at(at_entry)
    there = np.bincount(categories[live], weights=history.size[live].astype(np.float64), minlength=9).astype(np.int64)
    parameters = int(there[PARAMETER])
    if not parameters:
        return None
    recorded = _recorded_item_size(snapshot, history.index)
    states = int(there[OPTIMIZER_STATE])
    item = recorded or (2 if states > 3.2 * parameters else _FULL_PRECISION)
    count = _elements(history, categories, live, item)
    trains = bool(np.any(categories == GRADIENT))
    rows: list[tuple[str, int | None, int]] = [(PARAMETERS, count * item, parameters)]
    rows.append((GRADIENTS, count * item if trains else None, int(there[GRADIENT])))
    rows.append((OPTIMIZER_STATES, _expected_states(history, categories, live, count, item), states))
    rows.append((WORKING_SET, None, int(there[ACTIVATION] + there[TEMPORARY])))
    return Bill(count, parameters, tuple(rows), "recorded" if recorded else "inferred")


def _elements(history: DeviceHistory, categories: UInt8Array, live: BoolArray, item: int) -> int:
    """How many numbers the live parameters hold: what was asked for, not what was given."""
    rows = np.flatnonzero(live & (categories == PARAMETER))
    requested = history.lifetimes.requested[rows]
    return int(np.where(requested >= 0, requested, history.size[rows]).sum()) // item


def _expected_states(
    history: DeviceHistory, categories: UInt8Array, live: BoolArray, count: int, item: int
) -> int | None:
    """What the optimizer keeps for all parameters: as many states a parameter as those have that it has begun with.

    None where it has made none yet: nothing then says which optimizer it is.
    """
    requested = history.lifetimes.requested
    states = requested[live & (categories == OPTIMIZER_STATE)]
    parameters, of_size = np.unique(requested[live & (categories == PARAMETER)], return_counts=True)
    wide = _FULL_PRECISION // item if item < _FULL_PRECISION and not np.isin(states, parameters).any() else 1
    each = np.array([np.count_nonzero(states == size * wide) for size in parameters]) / of_size
    made = each > 0
    if not made.any():
        return None
    order = np.argsort(each[made])
    weight = np.cumsum((parameters * of_size)[made][order])
    middle = float(each[made][order][np.searchsorted(weight, weight[-1] / 2)])
    return count * item * wide * max(1, round(middle))


def _recorded_item_size(snapshot: Snapshot, device: int) -> int | None:
    """Bytes of one element of most of the recorded parameters."""
    total: dict[int, int] = {}
    for tensor in snapshot.recorded.tensors_on(device):
        size = _ITEM_SIZES.get((tensor.dtype or "").rpartition(".")[2])
        if size and tensor.category == "parameter":
            total[size] = total.get(size, 0) + (tensor.bytes or 0)
    return max(total, key=lambda size: total[size]) if total else None
