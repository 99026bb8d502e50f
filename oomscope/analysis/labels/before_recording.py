"""What was there before the recording, where no stack says what it is: told by sizes, counts and ends.

A gradient is as large as its parameter, and so are most states of an optimizer. So where one step of the recording
shows how many tensors of each size the model has, the older blocks of those sizes are: its parameters, where those were
not seen being made; gradients, where the recorded backward made none; and states, as many times the model as are left.
Where nothing tells, they stay unknown.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.kinds import GRADIENT, OPTIMIZER_STATE, PARAMETER
from oomscope.analysis.labels.lifetime_facts import LifetimeFacts
from oomscope.analysis.labels.phases import BACKWARD
from oomscope.analysis.labels.size_matching import SCALAR, one_for_each
from oomscope.analysis.labels.stack_roles import Role
from oomscope.frozen import frozen
from oomscope.history import BEFORE
from oomscope.model import BoolArray, IntArray, UInt8Array
from oomscope.model.ordering import ascending

_MOST_STATES = 2
"""For each parameter: Adam's two moments. More tensors of its size are no known optimizer's, but another model."""
_MANY_STATES = 2 * _MOST_STATES
"""For each gradient that is made anew, with those of a step underway, which may be there twice."""
_NEARLY_ALL = 0.9
"""Of the bytes; the counts of small sizes may differ, for other tensors are as large by chance."""
_TIMES_ACCUMULATED = (2, 3, 4)
"""How often the model is there while gradients are added in place: parameters, gradients, and up to two states each."""


@frozen(eq=False)
class ModelSizes:
    """How many tensors of each size the model has.

    Attributes:
        size: int64[sizes], bytes, ascending and distinct.
        count: int64[sizes].
        made: int64[sizes], how many new gradients a recorded backward made; so many can be no older.
    """

    size: IntArray
    count: IntArray
    made: IntArray

    def count_of(self, size: IntArray) -> IntArray:
        """How many tensors of each `size` the model has."""
        if not len(self.size):
            return np.zeros(len(size), np.int64)
        at = np.minimum(np.searchsorted(self.size, size), len(self.size) - 1)
        return np.where(self.size[at] == size, self.count[at], 0)


def settle(facts: LifetimeFacts, category: UInt8Array, is_parameter: BoolArray) -> BoolArray:
    """Give older blocks without frames their category.

    Args:
        facts: of the device.
        category: uint8[lifetimes], as far as it is known; changed in place.
        is_parameter: which rows are known to be parameters.

    Returns:
        Which rows are parameters that nothing had told yet.
    """
    found = np.zeros(len(facts), np.bool_)
    rows = np.flatnonzero((facts.role == Role.UNFRAMED) & facts.before)
    model = _model_sizes(facts, category, is_parameter, rows)
    if not len(rows) or not len(model.size):
        return found
    fits = model.count_of(facts.bytes[rows]) > 0
    # What only waited for a stream when the recording began was freed at no entry, and nothing tells why.
    ended = ~facts.lives[rows] & (facts.lifetimes.freed[rows] != BEFORE)
    _settle_freed(facts, category, rows[fits & ended], model)
    left = rows[fits & facts.lives[rows]]
    left = left[np.argsort(_likeness_to_states(facts, left), kind="stable")]
    for kind, wanted in _wanted(facts, category, is_parameter, left, model):
        chosen = one_for_each(facts.bytes[left], np.arange(len(left)), np.repeat(model.size, wanted))
        category[left[chosen]] = kind
        if kind == PARAMETER:
            found[left[chosen]] = True
        left = left[~chosen]
    return found


def _wanted(
    facts: LifetimeFacts, category: UInt8Array, is_parameter: BoolArray, rows: IntArray, model: ModelSizes
) -> list[tuple[int, IntArray]]:
    """How many tensors of each size are missing of each category, in the order in which rows are given to them."""
    known = facts.lives & (is_parameter | (category == PARAMETER))
    parameters = np.maximum(model.count - _count(facts.bytes[known], model.size), 0)
    gradients = np.maximum(model.count - model.made, 0)
    framed = _count(facts.bytes[facts.lives & (category == OPTIMIZER_STATE)], model.size)
    states = np.maximum(_MOST_STATES * model.count - framed, 0)
    left = _count(facts.bytes[rows], model.size) - parameters - gradients
    whole = left >= model.count
    share = (model.size * model.count)[whole].sum() / max((model.size * model.count).sum(), 1)
    # States come for the whole model or not at all; a few tensors of its sizes are something else.
    if not facts.trains or share < _NEARLY_ALL:
        states = np.zeros_like(states)
    return [(PARAMETER, parameters), (GRADIENT, gradients), (OPTIMIZER_STATE, states)]


def _settle_freed(facts: LifetimeFacts, category: UInt8Array, rows: IntArray, model: ModelSizes) -> None:
    """What was freed since: states that a step replaced by new ones, and one gradient a parameter."""
    state = facts.freed_by_optimizer(rows)
    category[rows[state]] = OPTIMIZER_STATE
    rest = rows[~state]
    first = one_for_each(facts.bytes[rest], facts.lifetimes.freed[rest], np.repeat(model.size, model.count))
    category[rest[first]] = GRADIENT


def _model_sizes(facts: LifetimeFacts, category: UInt8Array, is_parameter: BoolArray, rows: IntArray) -> ModelSizes:
    """From parameters that were seen being made; else from one step's gradients, from states, or from what is added.

    Where gradients are added in place, a backward makes new ones only for a few parameters; then states tell of more.
    """
    gradients = _gradients_of_one_step(facts, category)
    known = facts.lives & is_parameter & (facts.role == Role.LOAD)
    if known.any():
        size, count = np.unique(facts.bytes[known], return_counts=True)
        return ModelSizes(size, count, _count(gradients, size))
    state = (category == OPTIMIZER_STATE) & (facts.bytes > SCALAR) & facts.lives
    if len(gradients) and np.count_nonzero(state) <= _MANY_STATES * len(gradients):
        size, count = np.unique(gradients, return_counts=True)
        return ModelSizes(size, count, count)
    if state.any():
        size, count = np.unique(facts.bytes[state], return_counts=True)
        each = max(1, len(ascending(facts.lifetimes.stack[state])))
        kept = facts.bytes[(category == GRADIENT) & ~facts.before & facts.lives]
        return ModelSizes(size, np.maximum(count // min(each, _MOST_STATES), 1), _count(kept, size))
    return _accumulated(facts, rows)


def _gradients_of_one_step(facts: LifetimeFacts, category: UInt8Array) -> IntArray:
    """The sizes of the gradients that the fullest recorded backward made."""
    gradients = np.flatnonzero((category == GRADIENT) & ~facts.before)
    if not len(gradients):
        return np.zeros(0, np.int64)
    round_ = facts.next_forward[gradients]
    rounds, counts = np.unique(round_, return_counts=True)
    return np.asarray(facts.bytes[gradients[round_ == rounds[np.argmax(counts)]]])


def _accumulated(facts: LifetimeFacts, rows: IntArray) -> ModelSizes:
    """Where a backward adds to gradients that are there: it makes one tensor for each parameter, and drops it."""
    nothing = np.zeros(0, np.int64)
    made = np.flatnonzero(facts.happens(BACKWARD) & ~facts.lives)
    passes = max(1, len(ascending(facts.next_forward[made])))
    size, older = np.unique(facts.bytes[rows[facts.lives[rows]]], return_counts=True)
    count = _count(facts.bytes[made], size) // passes
    size, older, count = size[count > 0], older[count > 0], count[count > 0]
    if not len(size):
        return ModelSizes(nothing, nothing, nothing)
    ratio, weight = older / count, size * older
    order = np.argsort(ratio)
    at = np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)
    times = round(float(ratio[order][min(int(at), len(order) - 1)]))
    whole = older % max(times, 1) == 0
    if times not in _TIMES_ACCUMULATED or weight[whole].sum() < _NEARLY_ALL * weight.sum():
        return ModelSizes(nothing, nothing, nothing)
    return ModelSizes(size[whole], older[whole] // times, np.zeros_like(size[whole]))


def _count(size: IntArray, sizes: IntArray) -> IntArray:
    """How many of `size` there are of each of the ascending `sizes`."""
    found = np.sort(size)
    return np.searchsorted(found, sizes, side="right") - np.searchsorted(found, sizes, side="left")


def _likeness_to_states(facts: LifetimeFacts, rows: IntArray) -> IntArray:
    """A rank that is higher where blocks look more like optimizer states than like parameters.

    States are made one after another for each parameter, so in their segments two of a size lie side by side;
    parameters of a size are parted by the others of their layer. Among equals, ordinary segments obtained later
    lie lower (the driver hands out addresses downwards), and expandable ones fill upwards.
    """
    history = facts.history
    order = np.argsort(facts.lifetimes.address[rows], kind="stable")
    size, span = facts.bytes[rows[order]], history.span[rows[order]]
    twin = np.zeros(len(rows), np.float64)
    same = (size[1:] == size[:-1]) & (span[1:] == span[:-1])
    twin[1:] += same
    twin[:-1] += same
    _, segment = np.unique(span, return_inverse=True)
    weight = np.maximum(np.bincount(segment, weights=size), 1)
    paired = (np.bincount(segment, weights=size * (twin > 0)) / weight)[segment]
    expandable = history.spans.is_expandable[span] & (span >= 0) if len(history.spans) else span < 0
    place = np.where(expandable, 1, -1) * np.arange(len(rows))
    rank = np.empty(len(rows), np.int64)
    rank[order[np.lexsort((place, np.round(paired, 1)))]] = np.arange(len(rows))
    return rank
