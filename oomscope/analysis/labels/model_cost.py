"""The model's bill: what training these parameters must cost, against what is there."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.attribution.held_blocks import live_rows
from oomscope.analysis.labels.kinds import ACTIVATION, GRADIENT, OPTIMIZER_STATE, PARAMETER, TEMPORARY, UNKNOWN
from oomscope.analysis.labels.optimizer_states import StatesOfLine, states_of_lines, usual_states
from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.labels.records import Bill
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.records import CATEGORIES
from oomscope.analysis.study import DeviceStudy
from oomscope.history import BEFORE
from oomscope.model import BoolArray, IntArray, Snapshot
from oomscope.model.ordering import is_any

_ITEM_SIZES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int8": 1, "uint8": 1}
_FULL_PRECISION, _HALF_PRECISION = 4, 2
_NEARLY_ALL = 0.9
"""Of the parameters' bytes. A few gradients are not as large as their parameter (sparse ones, those of views), so with
so many of them all parameters are trained."""

PARAMETERS, GRADIENTS, OPTIMIZER_STATES, WORKING_SET = (
    "parameters", "gradients", "optimizer_state", "activations_and_temporaries",
)  # fmt: skip
"""The rows of a bill; `oomscope.wording.labels` has what they are called."""


def make_bill(study: DeviceStudy, at_entry: int) -> Bill | None:
    """The bill of one device once `at_entry` has happened; None where no parameters are known, or only a part of them.

    A gradient is as large as its parameter; Adam keeps two states a parameter, and in mixed precision those and a
    master copy stand in float32 beside parameters in 16 bits (4P + 4P + 8P, or 2P + 2P + 12P).

    Args:
        study: of the device.
        at_entry: the instant that it is about.
    """
    history, categories = study.history, study.categories
    allocated = history.lifetimes.allocated_at(at_entry)
    weights = history.size[allocated].astype(np.float64)
    there = np.bincount(categories[allocated], weights=weights, minlength=len(CATEGORIES)).astype(np.int64)
    replicas = int(history.size[allocated & _replicated(study)].sum())
    if there[PARAMETER] <= replicas or not _is_whole(study, allocated, int(there[PARAMETER])):
        return None
    asked = np.where(history.lifetimes.requested >= 0, history.lifetimes.requested, history.size)
    parameters = asked[allocated & _of_modules(study, at_entry)]
    lines = states_of_lines(study, at_entry, parameters)
    gradients = asked[allocated & (categories == GRADIENT)]
    trained = _trained(parameters, gradients, lines)
    states = int(asked[allocated & (categories == OPTIMIZER_STATE)].sum())
    expected = _expected_states(lines, usual_states(study, at_entry), trained, states)
    recorded = recorded_item_size(study.snapshot, study.index)
    # States twice as large as their parameters: float32 beside 16 bits.
    is_mixed = any(line.factor > 1 for line in lines)
    item = recorded or (_HALF_PRECISION if is_mixed else _FULL_PRECISION)
    elements = int(parameters.sum()) // item
    trains = bool(np.any(categories == GRADIENT))
    rows: tuple[tuple[str, int | None, int], ...] = (
        (PARAMETERS, elements * item, int(there[PARAMETER])),
        (GRADIENTS, trained if trains else None, int(there[GRADIENT])),
        (OPTIMIZER_STATES, expected, int(there[OPTIMIZER_STATE])),
        (WORKING_SET, None, int(there[ACTIVATION] + there[TEMPORARY])),
    )
    return Bill(elements, int(there[PARAMETER]), rows, "recorded" if recorded else "inferred")


def _of_modules(study: DeviceStudy, at_entry: int) -> BoolArray:
    """Which allocations are parameters: where the recording knows those of modules, no others, as of a checkpoint."""
    found: BoolArray = study.categories == PARAMETER
    known = [one.address for one in study.snapshot.recorded.tensors_on(study.index) if one.category == "parameter"]
    rows = live_rows(study, at_entry, [address for address in known if address is not None])
    named = np.zeros(len(found), np.bool_)
    named[rows[rows >= 0]] = True
    return found & named if (found & named).any() else found


def _replicated(study: DeviceStudy) -> BoolArray:
    """Which allocations are replicas of `DataParallel`: no optimizer knows them, and each forward makes new ones."""
    return np.asarray((study.roles.mark[study.history.lifetimes.stack] & int(Mark.REPLICA)) != 0)


def _is_whole(study: DeviceStudy, allocated: BoolArray, parameters: int) -> bool:
    """Whether the parameters that are known may be the whole model.

    They are a part where more bytes from before the recording are unknown than known; and where nothing is trained and
    as many parameters are dropped once a forward has run: then layers are loaded in turn.
    """
    lifetimes, size, categories = study.history.lifetimes, study.history.size, study.categories
    older = allocated & (lifetimes.born == BEFORE) & (categories == UNKNOWN)
    if int(size[older].sum()) > parameters:
        return False
    if np.any(is_any(categories, (GRADIENT, OPTIMIZER_STATE))):
        return True
    forwards = lifetimes.born[(study.phases == FORWARD) & (lifetimes.born > BEFORE)]
    ended = (lifetimes.freed < study.history.entries) & (lifetimes.freed > forwards.min(initial=study.history.entries))
    return int(size[ended & (categories == PARAMETER)].sum()) <= parameters


def _trained(parameters: IntArray, gradients: IntArray, lines: tuple[StatesOfLine, ...]) -> int:
    """Bytes of the parameters that are trained: as many of each size as have a gradient, or states.

    Gradients tell only once the optimizer has begun, for a backward may be underway.
    """
    size, count = np.unique(parameters, return_counts=True)
    if not lines:
        return int(parameters.sum())
    whole = [_count(gradients, size), *(_count(line.parameters, size) // line.each for line in lines)]
    trained = int((size * np.minimum(count, np.max(whole, axis=0))).sum())
    return trained if trained < _NEARLY_ALL * parameters.sum() else int(parameters.sum())


def _count(sizes: IntArray, wanted: IntArray) -> IntArray:
    """How many of `sizes` there are of each of the ascending `wanted`."""
    found = np.sort(sizes)
    return np.searchsorted(found, wanted, side="right") - np.searchsorted(found, wanted, side="left")


def _expected_states(lines: tuple[StatesOfLine, ...], usual: int | None, trained: int, states: int) -> int | None:
    """What the optimizer keeps for all trained parameters, though it may have made only a part of it yet.

    Each line that makes states makes them for every parameter, so the lines that have begun tell how much it will be.
    None where neither they nor the optimizer's name do.

    Args:
        lines: what they have begun to make.
        usual: how many states for each parameter its name stands for.
        trained: bytes of the parameters.
        states: bytes of the states that are there.
    """
    if not lines:
        return None if usual is None or states else usual * trained
    # Lines of a step that replaces older states make the same ones again.
    begun = max(
        sum(line.each * line.factor for line in lines if (line.line < 0) is is_older) for is_older in (True, False)
    )
    return round(max(begun, (usual or 0) * max(line.factor for line in lines)) * trained)


def recorded_item_size(snapshot: Snapshot, device: int) -> int | None:
    """Bytes of one element of most of the recorded parameters."""
    total: dict[int, int] = {}
    for tensor in snapshot.recorded.tensors_on(device):
        size = _ITEM_SIZES.get((tensor.dtype or "").rpartition(".")[2])
        if size and tensor.category == "parameter":
            total[size] = total.get(size, 0) + (tensor.bytes or 0)
    return max(total, key=lambda size: total[size]) if total else None
