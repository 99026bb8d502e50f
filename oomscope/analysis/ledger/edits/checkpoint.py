"""Activation checkpointing: a block keeps its input only, and its backward makes the rest again."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.draft import NEVER, SPACING, Draft
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.graphs.double_backward import begins_of_first, derived
from oomscope.analysis.ledger.graphs.held import held_until
from oomscope.analysis.ledger.graphs.never_backward import evaluations, never_backward
from oomscope.analysis.ledger.passes import forwards
from oomscope.analysis.ledger.paths import Path, module_of, paths
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.structure.blocks import SMALL_SHARE, Block, block_of, blocks, is_recurrent
from oomscope.analysis.ledger.structure.call_tree import called
from oomscope.analysis.ledger.structure.helpers import called_alike
from oomscope.analysis.ledger.structure.made_again import in_evaluations_too, in_training, made_again
from oomscope.analysis.ledger.structure.parts import parts
from oomscope.analysis.plan.requests.calls import Line
from oomscope.model import BoolArray, IntArray, package_path

SLUG = "checkpoint"
LATER = 16
"""Recorded steps from the last thing that a block needs of its own to what it was given."""
AS_A_BLOCK = 0.5
"""Of what a block leaves to a backward."""
_NORM_OR_RECURRENT = re.compile(r"torch/nn/modules/(batchnorm|instancenorm|rnn)\.py")
_OF_TORCH = re.compile(r"torch/")
_SWITCHED = "torch_geometric/nn/models/deepgcn.py"
_KEEPS_RESULT = re.compile(r"^(relu|sigmoid|tanh|softmax|log_softmax)$")
"""Functions whose backward needs the result; that of the others needs what went in."""


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """What is saved between a block's forward and its backward is dropped, and made again when that backward begins.

    So is its result, where the last thing that it does needs that.
    """
    return _edited(run, partial(made_again, run))


def otherwise(run: Run) -> tuple[Draft, bool] | None:
    """The likely program that does otherwise with an evaluation which keeps its graph, and whether it makes that again.

    None where there is no such evaluation.
    """
    is_covered = in_evaluations_too(run, blocks(run))
    edited = _edited(run, partial(in_training, run) if is_covered else list) if evaluations(run) else None
    return (edited.likely, not is_covered) if edited is not None else None


def _edited(run: Run, chosen: Callable[[Sequence[Block]], list[Block]]) -> Edited | None:
    """The program of which the `chosen` of its calls of blocks are made again."""
    if not run.trains or _follows_it(run):
        return None
    alone = list(blocks(run))
    if not alone:
        return _of_parts(run)
    beside = _beside_blocks(run, alone)
    alike = _of_their_class(run, beside, alone)
    through = [
        block
        for block, is_alike in zip(beside, alike, strict=True)
        if is_alike or _is_called_through(run, block, alone)
    ]
    through = _in_order(through, called_alike(run, alone, beside))
    alone, beside, through = (chosen(some) for some in (alone, beside, through))
    if not alone:
        return None
    every = _in_order(alone, [*beside, *(call for call in through if call not in beside)])
    found = _in_order([_as_a_library_does(run, block) for block in alone], through)
    others = [_checkpointed(run, _in_order(alone, through), [False] * len(found))]
    likely = _checkpointed(run, found, [_keeps_result(run, block) for block in found])
    others += [
        _checkpointed(run, some, [_keeps_result(run, block) for block in some])
        for some in (alone, every)
        if len(some) != len(found)
    ]
    if derived(run).any():
        # What of it a later backward needs of each function is not in the trace.
        never = np.full(len(run.size), NEVER, np.int64)
        others.append(_checkpointed(run, found, [_keeps_result(run, block) for block in found], never))
    results = np.array(
        [block.output for block in found if block.output >= 0 and is_recurrent(run, block.output)], np.int64
    )
    if len(results):
        # A dropout behind one needs its mask alone.
        others.append(likely.lasting(results, end=np.minimum(held_until(run)[results], run.end[results])))
    pairs = [(row, moment) for rows, moment in _arguments(run, found) for row in rows.tolist()]
    given, again = (np.array([pair[one] for pair in pairs], np.int64) for one in (0, 1))
    return Edited(likely, tuple(others), doubt=0.08, given=given, again=again)


def _of_parts(run: Run) -> Edited | None:
    """A model without blocks, of which the parts that it calls itself are made again; maybe the largest ones only."""
    found = parts(run)
    if not found:
        return None
    left = [int(run.size[part.inner].sum()) for part in found]
    largest = [part for part, most in zip(found, left, strict=True) if most >= AS_A_BLOCK * max(left)]
    likely, other = (_checkpointed(run, some, [_keeps_result(run, part) for part in some]) for some in (found, largest))
    return Edited(likely, (other,), doubt=0.08)


def _as_a_library_does(run: Run, block: Block) -> Block:
    """What of a block is made again where its library has a switch for that, as torch_geometric has.

    Its ``DeepGCNLayer(ckpt_grad=True)`` makes the convolution again and keeps what its norm and its dropout make. The
    convolution is the call that leaves most to a backward.
    """
    known = paths(run)
    if known[int(run.stack[block.rows[0]])][block.depth][0][0] != _SWITCHED:
        return block
    calls: dict[object, list[int]] = {}
    for row in block.rows.tolist():
        path = known[int(run.stack[row])]
        if len(path) > block.depth + 1:
            calls.setdefault((path[: block.depth + 1], module_of(path[: block.depth + 2])), []).append(row)
    inner = [block_of(run, np.array(rows), block.depth + 1) for rows in calls.values()]
    most = max(inner, key=lambda call: int(run.size[call.inner].sum()), default=block)
    return replace(most, within=block)


def _arguments(run: Run, found: Sequence[Block]) -> list[tuple[IntArray, int]]:
    """What goes into each block, and when that is made again: also what its own backward is the last to need."""
    before, arguments = [None, *found], []
    for block, other in zip(found, before[:-1], strict=True):
        ends, row = run.end[block.inner], int(block.rows[0]) - 1
        inputs = _inputs_of(run, block, other)
        needed = len(ends) and run.saved[row] and ends.min() < run.end[row] <= ends.max() + LATER * SPACING
        if needed and row not in inputs:
            inputs = np.append(inputs, row)
        arguments.append((inputs, int(ends.min(initial=NEVER)) - 1))
    return arguments


def _in_order(some: Sequence[Block], others: Sequence[Block]) -> list[Block]:
    return sorted([*some, *others], key=lambda block: int(block.rows[0]))


def _beside_blocks(run: Run, found: Sequence[Block]) -> list[Block]:
    """Other calls of modules beside the blocks: those that leave nearly as much, or are called as the blocks are.

    A program may make them again, too.
    """
    known, inside = paths(run), {row for block in found for row in block.rows.tolist()}
    parents = {(module_of(known[int(run.stack[block.rows[0]])][: block.depth]), block.depth) for block in found}
    least = AS_A_BLOCK * float(np.median([run.size[block.inner].sum() for block in found]))
    calls: dict[tuple[int, Path, object, int], list[int]] = {}
    for number, rows in enumerate(forwards(run)):
        for row in (one for one in rows.tolist() if one not in inside):
            path = known[int(run.stack[row])]
            for parent, depth in parents:
                if len(path) > depth and module_of(path[:depth]) == parent:
                    calls.setdefault((number, path[:depth], module_of(path[: depth + 1]), depth), []).append(row)
    beside = [
        block_of(run, one, depth)
        for (*_, depth), rows in calls.items()
        if any(len(known[one]) > depth + 1 for one in run.stack[rows].tolist())
        for one in _calls_of_a_loop(known, run.stack, np.array(rows), depth + 1)
    ]
    large = [len(block.inner) > 1 and int(run.size[block.inner].sum()) >= least for block in beside]
    alike = _of_their_class(run, beside, found)
    return [
        block
        for block, counts in zip(beside, np.logical_or(large, alike).tolist(), strict=True)
        if len(block.inner) and (counts or _is_called_through(run, block, found))
    ]


def _calls_of_a_loop(known: dict[int, Path], stack: IntArray, rows: IntArray, depth: int) -> list[IntArray]:
    """What a line calls in a loop, cut where the layer that the first call begins with comes again, behind others.

    Such calls are too small to be blocks, as a convolution and its activation are. A container has several layers of a
    kind.
    """
    if _OF_TORCH.match(known[int(stack[rows[0]])][depth - 1][0][0]):
        return [rows]
    layers = [called(known[one], depth) for one in stack[rows].tolist()]
    begins = [place for place, (before, layer) in enumerate(pairwise(layers), 1) if layer == layers[0] != before]
    return np.split(rows, begins)


def _is_called_through(run: Run, call: Block, found: Sequence[Block]) -> bool:
    """Whether a function of the module that calls the blocks, which calls them for several of its lines, calls this.

    ``x = self.run(layer, x)`` is written so to switch something on for all of them, as making them again.
    """
    known = paths(run)
    *outer, own = known[int(run.stack[call.rows[0]])][: call.depth]
    callers = {known[int(run.stack[block.rows[0]])][: block.depth] for block in found}
    others = [part for *above, part in callers if above == outer and part != own]
    return not _OF_TORCH.match(own[-1][0]) and any(part[-1] == own[-1] for part in others)


def _of_their_class(run: Run, calls: Sequence[Block], found: Sequence[Block]) -> list[bool]:
    """Which of `calls` run lines of the blocks alone, as those of a decoder may be of the encoder's class."""
    lines = {line for block in found for line in _lines_of(run, block)}
    own = [_lines_of(run, call) for call in calls]
    return [one <= lines and not any(_OF_TORCH.match(file) for file, _, _ in one) for one in own]


