"""What grows: sites whose live bytes rise from pass to pass of a loop and never come back.

Three ways to grow are told apart: generations (every pass leaves something behind), reallocation (a block is replaced
by a larger one again and again, as `torch.cat` does with a cache), and growth over time where no loop is known.

A model, its gradients, its optimizer's states and libraries' workspaces are made once and no growth.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.passes.candidates import Candidates
from oomscope.analysis.passes.generations import find_generations
from oomscope.analysis.passes.growth_over_time import grown_over_time
from oomscope.analysis.passes.loop_that_matters import loop_that_matters
from oomscope.analysis.passes.made_once import made_once
from oomscope.analysis.passes.reallocation import find_reallocations
from oomscope.analysis.passes.records import Growth
from oomscope.analysis.study import DeviceStudy

LEAST_RELATIVE_GAIN = 0.1
"""Of its early size: what a block must have gained by reallocation. Less is a batch that was a little longer."""


def find_growth(study: DeviceStudy, at_entry: int) -> tuple[Growth, ...]:
    """The sites that grow until `at_entry`, most live bytes first.

    Args:
        study: of the device.
        at_entry: the instant that it is about.
    """
    return study.once(("growth", at_entry), lambda: _find_growth(study, at_entry))


def _find_growth(study: DeviceStudy, at_entry: int) -> tuple[Growth, ...]:
    candidates = Candidates.of(study, at_entry)
    found = _reallocated(study, candidates)
    found += find_generations(study, candidates)
    if not found:
        found += grown_over_time(study, candidates)
    found = [one for one in found if not _is_made_once(study, candidates, one)]
    return tuple(sorted(found, key=lambda one: -one.live_bytes))


def _is_made_once(study: DeviceStudy, candidates: Candidates, growth: Growth) -> bool:
    """Whether most of it comes once with parameters that were there before."""
    rows = candidates.rows_like(growth)
    rows = rows[candidates.history.lifetimes.allocated_at(candidates.at)[rows]]
    size, once = candidates.history.size[rows], made_once(study, candidates.at)[rows]
    return 2 * int(size[once].sum()) > int(size.sum())


def _reallocated(study: DeviceStudy, candidates: Candidates) -> list[Growth]:
    """Blocks that are replaced by larger ones; they are taken out of `candidates`."""
    found = []
    history = candidates.history
    run = loop_that_matters(study, candidates.at)
    for one in find_reallocations(history, candidates.eligible, candidates.at):
        early = int(history.size[one.live].sum()) - one.grown
        if one.grown >= max(candidates.least, LEAST_RELATIVE_GAIN * early):
            found.append(
                candidates.growth(
                    one.live, "reallocation", per_pass=one.per_round, generations=one.rounds, fit=one.fit,
                    spared=one.grown,
                    loop=study.loops.location(run) if run is not None else None,
                )
            )  # fmt: skip
    for growth in found:
        candidates.eligible[candidates.rows_like(growth)] = False
    return found


def relief_in_passes(spare_bytes: int, growth: tuple[Growth, ...]) -> float | None:
    """How many more passes `spare_bytes` would have served, at the pace at which `growth` goes on.

    What buys only a few more passes is not what the program lacks.

    Args:
        spare_bytes: what something would leave free beyond the request that failed.
        growth: as `find_growth` gives it.

    Returns:
        None where nothing grows from pass to pass, so that no number of passes uses it up.
    """
    pace = sum(one.bytes_per_step for one in growth if one.kind != "time" and one.bytes_per_step > 0)
    if not pace:
        return None
    return max(float(np.floor(spare_bytes / pace)), 0.0)
