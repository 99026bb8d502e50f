"""The blocks of a model: modules of one kind that run one after another in a loop, and leave something to a backward.

Which calls follow one another in a loop, `call_tree` tells from stacks alone.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD
from oomscope.analysis.ledger.draft import NEVER, SPACING
from oomscope.analysis.ledger.graphs.never_backward import let_go_in_backward
from oomscope.analysis.ledger.graphs.untrained import untrained
from oomscope.analysis.ledger.passes import forwards
from oomscope.analysis.ledger.paths import Path, paths
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.structure.call_tree import LEAST_BLOCKS, LEAST_REQUESTS, OF_TORCH, CallTree
from oomscope.frozen import frozen
from oomscope.model import IntArray

SMALL_SHARE = 1 / 16
"""Of the largest that a block leaves: what is smaller is no output, but a statistic."""
LEAST_SHARE = 1 / 64
"""Of what forwards leave to backwards: where loops leave less, they are not those of a model's blocks."""
OF_THE_PROGRAM, IN_A_MODEL = 1, 2
"""Depths of calls."""
STAGES = 0.7
"""Of what a call leaves to a backward: where loops within it make as much, it is a stage of blocks."""
MOSTLY = 0.5
"""Of what the calls of a loop leave to a backward."""
SHORTLY = 5
"""Recorded steps from the last thing that a block's backward gives up to the gradient of the weight before it."""
_CHECKPOINTING = "transformers/modeling_layers.py"
_RECURRENT = re.compile(r"torch/nn/modules/rnn\.py")


@frozen(eq=False)
class Block:
    """One call of a block.

    Attributes:
        rows: its requests.
        inner: those of them that its backward needs, without its output.
        end: the moment at which its forward ends.
        depth: which part of its requests' paths is its own.
        beside: bytes that its forward has, when it has most, beside `inner` and its results: workspaces, mostly.
        output: the request of what it returns; -1 where it leaves nothing.
        returned: bytes of that, and of what else it leaves that no backward needs, as far as it goes into the next one.
        within: the block that it is a part of, where it is not a whole one.
    """

    rows: IntArray
    inner: IntArray
    end: int
    depth: int
    beside: int = 0
    output: int = -1
    returned: frozenset[int] = frozenset()
    within: Block | None = None


def blocks(run: Run) -> tuple[Block, ...]:
    """All calls of all blocks, in order; empty where the model has none. Found once."""
    return run.study.once("blocks of the ledger", lambda: _blocks(run))


def _blocks(run: Run) -> tuple[Block, ...]:
    """Blocks of models; where they have none, what the program itself calls again and again.

    A model that the program calls several times, as a discriminator, is no block.
    """
    tree = CallTree(paths(run))
    for least in (IN_A_MODEL, OF_THE_PROGRAM):
        loops = [
            [block_of(run, np.array(call, np.int64), depth) for call in calls]
            for rows in forwards(run)
            for outer in tree.blocks(rows.tolist(), run.stack[rows].tolist(), least)
            for calls, depth in _without_stages(run, tree, *outer)
        ]
        loops = [loop for loop in loops if not _is_small(run, loop) and not _is_one_module(run, loop)]
        loops = _without_layers(run, tree, loops)
        if least == OF_THE_PROGRAM:
            loops = _going_backward(run, loops)
        found = [block for loop in _trained(run, loops) for block in loop if len(block.inner)]
        if sum(int(run.size[block.inner].sum()) for block in found) >= LEAST_SHARE * run.size[run.saved].sum():
            break
        found = []
    inside = {row for block in found for row in block.rows.tolist()}
    found = sorted((_with_what_goes_on(run, one, inside) for one in found), key=lambda block: int(block.rows[0]))
    return tuple(_without_results(run, one, after) for one, after in pairwise([*found, None]) if one is not None)


def _without_stages(run: Run, tree: CallTree, calls: list[list[int]], depth: int) -> list[tuple[list[list[int]], int]]:
    """A loop over stages as the loops over blocks that make most of what they leave to a backward; else as it is.

    What transformers calls as a layer that it can make again is one, whatever it calls.
    """
    if _is_switched(tree.known[int(run.stack[calls[0][0]])], depth):
        return [(calls, depth)]
    inner = [tree.blocks(call, run.stack[np.array(call)].tolist(), depth + 1) for call in calls]
    inner = [
        [loop for loop in each if _calls_one_twice(run, tree, *loop) and not _are_layers(run, tree, *loop)]
        for each in inner
    ]
    loops = [loop for each in inner for loop in each]
    every = _saved(run, calls)
    if sum(_saved(run, each) for each, _ in loops) < STAGES * every or not every:
        return [(calls, depth)]
    rest = [call for call, each in zip(calls, inner, strict=True) if not each]
    return [*loops, *([(rest, depth)] if rest else [])]


