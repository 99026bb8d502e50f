"""Keep numbers, not tensors with their graph: ``.item()``, ``.detach()``, or no graph in the first place."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oomscope.analysis.passes.callers import called_at
from oomscope.analysis.passes.finished import training_entries
from oomscope.analysis.passes.loop_that_matters import pass_begins
from oomscope.analysis.remedies.effect import enough_by_sum, served_if_freed
from oomscope.analysis.remedies.kept_rows import kept_rows
from oomscope.analysis.remedies.kept_values import KeptValues, kept_values
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice, Suspect
from oomscope.analysis.verdict.suspects import reaching
from oomscope.model import BoolArray

SLUG = "detach_what_is_kept"
WORTH_MOVING = 0.1
"""Of what can be saved; where the values themselves take less, they need not leave the device."""
OFTEN = 0.25
"""Of the times that something more is kept: a validation after each training is no training."""
_ONE_TENSOR = ("graph", "tensor")
"""Kinds of holders that are one tensor, whose graph reaches back through all passes."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where what is kept from pass to pass keeps the graph that made it."""
    piled = circumstances.piled
    holder = piled.holder
    told = holder or reaching(circumstances.suspects, piled.grown)
    grows = any(one.kind == "generations" for one in circumstances.growth)
    if not (holder.keeps_graph if holder is not None else grows and circumstances.keeps_graphs):
        return
    if told is not None and told.kind == "exception":
        return  # it is no tensor that is stored
    rows = kept_rows(circumstances)
    saves = piled.grown if holder is None else holder.earlier_bytes
    enough = served_if_freed(circumstances, rows) if np.any(rows) else None
    kept = KeptValues() if told is None else kept_values(circumstances.study, circumstances.request.entry, told.holder)
    yield Advice(
        SLUG if told is None else f"{SLUG}.{_way(told, kept, alone=holder is not None)}",
        {
            "holder": told.holder if told else None,
            "is_state": bool(told) and not kept.numbers,
            "own": kept.own if kept.own >= WORTH_MOVING * saves else None,
            "backward": _backward(circumstances, rows),
            "loop": circumstances.failing_pass.loop if circumstances.failing_pass else None,
            "passes": piled.passes,
            "per_pass": piled.per_pass,
            "places": _places(circumstances),
            "called": called_at(circumstances.study, told.stores) if told else None,
        },
        saves,
        enough_by_sum(circumstances, saves) if enough is None else enough,
        at=told.at if told else None,
    )


def _way(told: Suspect, kept: KeptValues, *, alone: bool) -> str:
    """Which mistake it is: values are gathered in an object, or one value is carried from pass to pass.

    A number that reaches the graphs of all passes of recurrent layers, and does not keep them alone, is a loss whose
    passes are chained by the layers' state.
    """
    if told.holder.endswith(".grad"):
        return "gradient"
    if alone and told.kind not in _ONE_TENSOR:
        return {True: "numbers", False: "tensors", None: "holder"}[kept.numbers]
    if kept.recurrent and not (alone and kept.numbers):
        return "state"
    return "number" if kept.numbers else "carried"


def _backward(circumstances: Circumstances, rows: BoolArray) -> str:
    """Whether the program trains while `rows`, bool[lifetimes], pile up.

    ``within``: between most of the passes that left something, or often; ``none``: not, though it has trained before;
    ``unknown``: it was never seen to, so that what is kept may be gathered for a backward to come.
    """
    study, entry = circumstances.study, circumstances.request.entry
    telling, lifetimes = training_entries(study), study.history.lifetimes
    before = telling[telling <= entry]
    kept = np.flatnonzero(rows)
    if not len(before) or not len(kept):
        return "within" if len(before) else "unknown"
    stacks, count = np.unique(lifetimes.stack[kept], return_counts=True)
    born = np.sort(lifetimes.born[kept[lifetimes.stack[kept] == stacks[np.argmax(count)]]])
    passes, first = np.unique(np.searchsorted(pass_begins(study, entry), born, side="right"), return_index=True)
    between = np.diff(np.searchsorted(before, born[first])) > 0
    return "within" if len(passes) < 2 or np.mean(between) >= OFTEN else "none"


def _places(circumstances: Circumstances) -> tuple[object, ...]:
    """The lines whose blocks are kept, most bytes first."""
    return tuple(dict.fromkeys(one.site or one.caller for one in circumstances.growth if one.kind == "generations"))[:3]
