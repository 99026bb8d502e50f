"""What a function of the program makes on its way to a loss of few numbers, as one that compares with many candidates.

It calls a loss by name, but no module, behind the last module of the forward. Its pieces are as independent as those of
that loss, which adds up a term for each sample.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.losses import LEAST, losses
from oomscope.analysis.ledger.passes import forwards
from oomscope.analysis.ledger.paths import paths
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray, Frame, FrameKind, IntArray, frame_kind, package_path
from oomscope.model.ordering import among, ascending


def made_for_losses(run: Run) -> BoolArray:
    """bool[requests]: what such functions make, and what goes backward through them and is as large."""
    found = np.zeros(len(run.size), np.bool_)
    named = losses(run)
    for rows, following in pairwise([*forwards(run), np.array([len(run.size)])]):
        own = _of_functions(run, rows, rows[named[rows]])
        own = own[run.size[own] >= LEAST]
        if len(own):
            found[own] = True
            found[_backward_of(run, rows, own, int(following[0]))] = True
    return found


def _of_functions(run: Run, rows: IntArray, named: IntArray) -> IntArray:
    """The requests that functions make which call a loss, behind the last module and the last layer."""
    known, stacks = paths(run), run.study.snapshot.stacks
    in_module = np.array([len(known[one]) > 1 for one in run.stack[rows].tolist()], np.bool_)
    model = np.flatnonzero((in_module | run.marked(Mark.LINEAR)[rows]) & ~losses(run)[rows])
    behind = rows[model[-1] + 1 :] if len(model) else rows[:0]
    of_losses = ascending(run.stack[named[np.isin(named, behind)]]).tolist()
    callers = {call for one in of_losses for call in _calls(list(stacks[one]))[:1]}
    used = ascending(run.stack[behind]).tolist()
    inside = [one for one in used if not callers.isdisjoint(_calls(list(stacks[one])))]
    found: IntArray = behind[np.isin(run.stack[behind], inside)]
    return found


def _calls(frames: list[Frame]) -> tuple[object, ...]:
    """The calls of the program's functions in a stack, the innermost first: where each was called, and which it is."""
    return tuple(
        (frame.filename, frame.name, tuple((one.filename, one.line, one.name) for one in frames[place + 1 :]))
        for place, frame in enumerate(frames)
        if frame_kind(frame.filename) is not FrameKind.CPP
        and not (package_path(frame.filename) or "").startswith("torch/")
    )


def _backward_of(run: Run, rows: IntArray, own: IntArray, until: int) -> IntArray:
    """What the backward makes as large as they are, and as nothing else of the forward nor a weight is."""
    sizes = ascending(run.size[own])
    sizes = sizes[~among(sizes, ascending(run.size[rows[~np.isin(rows, own)]]))]
    back = np.arange(int(rows[-1]) + 1, until)
    found: IntArray = back[run.during(BACKWARD)[back] & among(run.size[back], sizes) & ~run.like_parameter[back]]
    return found
