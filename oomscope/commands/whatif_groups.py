"""What ``oomscope whatif`` knows of a program beyond its requests: steps, phases, categories, and whether it grows."""

from __future__ import annotations

from oomscope.analysis.labels.categories import categorize
from oomscope.analysis.labels.phases import phase_of
from oomscope.analysis.passes.growth import find_growth
from oomscope.analysis.passes.steps import find_steps
from oomscope.analysis.records import CATEGORIES, PHASES, Growth
from oomscope.history import DeviceHistory
from oomscope.model import Action, BoolArray, Note, Snapshot, note
from oomscope.wording.labels import CATEGORY_LABELS


def examine(
    snapshot: Snapshot, history: DeviceHistory
) -> tuple[tuple[int, ...], dict[str, BoolArray], tuple[Note, ...]]:
    """The entries where steps begin; each phase and category, bool[lifetimes], by its name; what to know of growth."""
    phases = phase_of(snapshot, history)
    steps = find_steps(snapshot, history, phases)
    categories, _ = categorize(snapshot, history, steps, phases)
    named = {CATEGORY_LABELS[name]: categories == number for number, name in enumerate(CATEGORIES)}
    named |= {name: phases == number for number, name in enumerate(PHASES)}
    if not steps.boundaries:
        return (), named, ()
    ooms = history.trace.entries(Action.OOM)
    at = int(ooms[-1]) if len(ooms) else len(history.trace) - 1
    growth = find_growth(snapshot, history, steps, phases, categories, at)
    return steps.boundaries, named, growth_notes(growth)


def growth_notes(growth: tuple[Growth, ...]) -> tuple[Note, ...]:
    """What growth from step to step means for a run with more memory."""
    each = sum(one.bytes_per_step for one in growth if one.kind != "time" and not one.within_step)
    if each <= 0:
        return ()
    return (note("whatif.grows", bytes_per_step=each),)
