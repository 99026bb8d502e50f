"""What a replay may be told to change beside places in the code: phases of the program, categories of memory."""

from __future__ import annotations

from oomscope.analysis.passes.growth import find_growth
from oomscope.analysis.records import CATEGORIES, PHASES
from oomscope.analysis.study import DeviceStudy
from oomscope.model import Action, BoolArray, Note, note


def program_parts(study: DeviceStudy) -> dict[str, BoolArray]:
    """Each phase and category by its name: bool[lifetimes], what belongs to it."""
    parts = {name: study.categories == number for number, name in enumerate(CATEGORIES)}
    return parts | {name: study.phases == number for number, name in enumerate(PHASES)}


def growth_notes(study: DeviceStudy) -> tuple[Note, ...]:
    """What growth from step to step means for a run with more memory."""
    if not study.steps.boundaries:
        return ()
    ooms = study.history.trace.entries(Action.OOM)
    at = int(ooms[-1]) if len(ooms) else study.history.entries - 1
    each = sum(one.bytes_per_step for one in find_growth(study, at) if one.kind != "time" and not one.within_step)
    return (note("whatif.grows", bytes_per_step=each),) if each > 0 else ()
