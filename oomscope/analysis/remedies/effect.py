"""Whether a remedy alone would have let the failed request through: by replay where it is quick, else by arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from oomscope.allocator.program import Op, Program
from oomscope.allocator.replay import Replayer
from oomscope.analysis.passes.loop_that_matters import pass_begins
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.shortage import MARGIN
from oomscope.analysis.whatif.changes import freed_each_step
from oomscope.analysis.whatif.extraction import by_request
from oomscope.analysis.whatif.preparation import Subject, prepared
from oomscope.model import BoolArray

QUICK_STEPS = 150_000
"""Steps of a program that replays in about 0.2 s; a remedy may need a handful of replays."""


def enough_by_sum(circumstances: Circumstances, saves: int) -> bool | None:
    """Whether `saves` bytes less would have been enough: with margin, without the free holes; None in between.

    Enough for the pass underway, where a pass that finished tells how much more it will need, and for the rest of the
    state that an optimizer has begun to make.
    """
    case, (there, needs) = circumstances.shortage, circumstances.needs.state_to_come
    further = max((circumstances.needs.still_to_come or 0) - case.size, needs - there - case.size, 0)
    if case.spare(saves, case.limit.low) - further >= MARGIN * case.limit.low:
        return True
    return None if case.spare(saves + case.free.usable, case.limit.low) - further >= 0 else False


def served_if_freed(
    circumstances: Circumstances, rows: BoolArray, *, before: Sequence[int] | None = None
) -> bool | None:
    """Whether the request is served if `rows`, bool[lifetimes], are given back when their pass ends; None unknown.

    Args:
        circumstances: of the request.
        rows: what is given back.
        before: entries before which it is, where that is not when passes of the loop begin.
    """
    subject = replayable(circumstances)
    begins = pass_begins(circumstances.study, circumstances.request.entry) if before is None else np.array(before)
    if subject is None or not len(begins) or not rows.any():
        return None
    program = subject.extraction.program
    wanted = by_request(rows.astype(np.int64), subject.extraction.row) == 1
    freed, count = freed_each_step(program, wanted, begins.tolist())
    return _serves(circumstances, subject, freed) if count else None


def served_if_scaled(circumstances: Circumstances, rows: BoolArray, factor: float, *, request: bool) -> bool | None:
    """Whether the request is served if `rows`, bool[lifetimes], are `factor` as large; None unknown.

    Args:
        circumstances: of the request.
        rows: what becomes smaller.
        factor: below 1.
        request: whether the failed request becomes smaller as well.
    """
    subject = replayable(circumstances)
    if subject is None:
        return None
    program = subject.extraction.program
    wanted = by_request(rows.astype(np.int64), subject.extraction.row) == 1
    if request:
        failed = (program.op == Op.TRY_MALLOC) & (program.entry == circumstances.request.entry)
        wanted[program.argument[failed]] = True
    size = np.where(wanted, np.maximum(np.round(program.size * factor), 1), program.size).astype(np.int64)
    return _serves(circumstances, subject, replace(program, size=size))


def replayable(circumstances: Circumstances) -> Subject | None:
    """The recorded run, if its replay is exact, complete and quick."""
    answer = circumstances.whatif
    if answer is None or not answer.self_check.exact:
        return None
    subject = prepared(circumstances.study)
    return subject if subject.complete and len(subject.extraction.program.op) <= QUICK_STEPS else None


def _serves(circumstances: Circumstances, subject: Subject, program: Program) -> bool:
    replay = Replayer(program, subject.release).run(subject.config, subject.limit.limit, subject.addresses())
    return replay.serves(circumstances.request.entry)