def _lines_of(run: Run, call: Block) -> set[Line]:
    """The lines of what is called itself."""
    known = paths(run)
    return {known[one][call.depth][0] for one in run.stack[call.rows].tolist()}


def _checkpointed(
    run: Run, found: Sequence[Block], keeps_result: Sequence[bool], firsts: IntArray | None = None
) -> Draft:
    """The draft in which the blocks `found` are made again, together with their result where that is needed.

    What is made again for a backward that another one goes through, see `begins_of_first`, stays for that one.
    """
    draft, unused = run.draft, never_backward(run)
    firsts = begins_of_first(run) if firsts is None else firsts
    rows, begins, ends, moments, beside, largest = [], [], [], [], [], []
    for block, keeps in zip(found, keeps_result, strict=True):
        own = np.append(block.inner, block.output) if keeps else block.inner
        own = own[(run.end[own] < NEVER) & ~unused[own]]
        begin = int(run.end[own].min(initial=NEVER)) - 1
        rows.append(own)
        begins.append(np.minimum(begin, np.where(_go_into_products(run, own), NEVER, firsts[own]) - 1))
        ends.append(run.end[own])
        if len(own) and block.beside:
            moments.append(begin)
            beside.append(block.beside)
            largest.append(_largest_beside(run, block))
    inner = np.concatenate([block.inner for block in found])
    dropped = np.repeat([block.end for block in found], [len(block.inner) for block in found])
    again = np.concatenate(rows)
    draft = draft.lasting(inner, end=dropped)
    draft = _with_inputs(run, draft, found, [int(one.max(initial=-1)) for one in ends])
    draft = draft.added(run.size[again], np.concatenate(begins), np.concatenate(ends), again)
    at = np.array(moments, np.int64)
    return draft.added(np.array(beside, np.int64), at, at + 1, np.array(largest, np.int64))