def _is_switched(path: Path, depth: int) -> bool:
    """Whether what is called at a depth is called through the class that transformers has for checkpointing."""
    file, _, name = path[depth - 1][-1]
    return file == _CHECKPOINTING and name == "__call__"


def _calls_one_twice(run: Run, tree: CallTree, calls: list[list[int]], depth: int) -> bool:
    """Whether most of what is left to a backward is left by calls that run one line, several times.

    Else they are different modules, as in one statement, ``f(g(h(x)))``, maybe with a norm before each.
    """
    lines = [{tree.known[stack][depth][0][1] for stack in run.stack[np.array(call)].tolist()} for call in calls]
    times = Counter(line for own in lines for line in own)
    again = [call for call, own in zip(calls, lines, strict=True) if any(times[line] > 1 for line in own)]
    return _saved(run, again) > MOSTLY * _saved(run, calls)


def _without_layers(run: Run, tree: CallTree, loops: list[list[Block]]) -> list[list[Block]]:
    """The loops over modules of the program, where those leave more to a backward than loops over layers of torch."""
    calls = [[block.rows.tolist() for block in loop] for loop in loops]
    layers = [_are_layers(run, tree, each, loop[0].depth) for each, loop in zip(calls, loops, strict=True)]
    left = [_saved(run, each) for each in calls]
    of_layers = sum(one for one, is_layer in zip(left, layers, strict=True) if is_layer)
    if sum(left) < 2 * of_layers:
        return loops
    return [loop for loop, is_layer in zip(loops, layers, strict=True) if not is_layer]


def _are_layers(run: Run, tree: CallTree, calls: list[list[int]], depth: int) -> bool:
    """Whether calls are of a container of torch's own layers, as a convolution with its norm: no blocks."""
    stacks = {stack for call in calls for stack in run.stack[np.array(call)].tolist()}
    return all(OF_TORCH.match(part[0][0]) for stack in stacks for part in tree.known[stack][depth:])


def _saved(run: Run, calls: list[list[int]]) -> int:
    """Bytes that calls leave to a backward."""
    rows = np.array([row for call in calls for row in call], np.int64)
    return int(run.size[rows[run.saved[rows]]].sum())


def _is_small(run: Run, calls: list[Block]) -> bool:
    """Whether calls make too little to be blocks, but for workspaces: a layer that is wrapped."""
    return sum(int(np.count_nonzero(~run.recording.at_once[call.rows])) for call in calls) < LEAST_REQUESTS * len(calls)


def _going_backward(run: Run, loops: list[list[Block]]) -> list[list[Block]]:
    """The loops of lines of which a backward uses what they make, where there is one.

    Others are calls of a whole model, as in an evaluation that keeps its graph.
    """
    if not run.during(BACKWARD).any():
        return loops
    used = let_go_in_backward(run)
    lines = {_line_of(run, loop) for loop in loops if any(used[call.inner].any() for call in loop)}
    return [loop for loop in loops if _line_of(run, loop) in lines]


def _is_one_module(run: Run, calls: list[Block]) -> bool:
    """Whether a loop calls one module for inputs of several sizes, as a head of each level of a pyramid: no blocks.

    Blocks follow one another, each with weights of its own, whose gradients its backward leaves.
    """
    calls = [call for call in calls if len(call.inner)]
    if len({int(run.size[call.output]) for call in calls}) < LEAST_BLOCKS:
        return False
    with_own = sum(_leaves_gradients(run, call) for call in calls)
    return 0 < with_own <= len(calls) // 2


