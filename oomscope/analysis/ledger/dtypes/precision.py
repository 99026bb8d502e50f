"""What is computed in 16 bits under autocast, and what would be in a model that is 16 bits throughout."""

from __future__ import annotations

import re

import numpy as np

from oomscope.analysis.labels import own_layers
from oomscope.analysis.labels.kinds import TEMPORARY, WORKSPACE
from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.attention.softmaxes import shares
from oomscope.analysis.ledger.attention.written_out import LEAST_SCORES, scores_of_fused, written_by_torch
from oomscope.analysis.ledger.draft import SPACING
from oomscope.analysis.ledger.dtypes import convolutions
from oomscope.analysis.ledger.dtypes.norms import activated_in_place, given_to_both, needed_in_full
from oomscope.analysis.ledger.dtypes.own_parameters import with_own_parameters
from oomscope.analysis.ledger.dtypes.products import products_fed
from oomscope.analysis.ledger.dtypes.promotion import promoted
from oomscope.analysis.ledger.dtypes.slopes import learned_slopes
from oomscope.analysis.ledger.dtypes.tied_logits import tied_logits
from oomscope.analysis.ledger.dtypes.written_norms import norms
from oomscope.analysis.ledger.dtypes.written_norms import written_out as written_norms
from oomscope.analysis.ledger.losses import losses
from oomscope.analysis.ledger.paths import Part, Path, module_of, paths
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.structure.blocks import Block, blocks
from oomscope.analysis.ledger.whole_numbers import whole_numbers
from oomscope.frozen import frozen
from oomscope.model import BoolArray, IntArray
from oomscope.model.arrays import FloatArray

_HALF = re.compile(
    r"torch/nn/modules/(linear|conv|rnn)\.py|torch_geometric/nn/dense/linear\.py|transformers/pytorch_utils\.py|scaled_dot_product|sdpa|flash_attn|_in_projection|^(linear|matmul|bmm|einsum|baddbmm|conv\w+)$"
)
_FULL = re.compile(
    r"layer_norm|group_norm|softmax|cross_entropy|nll_loss|\w+_loss$|normalize|cosine_similarity|^(pow|exp|log|norm|sum|prod)$"
    r"|rms_norm|interpolate|^(softplus|logsumexp|cdist|kl_div|binary_cross_entropy_with_logits)$"
)
"""Of ``AT_FORALL_FP32`` and ``AT_FORALL_FP32_SET_OPT_DTYPE`` in ATen/autocast_mode.h, what is often seen."""
_KEEPS = re.compile(r"softmax|sigmoid|tanh|^exp$")
_EMBEDDING = re.compile(r"embedding")
_ONLY_FULL = re.compile(r"^ctc_loss$")
"""Has no kernel for 16 bits, so that programs compute what it is given in full precision."""
GATES = 2
"""Results of one line that a backward needs, as of a gate: what it multiplies."""
LEAST_COPIED = 1 << 20
"""Bytes of what is copied for a product, where one copy more would count."""
ONE_MORE = 1 / 2
"""Of what is copied for products, in full precision: one copy more."""
FORMULA = 7
"""Results of one line and size, one after another."""
SMALL = 512
"""Bytes: smaller ones are counters and flags."""


@frozen(eq=False)
class Halves:
    """By what autocast makes each request smaller or larger.

    Attributes:
        likely, least, most: float64[requests]: factors.
        own: float64[requests]: factors of what the program itself has, without copies.
        originals: float64[requests]: what of each is there beside the copies that are kept, until Python lets it go.
    """

    likely: FloatArray
    least: FloatArray
    most: FloatArray
    originals: FloatArray
    own: FloatArray


def halves(run: Run) -> Halves:
    """The factor of every request under autocast.

    What is neither a product nor known to be done in full precision follows what its module made before. A sum in a
    block of a model that begins with an embedding is in full precision, as is what runs through such a model. What goes
    into products next is kept as a copy in half precision for each of them. Attention that writes out its scores, for
    no fused kernel took them in float32, does not do so in 16 bits.
    """
    likely = np.ones(len(run.size))
    known = paths(run)
    rows = _made(run)
    half, doubtful = in_half(run)
    products = products_fed(run, rows, known, learned_slopes(run), norms(run), with_own_parameters(run))
    softmaxes = shares(run, known)
    needed = needed_in_full(run, rows, known)
    shared = given_to_both(run, rows, known)
    formulas = _formulas(run, known)
    gates, in_place = _gates(run, rows, formulas), activated_in_place(run, rows, known)
    # A power needs what goes into it in full precision, beside the half of that which the formula begins with.
    begins = formulas & run.saved & (run.stack != np.roll(run.stack, 1))
    copied, originals = np.zeros(len(run.size), np.bool_), np.zeros(len(run.size))
    # What no backward needs goes into no product; what outlives it is held by a variable, as the logits of one.
    fits = run.saved & ~half & ~gates & ~_outlive_backward(run)
    for row, copies, goes_into_norm in zip(rows.tolist(), products, needed, strict=True):
        if begins[row]:
            likely[row] = 1.5
        elif half[row] and not goes_into_norm:
            likely[row] = 0.5
        elif half[row] and shared[row]:
            likely[row] = 1.5
        elif softmaxes[row] > 0:
            likely[row] = softmaxes[row]
        elif copies and fits[row] and not _keeps_result(known[int(run.stack[row])][-1]):
            likely[row] = 0.5 * copies + (1.0 if in_place[row] else 0.0)
            copied[row], originals[row] = True, 0.0 if in_place[row] else 1.0
        elif half[row]:
            originals[row] = 0.5
    return _with_doubts(run, likely, doubtful, copied, originals, np.where(half, 0.5, 1.0))