def _go_into_products(run: Run, rows: IntArray) -> BoolArray:
    """bool[rows]: whether a product is made next: it needs what goes in for the gradient of its weight alone."""
    following = np.minimum(rows + 1, len(run.size) - 1)
    return run.marked(Mark.LINEAR)[following]


def _largest_beside(run: Run, block: Block) -> int:
    """The largest request of a block that its backward does not need, nor what comes next: a workspace, mostly."""
    others = block.rows[~np.isin(block.rows, [*block.inner.tolist(), block.output])]
    return int(others[np.argmax(run.size[others])]) if len(others) else -1


def _with_inputs(run: Run, draft: Draft, found: Sequence[Block], until: Sequence[int]) -> Draft:
    """`draft` in which what goes into each block is there until the block has gone backward: its arguments are kept."""
    before = [None, *found]
    inputs = [
        (row, moment)
        for block, other, moment in zip(found, before[:-1], until, strict=True)
        for row in _inputs_of(run, block, other).tolist()
    ]
    wanted = [(row, moment) for row, moment in inputs if draft.end[row] < moment]
    rows = np.array([row for row, _ in wanted], np.int64)
    return draft.lasting(rows, end=np.array([moment for _, moment in wanted], np.int64))


def _inputs_of(run: Run, block: Block, before: Block | None) -> IntArray:
    """What goes into a block; what goes into the whole one goes on to a part of it."""
    inputs = _given_to(run, block, before)
    if block.within is not None:
        inputs = np.union1d(inputs, _given_to(run, block.within, before.within if before is not None else None))
    return inputs


def _given_to(run: Run, block: Block, before: Block | None) -> IntArray:
    """What goes into a call: the last large thing that its forward made, if it is still there, and others beside it.

    It is what the block `before` returned, or goes when this one returns: a block may return something beside it, which
    the model adds up, say. What goes later went into something else. Where several things go as this one returns, it
    returns as many in their place. A graph that no backward uses went into nothing.
    """
    first, following = int(block.rows[0]), min(int(block.rows[-1]) + 1, len(run.size) - 1)
    step = run.rows_of_step(int(run.step[first]))
    rows = step[(step < first) & run.during(FORWARD)[step] & (run.stack[step] >= 0)]
    rows = rows[run.size[rows] >= SMALL_SHARE * int(run.size[block.output])]
    alive = rows[(run.end[rows] > run.begin[first]) & ~never_backward(run)[rows]]
    found = run.end[alive] <= run.begin[following]
    if before is not None:
        found |= alive == before.output
        found &= ~np.isin(alive, before.rows) | np.isin(run.size[alive], list(before.returned))
    together = alive[found]
    replaced = (run.end[together] > run.begin[block.rows[-1]]) | (together == together.max(initial=-1))
    inputs: IntArray = together[replaced]
    return inputs


def _keeps_result(run: Run, block: Block) -> bool:
    """Whether a block's last backward needs the block's result.

    That of some activations does, and that of recurrent layers. One in place makes nothing, and then the norm before
    it has made the result; a sum of the block's own needs nothing. What that sum takes goes at once.
    """
    if block.output < 0 or not run.saved[block.output]:
        return False
    frames = run.study.snapshot.stacks[int(run.stack[block.output])]
    files = (package_path(frame.filename) or "" for frame in frames)
    return any(_KEEPS_RESULT.search(frame.name) for frame in frames) or any(map(_NORM_OR_RECURRENT.search, files))


def _follows_it(run: Run) -> bool:
    frames = run.study.snapshot.stacks.frames
    return any(frame.filename.replace("\\", "/").endswith("torch/utils/checkpoint.py") for frame in frames)