def _trained(run: Run, loops: list[list[Block]]) -> list[list[Block]]:
    """The loops over blocks that are trained, where any are: a frozen network in a loss is not the model.

    Nor is one before it, unless it is the model once more. Where gradients are zeroed in place, only the first step
    leaves any.
    """
    if (part := untrained(run)) is not None:
        apart = [any(part.forward[call.rows].any() for call in loop) for loop in loops]
        lines = {_line_of(run, loop) for loop, is_apart in zip(loops, apart, strict=True) if not is_apart}
        pairs = zip(loops, apart, strict=True)
        loops = [loop for loop, is_apart in pairs if not is_apart or _line_of(run, loop) in lines]
    with_own = {
        _line_of(run, loop)
        for loop in loops
        if any(len(call.inner) and _leaves_gradients(run, call, SHORTLY) for call in loop)
    }
    return [loop for loop in loops if _line_of(run, loop) in with_own] or loops


def _line_of(run: Run, loop: list[Block]) -> object:
    """The line of a module that calls the blocks of a loop, from wherever the module is called.

    A container of torch's has the same line in all models: what calls it counts.
    """
    callers = paths(run)[int(run.stack[loop[0].rows[0]])][: loop[0].depth]
    own = [part for part in callers if not OF_TORCH.match(part[-1][0])]
    return (own or list(callers))[-1][-1]


def _leaves_gradients(run: Run, call: Block, shortly: int = 0) -> bool:
    """Whether gradients of weights are made while a block goes backward, or up to `shortly` recorded steps later."""
    weights = run.begin[run.gradients & run.like_parameter & run.during(BACKWARD)]
    ends = run.end[call.inner]
    return bool(((weights > ends.min()) & (weights < ends.max() + shortly * SPACING)).any())


def block_of(run: Run, rows: IntArray, depth: int) -> Block:
    """One call as a block: what it leaves, and what its backward needs."""
    end = int(run.begin[rows].max()) + SPACING - 1
    # What goes before anything else is made was a variable of the call, as what a shortcut gave to a sum in place.
    following = int(rows[-1]) + 1
    returns = max(end, int(run.begin[following]) - 1) if following < len(run.size) else end
    left = rows[(run.end[rows] > returns) & ~run.recording.at_once[rows]]
    alive = left[run.saved[left]]
    if not len(alive):
        return Block(rows, alive, end, depth)
    # What no backward needs is an output too: the next block has it, and lets it go.
    large = left[run.size[left] >= SMALL_SHARE * run.size[left].max()]
    output = large[0] if is_recurrent(run, int(large[0])) else large[np.argmax(run.begin[large])]
    inner = alive[alive != output]
    # What is made again is made up to the last thing that a backward needs.
    again = rows[(~np.isin(rows, left) | np.isin(rows, inner)) & (rows <= inner.max(initial=-1))]
    beside = max(_most(run, again) - int(run.size[inner].sum()), 0)
    lasting = large[~run.saved[large] & (run.end[large] > end + SPACING)]
    returned = frozenset([int(run.size[output]), *run.size[lasting].tolist()])
    return Block(rows, inner, end, depth, beside, int(output), returned)


def is_recurrent(run: Run, row: int) -> bool:
    """Whether a request is of cuDNN's recurrent layers, which make their result first, and what they keep last."""
    return _RECURRENT.search(paths(run)[int(run.stack[row])][-1][0][0]) is not None


def _with_what_goes_on(run: Run, block: Block, inside: set[int]) -> Block:
    """A block without those of its results that the model adds up, or the like, before the next block.

    What it makes next is as large as what it makes that of.
    """
    following = int(block.rows[-1]) + 1
    if following >= len(run.size) or following in inside or len(block.returned) < 2:
        return block
    return replace(block, returned=block.returned - {int(run.size[following])})


def _without_results(run: Run, block: Block, after: Block | None) -> Block:
    """A block without what else it returns to the one `after` it: that goes while the other goes backward, before it.

    A block of the same step is directly behind it where nothing else is made between.
    """
    if after is None or not len(after.inner) or int(after.rows[0]) != int(block.rows[-1]) + 1:
        return block
    size, end = run.size[after.inner], run.end[after.inner]
    order = np.argsort(end, kind="stable")
    middle = end[order][np.searchsorted(np.cumsum(size[order]), 0.5 * float(size.sum()))]
    # Where the forward failed, nothing has gone backward.
    return block if middle >= NEVER else replace(block, inner=block.inner[run.end[block.inner] > middle])


def _most(run: Run, rows: IntArray) -> int:
    """The most bytes that `rows` have at once."""
    moment = np.concatenate([run.begin[rows], run.end[rows]])
    change = np.concatenate([run.size[rows], -run.size[rows]])
    return int(np.cumsum(change[np.argsort(moment, kind="stable")]).max(initial=0))
