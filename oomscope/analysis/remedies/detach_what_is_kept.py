"""Keep numbers, not tensors with their graph: ``.item()``, ``.detach()``, or no graph in the first place."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oomscope.analysis.remedies.effect import enough_by_sum, served_if_freed
from oomscope.analysis.remedies.kept_rows import kept_rows
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.clauses import also_held
from oomscope.analysis.verdict.records import Advice

SLUG = "detach_what_is_kept"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where what is kept from pass to pass keeps the graph that made it."""
    piled = circumstances.piled
    holder = piled.holder
    grows = any(one.kind == "generations" for one in circumstances.growth)
    if not (holder.keeps_graph if holder is not None else grows and circumstances.keeps_graphs):
        return
    rows = kept_rows(circumstances)
    saves = piled.grown
    enough = served_if_freed(circumstances, rows) if np.any(rows) else None
    reached = next((one.values["holder"] for one in also_held(circumstances, piled.grown)), None)
    yield Advice(
        f"{SLUG}.holder" if holder is not None else f"{SLUG}.reached" if reached is not None else SLUG,
        {
            "holder": holder.holder if holder is not None else reached,
            "passes": piled.passes,
            "per_pass": piled.per_pass,
            "places": _places(circumstances),
        },
        saves,
        enough_by_sum(circumstances, saves) if enough is None else enough,
        at=holder.at if holder else None,
    )


def _places(circumstances: Circumstances) -> tuple[object, ...]:
    """The lines whose blocks are kept, most bytes first."""
    return tuple(dict.fromkeys(one.site or one.caller for one in circumstances.growth if one.kind == "generations"))[:3]
