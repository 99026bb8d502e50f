"""A second model beside the one in use: a reference, an average, loaded weights, or one that is no longer trained."""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels import kinds
from oomscope.analysis.labels.drivers.live_blocks import LiveBlocks
from oomscope.analysis.labels.size_matching import LEAST_SIZES, NEARLY_ALL, one_for_each, shared_bytes
from oomscope.analysis.records import Location
from oomscope.model import BoolArray, IntArray
from oomscope.model.ordering import ascending

SLUG = "duplicate_model"
CATEGORIES = (kinds.PARAMETER, kinds.GRADIENT, kinds.OPTIMIZER_STATE)
BECOMES = None
EVIDENCE = (
    "sizes_of_earlier_parameters_from_another_line", "one_line_twice_and_only_half_of_it_trained",
    "gradients_older_than_the_model_that_is_trained",
)  # fmt: skip
LOOKS_LIKE = ("layers_of_equal_size", "equal_parts_of_every_layer", "two_models_of_one_kind_that_are_both_trained")

LEAST_TENSORS = 4
"""Two layers with their biases; of fewer, equal sizes may be chance."""
LEAST_OF_MODEL = 0.5
"""Of the earlier model's bytes: what repeats less of it is a part, such as adapters or one more layer."""
MOST_TRAINED = 0.6
"""Of both halves' tensors. Where one line made two models, exactly half is trained; a few may be tied or frozen."""


def find(live: LiveBlocks) -> BoolArray:
    """A model that another one has followed; else copies of a model."""
    followed = left_over(live)
    return followed if followed.any() else _copies(live)


def left_over(live: LiveBlocks) -> BoolArray:
    """A model that was trained until another was made, and not since; with its gradients and its states.

    A program that drops its gradients in every step makes new ones for what it trains; what keeps gradients that are
    older than another model, while that one is trained, is not.
    """
    found = live.none()
    lifetimes, categories = live.study.history.lifetimes, live.study.categories
    born = lifetimes.born[live.rows]
    parameter, gradient = live.of(kinds.PARAMETER), live.of(kinds.GRADIENT)
    if not gradient.any():
        return found
    later = parameter & (born > born[gradient].min())
    if np.count_nonzero(later) < LEAST_TENSORS:
        return found
    made = int(born[later].min())
    drops = np.any((categories == kinds.GRADIENT) & (lifetimes.freed < made))
    goes_on = np.count_nonzero((categories == kinds.GRADIENT) & (lifetimes.born > made)) >= LEAST_TENSORS
    stale = gradient & (born < made)
    rows = np.flatnonzero(parameter & (born < made))
    mine = rows[one_for_each(live.bytes[rows], -born[rows], live.bytes[stale])]
    if not (drops and goes_on and len(mine) >= LEAST_TENSORS):
        return found
    found[mine] = True
    return np.asarray(found | stale | (live.of(kinds.OPTIMIZER_STATE) & (born < made)))


def _copies(live: LiveBlocks) -> BoolArray:
    """Parameters that repeat, size for size, others made earlier by another line of the program.

    The same line called twice makes a copy, too, where the sizes come as one sequence twice over and only one half of
    them is trained.
    """
    found = live.none()
    rows = np.flatnonzero(live.of(kinds.PARAMETER))
    if len(rows) < 2 * LEAST_TENSORS:
        return found
    rows = rows[np.argsort(live.study.history.lifetimes.born[live.rows[rows]], kind="stable")]
    size = live.study.history.size[live.rows[rows]]
    maker = _makers(live, rows)
    makers = [np.flatnonzero(maker == one) for one in dict.fromkeys(maker.tolist()) if one >= 0]
    copy = np.zeros(len(rows), np.bool_)
    for number, later in enumerate(makers):
        for earlier in makers[:number]:
            # What two lines make in turn, such as keys and values, are parts of every layer.
            follows = later[0] > earlier[-1] and not copy[earlier].any()
            if follows and len(later) >= LEAST_TENSORS and _contains(size[earlier], size[later]):
                copy[later] = True
                break
    half = len(rows) // 2
    twice = len(rows) % 2 == 0 and bool(np.array_equal(size[:half], size[half:]))
    if not copy.any() and twice and 0 < _trained(live) <= MOST_TRAINED * len(rows):
        copy[half:] = True
    found[rows[copy]] = True
    return found


def _makers(live: LiveBlocks, rows: IntArray) -> IntArray:
    """A number for the call that made each parameter: the reader's own line, and the function that it called there."""
    number: dict[tuple[object, ...], int] = {}
    sites, stacks, stack = live.study.sites, live.study.snapshot.stacks, live.stack[rows]
    made = np.full(len(stacks) + 1, -1, np.int64)
    for one in ascending(stack[stack >= 0]).tolist():
        caller = sites.location(int(sites.caller_of[one]))
        inner = None
        for frame in stacks[one]:
            if Location(frame.filename, frame.line, frame.name) == caller:
                made[one] = number.setdefault((caller, inner), len(number))
                break
            inner = (frame.filename, frame.name)
    return np.asarray(made[stack])


def _contains(whole: IntArray, part: IntArray) -> bool:
    """Whether nearly all of `part` comes again in `whole`, and is most of it."""
    if len(ascending(part)) < LEAST_SIZES:
        return False
    same = shared_bytes(part, whole)
    return same >= NEARLY_ALL * int(part.sum()) and same >= LEAST_OF_MODEL * int(whole.sum())


def _trained(live: LiveBlocks) -> int:
    """How many parameters have a gradient or a state, at the end."""
    history, categories = live.study.history, live.study.categories
    lives = history.lifetimes.freed >= history.entries
    gradients = int(np.count_nonzero(lives & (categories == kinds.GRADIENT)))
    states = lives & (categories == kinds.OPTIMIZER_STATE)
    stacks = np.unique(history.lifetimes.stack[states], return_counts=True)[1]
    return max(gradients, int(stacks.max(initial=0)))
