"""What has piled up: live bytes that finished passes left behind, and those that the program has finished with."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from oomscope.analysis.passes.ended_training import EndedTraining
from oomscope.analysis.passes.former_model import FormerModel
from oomscope.analysis.passes.kept_models import KeptModels
from oomscope.analysis.passes.left_by_calls import LeftByCalls
from oomscope.analysis.passes.loaded_copies import LoadedCopies
from oomscope.analysis.passes.records import Growth
from oomscope.analysis.passes.replaced_optimizer import ReplacedOptimizer
from oomscope.analysis.passes.rising_request import RisingRequest
from oomscope.analysis.records import Location
from oomscope.analysis.verdict.records import Suspect
from oomscope.analysis.verdict.suspects import UNDERWAY, is_finished_with, never_collected
from oomscope.frozen import frozen

Left = EndedTraining | ReplacedOptimizer | LoadedCopies | FormerModel | LeftByCalls
"""What the trace alone shows to be left over, the surest kind first."""

LEAST_PASSES = 3
"""What stays from one pass may be the previous output, from two a double buffer; three in a row pile up."""
MOST_GATHERED = 24
"""Passes. Losses of micro-batches that go through one backward are 16 as a rule, and seldom more than that."""
MOST_TRIES = 10
"""Passes. A search over settings or batch sizes that keeps the errors of its failed tries seldom has more of them."""
MOSTLY = 0.5
"""Of the allocated bytes: an object that keeps more piles up from two passes on; a double buffer is not that large."""
WORTH_TELLING = 0.05
"""The same, of what keeps more beside the object that the headline names."""
WORTH_RELEASING = 0.1
"""Of the allocated bytes: what variables that are not read again must keep together. Every program has a few."""
SAME_PACE = 20
"""The part of a pace by which the object's and its site's may differ and still be told as one figure."""
STEADY = 0.9
"""R² of live bytes over passes from which on growth is beyond doubt."""


@frozen
class LoopFacts:
    """What is known of a loop whose passes are counted.

    Attributes:
        goes_on: whether it was running when the request failed; what a loop has filled that ended is in use.
        trains_within: whether its passes have a backward of their own, so that each is a whole step.
        trained_before: whether the program had a backward before this loop began.
        keeps_graph: whether what grows by site is autograd graphs.
        models: whole models that finished passes left behind.
        rising: a tensor that grows, and that the request would replace by a larger one.
        failed_tries: bytes that earlier passes left which failed as well.
        ended_training: what a training that has ended left, while another one is underway.
        optimizes_within: whether an optimizer's step lies within its passes.
        loaded: what a checkpoint keeps that was copied from.
        former: what the training of a model has left that another one has followed.
        calls: what calls that ran a model have left when they returned.
        computes_loss: whether graphs may wait for a backward: the program has computed a loss, or a recording would
            tell what keeps them.
        gathers: whether the recorder saw that a backward is to come, after the loop, of what its passes make.
        replaced: the states of an optimizer that another one has followed.
        failed_at_once: whether others of many calls that ran at the same time had failed before.
    """

    goes_on: bool = True
    trains_within: bool = False
    trained_before: bool = False
    keeps_graph: bool = False
    models: KeptModels | None = None
    rising: RisingRequest | None = None
    failed_tries: int = 0
    ended_training: EndedTraining | None = None
    optimizes_within: bool = True
    loaded: LoadedCopies | None = None
    former: FormerModel | None = None
    calls: LeftByCalls | None = None
    computes_loss: bool = True
    gathers: bool = False
    replaced: ReplacedOptimizer | None = None
    failed_at_once: bool = False

    def may_be_one_step(self, passes: int) -> bool:
        """Whether few passes with a backward each, and no step of an optimizer, may be parts of one step.

        Micro-batches whose gradients are kept, or objectives that are weighed against each other.
        """
        return self.trains_within and not self.optimizes_within and not self.trained_before and passes <= MOST_GATHERED


@frozen
class Piled:
    """Bytes that have piled up when a request failed.

    Attributes:
        grown: left behind by finished passes of a loop.
        steady: those of them that rise beyond doubt: in a straight line, or kept by one object that is known.
        retained: kept by what the program has finished with.
        per_pass: by how much `grown` rises a pass; None unknown.
        passes: how many finished passes left something.
        holder: the object that keeps most of `grown`, where it is known.
        beside: others that the same passes have filled, largest first: targets beside predictions.
        debris: the objects that keep `retained`, largest first.
        models: whole models that finished passes left behind, where that is what has piled up.
        left: where `retained` is what a training that has ended left, or a checkpoint that was copied from, that.
    """

    grown: int = 0
    steady: int = 0
    retained: int = 0
    per_pass: int | None = None
    passes: int = 0
    holder: Suspect | None = None
    beside: tuple[Suspect, ...] = ()
    debris: tuple[Suspect, ...] = ()
    models: KeptModels | None = None
    left: Left | None = None


def find_piled(
    growth: tuple[Growth, ...],
    suspects: tuple[Suspect, ...],
    underway: Collection[str],
    loop: LoopFacts,
) -> Piled:
    """What has piled up.

    The trace tells which sites grow; the recording, where there is one, which objects keep blocks of finished passes.
    Either may miss what the other sees, so the larger counts; what is `retained` is not counted as growth.

    Args:
        growth: what grew until the request failed.
        suspects: the objects that keep memory alive.
        loop: what is known of the loop whose passes are counted.
        underway: functions of which many calls were underway at once: what they hold is at work, however many.
    """
    growth = _that_piles_up(growth, underway, loop)
    # What calls at once do not read again is at work; whose variable it is cannot be told from their names alone.
    debris = tuple(one for one in _debris(suspects, loop) if not (one.unread == "likely" and underway))
    tries = 0 if suspects else loop.failed_tries
    left = None if debris else _left(loop, tries)
    retained = (sum(one.retained for one in debris) or tries) if left is None else left.bytes
    kept = [one for one in suspects if one not in debris and _piles_up(one, loop) and not _is_at_work(one, underway)]
    by_objects = sum(one.earlier_bytes for one in kept)
    bounded = sum(one.retained for one in suspects if one.is_full and not one.is_abandoned)
    by_sites = max(sum(one.spared_bytes for one in growth) - retained - bounded, 0)
    steady = sum(one.spared_bytes for one in growth if _is_steady(one))
    surely = sum(one.earlier_bytes for one in kept if _surely(one, loop))
    mostly = [one for one in kept if 2 * one.earlier_bytes >= by_sites]  # else something else keeps most of it
    holder = max(mostly, key=lambda one: one.earlier_bytes, default=None)
    passes = max([one.passes for one in kept] + [one.generations for one in growth], default=0)
    rises = loop.rising.grown if loop.rising else 0
    each = _pace(holder, growth) or (by_objects // passes if passes else 0)
    if holder is None and loop.rising is not None and rises >= max(by_objects, by_sites):
        each = max(each, 2 * loop.rising.per_join)  # the old and the new one are there at once
    if loop.models is not None and loop.models.bytes - retained > max(by_objects, by_sites):
        models = loop.models
        return Piled(models.bytes, 0, retained, models.bytes // models.passes, models.passes, None, (), debris, models)
    sure = 0 if loop.may_be_one_step(passes) else max(surely, max(steady - retained, 0))
    return Piled(
        # Where an object is named, only what it keeps itself is promised; the sites see what others keep as well.
        grown=by_objects if holder is not None else max(by_objects, by_sites, rises),
        steady=sure,
        retained=retained,
        per_pass=each or None,
        passes=passes,
        holder=holder,
        beside=() if holder is None else tuple(one for one in kept if _goes_with(one, holder)),
        debris=debris,
        left=left,
    )


def _goes_with(suspect: Suspect, holder: Suspect) -> bool:
    """Whether passes that fill `holder` fill it as well; neither keeps a graph, which one may share with the other.

    Not a bounded collection beside one that is not: it will be full one day.
    """
    if suspect.is_bounded and not holder.is_bounded:
        return False
    alike = suspect.passes == holder.passes and not (suspect.keeps_graph or holder.keeps_graph)
    return alike and suspect is not holder and suspect.share >= WORTH_TELLING


def _that_piles_up(growth: tuple[Growth, ...], underway: Collection[str], loop: LoopFacts) -> tuple[Growth, ...]:
    """The sites that grow, but for those of calls that are `underway`.

    Before any backward, a few graphs are gathered for the first one as a rule, which begins with a loss; a collection
    tells otherwise.
    """
    growth = tuple(one for one in growth if not _is_of(one, underway))
    if loop.keeps_graph and not (loop.trained_before or loop.trains_within):
        most = MOST_GATHERED if loop.computes_loss else LEAST_PASSES
        return tuple(replace(one, fit=0.0) for one in growth if one.generations > most)
    return growth


def _debris(suspects: tuple[Suspect, ...], loop: LoopFacts) -> tuple[Suspect, ...]:
    """What the program has finished with; variables that are not read again only where they keep much together.

    What errors keep of calls that ran at the same time and failed, those had needed at once.
    """
    minor = sum(one.share for one in suspects if one.unread is not None) < WORTH_RELEASING
    found = (one for one in suspects if is_finished_with(one) and not _adds_up(one, loop))
    found = (one for one in found if not (loop.failed_at_once and one.kind == "exception"))
    return tuple(one for one in found if not (minor and one.unread is not None))


def _left(loop: LoopFacts, tries: int) -> Left | None:
    """What a training that has ended left, or a checkpoint, if that is more than the bytes that failed `tries` left."""
    known = (loop.ended_training, loop.replaced, loop.loaded, loop.former, loop.calls)
    return next((one for one in known if one is not None and one.bytes > tries), None)


def _is_steady(growth: Growth) -> bool:
    return growth.fit >= STEADY and not growth.within_step and not growth.in_another_thread


def _adds_up(suspect: Suspect, loop: LoopFacts) -> bool:
    """Whether it goes on with every pass, and not only after one.

    Views that a list of them collects keep more with every one. An optimizer that was given more parameters pass after
    pass is in use, whatever became of its modules; exceptions of more passes than a search over settings has are those
    of requests that keep coming. A cycle that no collection ends is there for good.
    """
    if suspect.shows is not None and suspect.unread is None:
        return suspect.passes >= LEAST_PASSES
    if suspect.kind == "exception":
        enough = MOST_TRIES + 1 if loop.failed_tries else LEAST_PASSES
        return loop.goes_on and suspect.unread is None and suspect.passes >= enough
    if suspect.kind == "deferred":
        return loop.goes_on and suspect.passes >= LEAST_PASSES
    return (suspect.kind == "optimizer" or never_collected(suspect)) and suspect.passes >= LEAST_PASSES


def _pace(holder: Suspect | None, growth: tuple[Growth, ...]) -> int:
    """By how much a pass fills `holder`, as the one row of growth has it where they agree; without one, all rows."""
    by_rows = sum(map(_per_pass, growth))
    if holder is None:
        return by_rows
    each = holder.finished_bytes // holder.passes
    return by_rows if len(growth) == 1 and abs(by_rows - each) * SAME_PACE <= each else each


def _per_pass(growth: Growth) -> int:
    """By how much a pass raises what is needed: while a tensor is replaced by a larger one, both are there."""
    if growth.kind != "reallocation":
        return growth.bytes_per_step
    return growth.bytes_per_step + growth.bytes_per_step // max(growth.blocks, 1)


def _is_at_work(suspect: Suspect, functions: Collection[str]) -> bool:
    """Whether an object is a variable of one of the calls that are underway, or what a call has just been given."""
    if suspect.is_abandoned:
        return False
    function, colon, _ = suspect.holder.partition(": ")
    return suspect.kind in UNDERWAY or (bool(colon) and function.rpartition(".")[2] in functions)


def _is_of(growth: Growth, functions: Collection[str]) -> bool:
    """Whether a site that seems to grow belongs to one of `functions`."""
    places: tuple[Location | None, ...] = (growth.site, growth.caller)
    return any(place is not None and place.function in functions for place in places)


_COLLECTIONS = ("list", "dict", "deque", "set", "collection", "attribute", "global", "closure")


def _piles_up(suspect: Suspect, loop: LoopFacts) -> bool:
    """Whether what an object keeps of finished passes is left over, and not the work of a step that goes on.

    A graph that a variable holds is work where the backward comes once, after the loop: losses of micro-batches that
    are summed, steps of an inner loop that is differentiated through, layers of a model that is a plain function.
    """
    enough = LEAST_PASSES - 1 if suspect.share >= MOSTLY else LEAST_PASSES
    if not loop.goes_on or suspect.passes < enough or (suspect.is_full and not suspect.is_abandoned):
        return False
    if loop.gathers and suspect.keeps_graph:
        return False
    whole = loop.trains_within or loop.trained_before
    return whole or suspect.kind in _COLLECTIONS or not suspect.keeps_graph or _is_of_an_object(suspect)


def _is_of_an_object(suspect: Suspect) -> bool:
    """Whether an attribute holds it, as a meter's mean: no variable of the function whose loop it is."""
    return "." in suspect.holder.rpartition(": ")[2]


def _surely(suspect: Suspect, loop: LoopFacts) -> bool:
    """Whether no later backward can be what it is kept for: it keeps no graph, or each pass had its own backward.

    Two passes may as well be two different things that one loop runs, such as the cells of a notebook.
    """
    if suspect.passes < LEAST_PASSES:
        return False
    return loop.trains_within or not suspect.keeps_graph or (loop.trained_before and suspect.kind in _COLLECTIONS)
