"""Keep numbers, not tensors with their graph: ``.item()``, ``.detach()``, or no graph in the first place."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oomscope.analysis.remedies.effect import enough_by_sum, served_if_freed
from oomscope.analysis.remedies.kept_rows import kept_rows
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice, Suspect
from oomscope.analysis.verdict.suspects import reaching

SLUG = "detach_what_is_kept"
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
    rows = kept_rows(circumstances)
    saves = piled.grown if holder is None else holder.earlier_bytes
    enough = served_if_freed(circumstances, rows) if np.any(rows) else None
    yield Advice(
        SLUG if told is None else f"{SLUG}.{_way(told, alone=holder is not None)}",
        {
            "holder": told.holder if told else None,
            "passes": piled.passes,
            "per_pass": piled.per_pass,
            "places": _places(circumstances),
        },
        saves,
        enough_by_sum(circumstances, saves) if enough is None else enough,
        at=told.at if told else None,
    )


def _way(told: Suspect, *, alone: bool) -> str:
    """Whether tensors are gathered in an object, or one tensor is carried from pass to pass."""
    return "holder" if alone and told.kind not in _ONE_TENSOR else "carried"


def _places(circumstances: Circumstances) -> tuple[object, ...]:
    """The lines whose blocks are kept, most bytes first."""
    return tuple(dict.fromkeys(one.site or one.caller for one in circumstances.growth if one.kind == "generations"))[:3]
