"""Attention that nothing but its softmax tells; of it, what fused kernels hardly take, for a learned bias is added."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oomscope.analysis.labels.kinds import WORKSPACE
from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.attention.matmuls import Attention, attentions, between_products
from oomscope.analysis.ledger.attention.scores import with_their_gradients
from oomscope.analysis.ledger.attention.softmaxes import into_products, is_softmax
from oomscope.analysis.ledger.attention.written_out import LEAST_SCORES
from oomscope.analysis.ledger.paths import Path, module_of, paths
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.whole_numbers import whole_numbers
from oomscope.model import BoolArray, IntArray

MASK = 4
"""Times as large as the mask of a dropout is what is dropped, in full precision."""
LEAST_BIAS = 64 << 10
"""Bytes: smaller ones are of a factor of all scores."""
FEW_CALLS = 2
"""Of one size, from which no gradient's place tells anything: a stage of two blocks."""
CAST = 2
"""Times as large as what is cast to 16 bits is what was."""
PROJECTIONS = 3
"""Layers of a module that attends: queries, keys and values."""


def attends(run: Run) -> BoolArray:
    """bool[requests]: softmaxes that go into products, dropouts of them, and the gradients of both.

    Their module, or the one that calls it, has layers of queries, keys and values, or one of all three. So what lies
    between the two products of attention.
    """
    known = paths(run)
    linear = _projections(run, known)
    found = into_products(run, known) & (run.size >= LEAST_SCORES)
    softmaxes: dict[object, int] = {}
    made = np.flatnonzero(found)
    owners = [_projecting(linear, _own(known[stack])) for stack in run.stack[made].tolist()]
    for owner, row in zip(owners, made.tolist(), strict=True):
        softmaxes[owner] = softmaxes.get(owner, 0) + int(_is_softmax(known[int(run.stack[row])]))
    found[made] = [linear.get(owner, 0) >= PROJECTIONS * max(softmaxes[owner], 1) for owner in owners]
    return with_their_gradients(run, found | between_products(run))


def _projecting(linear: dict[object, int], path: Path) -> object:
    """The module of a path; the one that calls it, where that alone has layers."""
    own, caller = module_of(path), module_of(path[:-1]) if len(path) > 1 else None
    return caller if own not in linear and caller in linear else own


def _projections(run: Run, known: dict[int, Path]) -> dict[object, int]:
    """How many layers the calls of each module have; one whose result is as large as three of the least counts so."""
    rows = np.flatnonzero(run.marked(Mark.LINEAR) & run.during(FORWARD) & (run.stack >= 0) & ~run.of(WORKSPACE))
    sizes: dict[object, list[int]] = {}
    for stack, size in zip(run.stack[rows].tolist(), run.size[rows].tolist(), strict=True):
        sizes.setdefault(module_of(known[stack][:-1]), []).append(size)
    return {
        owner: sum(PROJECTIONS if size == PROJECTIONS * min(made) else 1 for size in made)
        for owner, made in sizes.items()
    }


def learned(run: Run, scores: BoolArray) -> BoolArray:
    """bool[requests]: those of `scores` that are as large as some to which a bias is added that has a gradient.

    A table of relative places gives it with its heads innermost, and so does a layer; fused kernels take a mask whose
    keys lie one next to another. The gradient of a table's is added up from call to call: it is there when the scores
    of the next call go backward, and their own gradient is not. Where too few calls tell that, it is
    told by what the same lines make elsewhere.
    """
    sizes, made = biased_by_layers(run), scores & run.during(FORWARD) & ~whole_numbers(run)
    back = run.during(BACKWARD) & ~run.of(WORKSPACE)
    untold: set[int] = set()
    for step in range(run.steps):
        for size in np.unique(run.size[made & (run.step == step)]).tolist():
            ends = np.sort(run.end[made & (run.step == step) & (run.size == size)])
            rows = np.flatnonzero(back & (run.step == step) & (run.size == size))
            first = np.searchsorted(ends, run.begin[rows])
            # A softmax and what a dropout makes of it go with one call.
            calls = np.searchsorted(ends, run.end[rows]) - first
            each = _of_one_call(run, made & (run.step == step) & (run.size == size))
            if (calls > each).any():
                sizes |= {size, size // MASK}
            elif len(ends) <= FEW_CALLS * each:
                untold.add(size)
    same_lines = made & _made_by_lines_of(run, made & np.isin(run.size, [*sizes]))
    found: BoolArray = scores & np.isin(run.size, [*sizes, *(untold & {*run.size[same_lines].tolist()})])
    return found


def _made_by_lines_of(run: Run, rows: BoolArray) -> BoolArray:
    """bool[requests]: what the innermost call of a module makes in the same lines as some of `rows`."""
    known = paths(run)
    lines = {known[stack][-1] for stack in run.stack[rows].tolist()}
    found: BoolArray = np.isin(run.stack, [stack for stack, path in known.items() if path[-1] in lines])
    return found


def biased_by_layers(run: Run) -> set[int]:
    """Bytes of scores to which each call adds a bias that a layer makes, as of pairs, and of their masks.

    Their gradient is summed up, to that of the bias, before those of queries and keys are made of it.
    """
    found = set[int]()
    for call, softmax in _going_backward(run):
        back = run.during(BACKWARD) & (run.begin > run.end[softmax].min()) & (run.begin < run.end[call.queries])
        size = int(run.size[call.scores].max())
        known = [size, int(run.size[call.queries]), int(run.size[call.keys])]
        summed = run.size[back & (run.size >= LEAST_BIAS) & ~np.isin(run.size, known)]
        if ((size % summed == 0) & (size > CAST * summed)).any():
            found |= {size, size // MASK}
    return found


def _going_backward(run: Run) -> Iterator[tuple[Attention, IntArray]]:
    """The calls of attention that a backward goes through, each with what that needs of its scores."""
    for call in attentions(run):
        needed = call.scores[run.saved[call.scores]]
        if len(needed):
            yield call, needed


def masks_for_biases(run: Run) -> BoolArray:
    """bool[requests]: in place of masks that a fused kernel is given, softmaxes of scores that each have a bias.

    Such a bias, as features of pairs give it, is as large as the scores. Its gradient is there for longer than queries
    and keys, for a layer before needs it too. The kernel keeps the bias as a mask, and makes a gradient of it.
    """
    found = np.zeros(len(run.size), np.bool_)
    for call, softmax in _going_backward(run):
        size = int(run.size[call.scores].max())
        ends = run.end[[call.queries, call.keys]]
        back = run.during(BACKWARD) & (run.size == size)
        gradients = back & (run.begin > run.end[softmax].min()) & (run.begin < ends.min()) & (run.end > ends.max())
        if gradients.any():
            found[softmax[run.size[softmax] == size][:1]] = True
            found |= back & (run.begin < run.end[gradients].max()) & (run.end > ends.max())
    return found


def _of_one_call(run: Run, made: BoolArray) -> int:
    """How many of what a forward `made` lie between one softmax and the next, at most."""
    known = paths(run)
    softmax = [_is_softmax(known[stack]) for stack in run.stack[np.flatnonzero(made)].tolist()]
    return -(-len(softmax) // max(sum(softmax), 1))


def _is_softmax(path: Path) -> bool:
    return any(is_softmax(frame) for frame in path[-1])


def _own(path: Path) -> Path:
    """A path without torch's own modules at its end."""
    while len(path) > 1 and path[-1][0][0].startswith("torch/"):
        path = path[:-1]
    return path
