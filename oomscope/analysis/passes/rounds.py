"""The passes of the loop that failed, where a report counts in those and not in steps.

A validation that runs out of memory after twenty steps of training is told by its own passes: in steps of the optimizer
all of them are what comes after the last.
"""

from __future__ import annotations

from oomscope.analysis.passes.failing_pass import failing_run
from oomscope.analysis.passes.records import FailingPass, Steps
from oomscope.analysis.passes.steps import passes_of
from oomscope.analysis.study import DeviceStudy

LEAST_PASSES = 3
"""With fewer there is little to compare, and the steps say more."""


def find_passes(
    study: DeviceStudy, entry: int, failing: FailingPass | None, told: tuple[int | None, ...]
) -> Steps | None:
    """The passes of one run of the loop that `entry` is part of; None where the steps are those, or say more.

    What the program itself has marked as its steps is not replaced, and where a headline counts the passes of another
    loop there is no third count.

    Args:
        study: of the device.
        entry: of the failed request.
        failing: the pass that it was made in.
        told: the numbers of passes that the headline speaks of; empty where it counts those of all runs.
    """
    steps = study.steps
    if failing is None or any(one != failing.completed for one in told):
        return None
    if not steps.by_optimizer and steps.source not in ("inferred", "none"):
        return None
    run = failing_run(study, entry)
    if run is None or run.thread or len(run.starts) < LEAST_PASSES:
        return None
    passes = passes_of(run, study.history, 0 if told else failing.before)
    return None if passes.boundaries == steps.boundaries else passes