def in_half(run: Run) -> tuple[BoolArray, BoolArray]:
    """bool[requests], twice: what a forward makes in 16 bits under autocast, and where only what is around it tells."""
    half, doubtful = np.zeros(len(run.size), np.bool_), np.zeros(len(run.size), np.bool_)
    known = paths(run)
    inside = {row: block for block in blocks(run) for row in block.rows.tolist()}
    sloped, softmaxes, is_of_norm = learned_slopes(run), shares(run, known), norms(run)
    tied, is_layer = tied_logits(run), own_layers.found(run.study)[run.stack]
    always_full = only_full(run) | losses(run) | promoted(run) | (softmaxes > 0) | _formulas(run, known)
    always_full |= written_norms(run) | with_own_parameters(run)
    last: dict[object, bool] = {}
    # The last thing of each size that a block has made, if a norm did.
    of_norms: dict[tuple[int, int], bool] = {}
    stream, begun = False, -2
    for row in _made(run).tolist():
        path = known[int(run.stack[row])]
        if run.step[row] != begun:
            begun, last, stream = int(run.step[row]), {}, _begins_in_half(run, known, row)
        block = inside.get(row)
        made = (id(block), int(run.size[row]))
        told = False if always_full[row] else True if sloped[row] or tied[row] or is_layer[row] else _told(path[-1])
        if told is None:
            least = _least_depth(run, row, known, block)
            if block is not None and least > block.depth and of_norms.get(made):
                # A sum with what a norm has made is as precise as that.
                stream = False
            half[row] = _followed(path, last, least, stream)
        else:
            half[row] = told
        doubtful[row], of_norms[made] = told is None, bool(is_of_norm[row])
        for depth in range(len(path)):
            # What follows a softmax is a product with it.
            last[module_of(path[: depth + 1])] = bool(half[row] or softmaxes[row] > 0)
    return half, doubtful


def _formulas(run: Run, known: dict[int, Path]) -> BoolArray:
    """What one line of a program makes by a long formula, as a GELU by tanh: it has a power, in full precision.

    So is what that is combined with.
    """
    found = np.zeros(len(run.size), np.bool_)
    rows = _made(run)
    same = (np.diff(run.stack[rows]) == 0) & (np.diff(run.size[rows]) == 0)
    for part in np.split(rows, np.flatnonzero(~same) + 1):
        if (
            len(part) >= FORMULA
            and len(known[int(run.stack[part[0]])][-1]) == 1
            and not run.marked(Mark.LINEAR)[part[0]]
        ):
            found[part] = True
    return found


def _gates(run: Run, rows: IntArray, formulas: BoolArray) -> BoolArray:
    """bool[requests]: what formulas make that is multiplied with the product behind it, which is as large."""
    found = np.zeros(len(run.size), np.bool_)
    following = run.marked(Mark.LINEAR)[rows[1:]] & (run.size[rows[1:]] == run.size[rows[:-1]])
    found[rows[:-1][following]] = True
    return np.asarray(found & formulas)


def _outlive_backward(run: Run) -> BoolArray:
    """bool[requests]: which are still there when the backward of their step is done."""
    last = run.last_of_own_step(BACKWARD)
    found: BoolArray = (last >= 0) & (run.end > last + SPACING)
    return found


def _made(run: Run) -> IntArray:
    """The numbers of what a forward makes, without workspaces and counters."""
    return np.flatnonzero(run.during(FORWARD) & (run.stack >= 0) & ~run.of(WORKSPACE) & (run.size >= SMALL))


def _with_doubts(
    run: Run, forward: FloatArray, doubtful: BoolArray, copied: BoolArray, originals: FloatArray, own: FloatArray
) -> Halves:
    """Factors of a forward with those of the backward, and what they may be where nothing tells the precision."""
    likely = _with_backward(run, forward, copied)
    least = _with_backward(run, np.where(doubtful | (forward < 1), np.minimum(forward, 0.5), forward), copied)
    # What is copied may be given to one product more.
    largest = np.where(
        copied & (run.size >= LEAST_COPIED), forward + ONE_MORE, np.where(doubtful & (forward < 1), 0.75, forward)
    )
    most = _with_backward(run, largest, copied)
    written_out, copies = scores_of_fused(run), convolutions.in_half(run)
    likely[written_out] = least[written_out] = 0.0
    likely[copies < 1] = least[copies < 1] = copies[copies < 1]
    whole = whole_numbers(run) | promoted(run) | written_by_torch(run)
    likely[whole] = least[whole] = most[whole] = 1.0
    return Halves(likely, least, most, originals, own)


