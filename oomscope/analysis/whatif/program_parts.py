"""What a replay may be told to change beside places in the code: phases of the program, categories of memory."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.kinds import ACTIVATION, OPTIMIZER_STATE
from oomscope.analysis.labels.phases import BACKWARD, BEFORE_RECORDING, FORWARD, OPTIMIZER, OTHER
from oomscope.analysis.labels.stack_roles import Role
from oomscope.analysis.passes.growth import find_growth
from oomscope.analysis.records import CATEGORIES, PHASES
from oomscope.analysis.study import DeviceStudy
from oomscope.model import NO_STACK, Action, BoolArray, Note, UInt8Array, note

_PHASE_OF_ROLE = {Role.FORWARD: FORWARD, Role.BACKWARD: BACKWARD, Role.OPTIMIZER: OPTIMIZER}


def program_parts(study: DeviceStudy) -> dict[str, BoolArray]:
    """Each phase and category by its name: bool[lifetimes + refused requests], what belongs to it."""
    phases, categories = _refused(study)
    phases = np.concatenate([study.phases, phases])
    categories = np.concatenate([study.categories, categories])
    parts: dict[str, BoolArray] = {name: categories == number for number, name in enumerate(CATEGORIES)}
    return parts | {name: phases == number for number, name in enumerate(PHASES)}


def _refused(study: DeviceStudy) -> tuple[UInt8Array, UInt8Array]:
    """uint8[refused requests]: the phase and the category of each, as if it had been served.

    What the same line allocated before tells both. Else the phase is that of the stack or of the allocation before it,
    and what it asks for is a state in the optimizer and an activation elsewhere.
    """
    history, lifetimes = study.history, study.history.lifetimes
    ooms = history.trace.entries(Action.OOM)
    phases, categories = np.full(len(ooms), OTHER, np.uint8), np.full(len(ooms), ACTIVATION, np.uint8)
    for number, entry in enumerate(ooms.tolist()):
        stack = int(history.trace.stack[entry])
        earlier = np.flatnonzero(lifetimes.born < entry)
        same = earlier[lifetimes.stack[earlier] == stack] if stack != NO_STACK else earlier[:0]
        role = int(study.roles.role[stack])
        if len(same) and role != Role.UNFRAMED:
            last = same[np.argmax(lifetimes.born[same])]
            phases[number], categories[number] = study.phases[last], study.categories[last]
            continue
        if role == Role.UNFRAMED:
            phases[number] = BACKWARD
        elif len(earlier):
            before = int(study.phases[earlier[np.argmax(lifetimes.born[earlier])]])
            phases[number] = _PHASE_OF_ROLE.get(Role(role), OTHER if before == BEFORE_RECORDING else before)
        categories[number] = OPTIMIZER_STATE if phases[number] == OPTIMIZER else ACTIVATION
    return phases, categories


def growth_notes(study: DeviceStudy) -> tuple[Note, ...]:
    """What growth from step to step means for a run with more memory."""
    if not study.steps.boundaries:
        return ()
    ooms = study.history.trace.entries(Action.OOM)
    at = int(ooms[-1]) if len(ooms) else study.history.entries - 1
    each = sum(one.bytes_per_step for one in find_growth(study, at) if one.kind != "time" and not one.within_step)
    return (note("whatif.grows", bytes_per_step=each),) if each > 0 else ()
