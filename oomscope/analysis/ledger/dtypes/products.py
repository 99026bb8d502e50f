"""Which results go into products of matrices, and into how many: each is given a copy under autocast."""

from __future__ import annotations

import re

import numpy as np

from oomscope.analysis.labels.phases import BACKWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.casts import SMALL_WEIGHT, next_of_another_stack
from oomscope.analysis.ledger.paths import Path, module_of
from oomscope.analysis.ledger.run import Run
from oomscope.model import BoolArray, IntArray
from oomscope.model.ordering import ascending

CONVOLUTION = re.compile(r"torch/nn/modules/conv\.py")
NEEDS_INPUT = re.compile(r"layer_norm|group_norm|rms_norm|^(pow|log|norm|prod)$")
"""In full precision, and its backward needs what went in: a copy of that in full precision, where it was in half."""
GATED, ATTENTION = 3, 4
"""Products of a module."""
MANY_PRODUCTS = 5
"""Of one norm's result and a module: more than a gated layer or attention has. The last one projects back."""


def products_fed(
    run: Run,
    rows: IntArray,
    known: dict[int, Path],
    like_products: BoolArray,
    norms: BoolArray,
    with_own_parameters: BoolArray,
) -> list[int]:
    """For each of `rows`, how many products it goes into if one comes next.

    Of what one call makes, that is the largest: a norm's result, not its statistics. What a module makes with its own
    parameters it multiplies first, and adds something to that. Where three products
    belong to one module and two make as much (a gated layer) it goes into two, where four do and the next makes as much
    (attention), into three: the last one projects back. Convolutions have an input each, and so has what is computed
    like products.
    What a loss makes last goes into no product of the next forward.
    """
    single = like_products[rows]
    is_product = run.marked(Mark.LINEAR)[rows] | single
    stack, size = run.stack[rows], run.size[rows]
    owner, norm, written = [known[one][:-1] for one in stack.tolist()], norms[rows], with_own_parameters[rows]
    modules = [module_of(path) if path else None for path in owner]
    calls: dict[object, set[int]] = {}
    for one, path, product in zip(stack.tolist(), owner, is_product.tolist(), strict=True):
        if product and not CONVOLUTION.search(known[one][-1][0][0]):
            calls.setdefault(module_of(path), set()).add(one)
    found = [0] * len(rows)
    other = next_of_another_stack(np.flatnonzero(is_product), stack)
    begin = 0
    same_pass = np.diff(np.cumsum(run.during(BACKWARD))[rows]) == 0
    for place in range(len(rows) - 1):
        if stack[place] != stack[begin]:
            begin = place
        if is_product[place + 1] and stack[place + 1] != stack[place] and same_pass[place]:
            fed = last_of_largest(size, begin, place + 1)
            fed = fed if written[fed] else begin + int(np.argmax(size[begin : place + 1]))
            several = len(calls.get(module_of(owner[place + 1]), ()))
            twice = size[other[place + 1]] == size[place + 1] if other[place + 1] >= 0 else False
            projects = size[place + 1] == size[fed] or _three_alike(place + 1, other, size)
            alike = (several == GATED and twice) or (several == ATTENTION and projects)
            alone = single[place + 1] or bool(CONVOLUTION.search(known[int(stack[place + 1])][-1][0][0]))
            many, lines = (0, 0) if alone else _products_of_call(known, is_product, stack, norm, begin, place + 1)
            many = many if many >= MANY_PRODUCTS or GATED <= many > lines else 2
            alongside = 1 if alone else _given_the_same(run, rows, modules, place + 1)
            found[fed] = max(several - 1 if alike and not alone else 1, many - 1, alongside)
    return found


def last_of_largest(size: IntArray, begin: int, end: int) -> int:
    """The place of the largest of `size` from `begin` on, before `end`; of several the last."""
    return end - 1 - int(np.argmax(size[begin:end][::-1]))


def _given_the_same(run: Run, rows: IntArray, module: list[object], product: int) -> int:
    """How many layers of a module are given one thing: none behind the first is given what the last one made.

    The backward of one that is would need that. Their weights are as large beside one another as their results.
    """
    last, layers, weights = product, {int(run.stack[rows[product]])}, ascending(run.trained[run.trained > SMALL_WEIGHT])
    while last + 1 < len(rows) and not run.saved[rows[last]]:
        row, first = int(rows[last + 1]), int(run.size[rows[product]])
        scaled = weights * int(run.size[row])
        alike = ((scaled % first == 0) & np.isin(scaled // first, weights)).any()
        if not run.marked(Mark.LINEAR)[row] or module[last + 1] != module[product] or not alike:
            break
        last += 1
        layers.add(int(run.stack[row]))
    return len(layers)


def _three_alike(place: int, other: IntArray, size: IntArray) -> bool:
    """Whether three products of different lines are of one size, one after another: queries, keys and values."""
    second = int(other[place])
    third = int(other[second]) if second >= 0 else -1
    return third >= 0 and size[place] == size[second] == size[third]


def _products_of_call(
    known: dict[int, Path], is_product: BoolArray, stack: IntArray, norm: BoolArray, begin: int, product: int
) -> tuple[int, int]:
    """How many products the module of a `product` makes of what a norm made at `begin`, and on how many lines.

    They end with the next norm. A container calls its layers one after another; each is given what the last one made.
    """
    owner = known[int(stack[product])][:-1]
    if owner[-1][0][0].startswith("torch/") or not norm[begin]:
        return 0, 0
    lines = list[int]()
    for place in range(product, len(stack)):
        path = known[int(stack[place])]
        if norm[place]:
            break
        if is_product[place] and module_of(path[:-1]) == module_of(owner):
            lines.append(int(stack[place]))
    return len(lines), len(set(lines))


def is_norm(path: Path) -> bool:
    """Whether the innermost call is one of a norm, or the like."""
    return any(NEEDS_INPUT.search(name) for _, _, name in path[-1])