def _least_depth(run: Run, row: int, known: dict[int, Path], block: Block | None) -> int:
    """How deep the calls are whose results a request may follow: none of a block's own where it is a sum of the block.

    What runs through the model is what each block returns; what its forward makes of that size is added to it.
    """
    if block is None:
        return 0
    path = known[int(run.stack[row])]
    own = len(path) == block.depth + 1 and len(path[block.depth]) == 1
    is_sum = own and int(run.size[row]) in block.returned and not _computes(run, row, block, known)
    return block.depth + 1 if is_sum else block.depth


def _computes(run: Run, row: int, block: Block, known: dict[int, Path]) -> bool:
    """Whether a block's own line makes several as large that a backward needs of what products made: a gate, no sum.

    Such a line calls no module, and lies behind the first product of the block.
    """
    alike = block.rows[(run.stack[block.rows] == run.stack[row]) & (run.size[block.rows] == run.size[row])]
    line = known[int(run.stack[row])]
    calls = any(known[one][: len(line)] == line != known[one] for one in set(run.stack[block.rows].tolist()))
    behind = run.marked(Mark.LINEAR)[block.rows[block.rows < row]].any()
    return bool(behind and run.saved[alike].sum() >= GATES) and not calls


def _followed(path: Path, last: dict[object, bool], least: int, stream: bool) -> bool:
    """What the nearest enclosing call within a block made last; what runs through the model where there is none."""
    for depth in range(len(path), least, -1):
        if (module := module_of(path[:depth])) in last:
            return last[module]
    return stream


def _told(part: Part) -> bool | None:
    """Whether the innermost call says its precision."""
    names = [name for _, _, name in part]
    if any(_FULL.search(name) or _EMBEDDING.search(name) for name in names):
        return False
    return True if any(_HALF.search(text) for line in part for text in (line[0], line[2])) else None


def _keeps_result(part: Part) -> bool:
    """Whether the backward of a call needs its result, in the precision in which it was made."""
    return any(_KEEPS.search(name) for _, _, name in part)


def _begins_in_half(run: Run, known: dict[int, Path], first: int) -> bool:
    """Whether the first large thing that a forward makes is a matrix product's or a convolution's."""
    rows = np.flatnonzero(run.during(FORWARD) & (run.step == run.step[first]) & (run.stack >= 0))
    if is_of_embedding(known[int(run.stack[rows[0]])]):
        return False
    for row in rows[run.saved[rows]][:8].tolist():
        told = _told(known[int(run.stack[row])][-1])
        if told is not None:
            return told
    return True


def only_full(run: Run) -> BoolArray:
    """What lies between the last product of a forward and a loss that is computed in full precision only, and its size.

    Where no loss of that kind is, nothing.
    """
    found = np.zeros(len(run.size), np.bool_)
    stacks = run.study.snapshot.stacks
    is_loss = np.array([any(_ONLY_FULL.search(f.name) for f in stacks[one]) for one in range(len(stacks))] + [False])
    losses = is_loss[run.stack]
    if not losses.any():
        return found
    products = run.marked(Mark.LINEAR) & run.during(FORWARD)
    for step in np.unique(run.step[losses]).tolist():
        mine = run.step == step
        last = np.flatnonzero(products & mine)
        if len(last):
            found |= mine & run.during(FORWARD) & (np.arange(len(run.size)) > last[-1])
    back = run.during(BACKWARD) & np.isin(run.size, np.unique(run.size[found & (run.size >= LEAST_SCORES)]))
    return np.asarray(found | back)


def _with_backward(run: Run, forward: FloatArray, copied: BoolArray) -> FloatArray:
    """Factors with those of the backward: gradients of activations are of the precision of most bytes of their size.

    What was copied for a product has its gradient in full precision.
    """
    sizes, which = np.unique(run.size, return_inverse=True)
    made = run.during(FORWARD) & ~run.of(WORKSPACE)
    half = np.bincount(which[made & (forward <= 0.5) & ~copied], minlength=len(sizes))
    every = np.bincount(which[made], minlength=len(sizes))
    mostly = (half > 0.5 * every)[which] & (every[which] > 0)
    back = run.during(BACKWARD) & run.of(TEMPORARY) & ~run.gradients & ~only_full(run)
    return np.where(back & mostly, 0.5, forward)


def embeds(run: Run) -> bool:
    """Whether the model begins with an embedding."""
    return any(_EMBEDDING.search(frame.name) for frame in run.study.snapshot.stacks.frames)


def is_of_embedding(path: Path) -> bool:
    """Whether the innermost call is one of an embedding."""
    return any(_EMBEDDING.search(name) for _, _, name in path[-1])
