"""How many states an optimizer keeps for each parameter, and how large they are: from the lines that make them."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.kinds import OPTIMIZER_STATE
from oomscope.analysis.labels.size_matching import SCALAR
from oomscope.analysis.study import DeviceStudy
from oomscope.frozen import frozen
from oomscope.model import NO_STACK, IntArray, package_path
from oomscope.model.ordering import among, ascending

USUAL_STATES = {
    "adam": 2, "adamw": 2, "nadam": 2, "radam": 2, "adamax": 2, "sparseadam": 2, "fusedadam": 2, "lamb": 2,
    "fusedlamb": 2, "adadelta": 2, "rprop": 2, "rmsprop": 1, "adagrad": 1, "asgd": 1, "lion": 1, "muon": 1,
}  # fmt: skip
"""As large as the parameter, for each, by the name of the class or of its file. Options may add one (amsgrad, momentum
of RMSprop); what SGD keeps depends on its options alone."""
_FACTORS = (1.0, 2.0, 0.5, 0.25)
"""Of a parameter's bytes: its own type, float32 beside 16 bits, 16 bits beside float32, 8 bits beside float32."""
_NEARLY_ALL = 0.9
"""Of the bytes that a line made: so many must be as large as parameters, else it makes another kind of state."""


@frozen(eq=False)
class StatesOfLine:
    """The states that one line of an optimizer makes.

    Attributes:
        line: the line; -1 where the states were there before the recording.
        factor: the size of a state as a multiple of its parameter's.
        each: how many it makes for each parameter, at least 1.
        parameters: int64[states], the bytes of the parameters that they belong to.
    """

    line: int
    factor: float
    each: int
    parameters: IntArray


def states_of_lines(study: DeviceStudy, at_entry: int, parameters: IntArray) -> tuple[StatesOfLine, ...]:
    """What each line has begun to make for the parameters; empty where most states are of other sizes than those.

    Args:
        study: of the device.
        at_entry: the states that are allocated once this entry has happened.
        parameters: int64[parameters], bytes asked for.
    """
    lifetimes = study.history.lifetimes
    asked = np.where(lifetimes.requested >= 0, lifetimes.requested, study.history.size)
    rows = np.flatnonzero(lifetimes.allocated_at(at_entry) & (study.categories == OPTIMIZER_STATE) & (asked > SCALAR))
    line = study.roles.site_line[lifetimes.stack[rows]]
    found = [_of_line(one, asked[rows[line == one]], parameters) for one in ascending(line).tolist()]
    lines = tuple(one for one in found if one is not None)
    fitting = sum(float(line.parameters.sum()) * line.factor for line in lines)
    # An optimizer that factors its states (Adafactor) keeps whole ones for vectors alone.
    return lines if fitting >= _NEARLY_ALL * asked[rows].sum() else ()


def _of_line(line: int, states: IntArray, parameters: IntArray) -> StatesOfLine | None:
    size, count = np.unique(parameters, return_counts=True)
    for factor in _FACTORS:
        scaled = (size * factor).astype(np.int64)
        fits = among(states, scaled)
        if states[fits].sum() < _NEARLY_ALL * states.sum():
            continue
        made, times = np.unique(states[fits], return_counts=True)
        each = times / count[np.searchsorted(scaled, made)]
        order = np.argsort(each)
        weight = np.cumsum((made * times)[order])
        middle = float(each[order][np.searchsorted(weight, weight[-1] / 2)])
        whole = size[np.searchsorted(scaled, states[fits])]
        return StatesOfLine(line, factor, max(1, round(middle)), whole)
    return _of_flat_parameters(line, states, parameters)


def _of_flat_parameters(line: int, states: IntArray, parameters: IntArray) -> StatesOfLine | None:
    """Where several parameters share one block (those of an RNN), only the sum tells."""
    ratio = float(states.sum()) / max(float(parameters.sum()), 1.0)
    each = round(ratio)
    if each < 1 or abs(ratio - each) > 1 - _NEARLY_ALL:
        return None
    return StatesOfLine(line, 1.0, each, np.tile(parameters, each))


def usual_states(study: DeviceStudy, at_entry: int) -> int | None:
    """How many states its optimizer usually keeps for each parameter; None where no or several names tell.

    None as well where a step has ended and left nothing: then the states are somewhere else.
    """
    made = study.history.lifetimes.born[study.categories == OPTIMIZER_STATE]
    if not np.any(made <= at_entry) and _has_stepped(study, at_entry):
        return None
    names = {_class_name(annotation.name) for annotation in study.snapshot.annotations} | _files(study)
    found = {USUAL_STATES[name] for name in names if name in USUAL_STATES}
    return found.pop() if len(found) == 1 else None


def _has_stepped(study: DeviceStudy, at_entry: int) -> bool:
    """Whether a step of the optimizer has ended once `at_entry` has happened."""
    trace = study.history.trace
    ends = [one.time_us for one in study.snapshot.annotations if one.stage == "END" and ".step#" in one.name]
    return bool(ends) and 0 <= at_entry < len(trace) and trace.timed and min(ends) <= int(trace.time_us[at_entry])


def _class_name(annotation: str) -> str:
    """``adamw`` of ``Optimizer.step#AdamW.step``; empty for other ranges."""
    before, _, behind = annotation.partition("#")
    return behind.partition(".")[0].lower() if before.startswith("Optimizer.") else ""


def _files(study: DeviceStudy) -> set[str]:
    """The names of torch's own optimizer files among the frames that made states."""
    lifetimes, stacks = study.history.lifetimes, study.snapshot.stacks
    made = ascending(lifetimes.stack[study.categories == OPTIMIZER_STATE])
    paths = {package_path(frame.filename) or "" for one in made.tolist() if one != NO_STACK for frame in stacks[one]}
    return {path.rpartition("/")[2].removesuffix(".py") for path in paths if path.startswith("torch/optim/")}
