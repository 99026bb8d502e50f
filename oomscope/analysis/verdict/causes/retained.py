"""Retained: kept alive by what the program has finished with.

A stored exception keeps the frames of its traceback, and with them every local variable of calls that have ended; a
reference cycle that nothing reaches waits for the garbage collector. Neither is used by any code that runs.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.attribution.held_blocks import keeper_of
from oomscope.analysis.labels.categories import GRADIENT, OPTIMIZER_STATE
from oomscope.analysis.passes.ended_training import EndedTraining
from oomscope.analysis.passes.former_model import FormerModel
from oomscope.analysis.passes.left_by_calls import LeftByCalls
from oomscope.analysis.passes.loaded_copies import LoadedCopies
from oomscope.analysis.passes.replaced_optimizer import ReplacedOptimizer
from oomscope.analysis.verdict import clauses
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Suspect
from oomscope.analysis.verdict.shortage import MARGIN, Shortage, Tested
from oomscope.analysis.verdict.suspects import reaching
from oomscope.analysis.verdict.unread import FROZEN, FROZEN_OF, FROZEN_STATES, GRAPH, frozen_module, said_reads
from oomscope.model import Note, note

SLUG = "retained"
DECIDING = ("request", "without", "limit")
REMEDIES = (
    "copy_view", "release_variable", "release_ended_training", "release_checkpoint", "release_results",
    "forget_exception", "collect_garbage", "drop_optimizer", "release_closure", "release_history",
    "cancel_deferred_call", "raise_cap",
)  # fmt: skip
LOOKS_LIKE = ("generator_that_is_suspended", "list_that_is_still_filled")


_CODES = {
    "exception": "causes.retained.exception",
    "cycle": "causes.retained.cycle",
    "optimizer": "causes.retained.optimizer",
    "deferred": "causes.retained.deferred",
    "history": "causes.retained.history",
    FROZEN: "causes.retained.frozen",
    FROZEN_STATES: "causes.retained.frozen_states",
    GRAPH: "causes.retained.graph",
}

_ALSO = {
    FROZEN: "causes.retained.also_frozen",
    FROZEN_STATES: "causes.retained.also_frozen_states",
}

_LEFT_BY = {
    "calls": "causes.retained.calls",
    "statements": "causes.retained.statements",
    "pass": "causes.retained.pass",
}

MUCH = 0.15
"""Of the allocated bytes. A first pass may need more than its next request, and variables that are not read again are
in many programs."""
MORE = 0.3
"""The same, before its backward has begun: more activations may follow, gradients, and an optimizer's state."""
WORTH_TELLING = 0.05
"""The same, of what keeps more beside the object that the headline names."""
_MAY_BE_READ = ("deferred", "history", FROZEN_STATES)
"""Kinds that code which is still to come may read."""


def withheld(case: Shortage) -> int:
    """What exceptions, unreachable cycles and optimizers of models that are gone keep."""
    return case.retained


def doubt(circumstances: Circumstances, tested: Tested) -> Note | None:
    """None where the recording saw the object that keeps it, and no other limit would give another cause."""
    low, debris, case = circumstances.request.limit.low, circumstances.piled.debris, circumstances.shortage
    if not debris:
        return note("doubts.may_be_read" if _keeper_of_left(circumstances) else "doubts.trace_alone")
    if debris[0].kind == "optimizer" and debris[0].unread is None:
        return note("doubts.no_module")
    unsure = sum(one.retained for one in debris if one.unread == "likely" or one.kind in _MAY_BE_READ)
    if unsure and case.spare(circumstances.piled.retained - unsure, low) < MARGIN * low:
        return note("doubts.may_be_read")
    if debris[0].shows is not None:
        return note("doubts.storage_shared")
    if debris[0].unread and circumstances.growth:
        return note("doubts.loop_fills")  # by means that no code names, such as a string
    if any(one.unread for one in debris) and not _lets_the_pass_go_on(circumstances):
        return note("doubts.pass_goes_on")
    if tested.certain:
        return None
    alone = case.spare(circumstances.piled.retained, low) >= MARGIN * low
    return note("doubts.limit" if alone else "doubts.beside_holes")


def _keeper_of_left(circumstances: Circumstances) -> str | None:
    """The object that keeps what the trace shows to be left, where it is known."""
    left = circumstances.piled.left
    if isinstance(left, LeftByCalls):
        return left.holder
    if isinstance(left, (EndedTraining, ReplacedOptimizer, FormerModel)):
        return keeper_of(circumstances.study, left.rows)
    return None


def _lets_the_pass_go_on(circumstances: Circumstances) -> bool:
    """Whether this pass would have room without what is retained, if it needs what the last one did.

    Where no pass has finished, what is retained must be much of what is in use: the more, the earlier in the pass.
    """
    request, still, retained = circumstances.request, circumstances.needs.still_to_come, circumstances.piled.retained
    there, needs = circumstances.needs.state_to_come
    if still is None:
        is_late = circumstances.asked.phase in ("backward", "optimizer")
        if retained < (MUCH if is_late else MORE) * request.totals.allocated:
            return False
    further = max(still or 0, needs - there, request.size)
    return further <= request.limit.low - request.totals.active + retained


def headline(circumstances: Circumstances, tested: Tested) -> tuple[Note, ...]:
    """Which object keeps it, and by which way."""
    if not circumstances.piled.debris:
        spared = clauses.without(circumstances, tested.qualifying[0].bytes)
        return (_by_trace(circumstances), spared, *_holes(circumstances))
    first, *others = circumstances.piled.debris
    also = _also(others, circumstances.request.totals.allocated)
    code = _CODES.get(first.kind, "causes.retained.finished")
    if first.unread is not None and first.kind not in (*FROZEN_OF, GRAPH, "exception"):
        code = "causes.retained.unread"
    elif first.shows is not None:
        code = "causes.retained.view"
    return (
        note(
            code,
            holder=first.holder,
            cycle=first.holder.removeprefix("reference cycle: "),
            module=frozen_module(first),
            retained=first.retained,
            reads=said_reads(first),
            shows=first.shows,
            live=circumstances.request.totals.allocated,
        ),
        *_by_hooks(first),
        *also,
        clauses.without(circumstances, tested.qualifying[0].bytes, _told_as(others, also)),
        *_holes(circumstances),
    )


def _by_hooks(suspect: Suspect) -> tuple[Note, ...]:
    """That hooks keep most of it, and not what it is."""
    mostly = suspect.unread is not None and 2 * suspect.by_hooks >= suspect.retained
    return (note("causes.retained.by_hooks", retained=suspect.by_hooks),) if mostly else ()


def _holes(circumstances: Circumstances) -> tuple[Note, ...]:
    """What was free in pieces; first that it was short as well, where the rest would not have fitted without it."""
    case = circumstances.shortage
    if case.spare(circumstances.piled.retained, case.limit.low) >= MARGIN * case.limit.low:
        return clauses.in_pieces(circumstances)
    return (note("causes.retained.beside_holes", usable=case.free.usable, largest=case.free.largest),)


def _also(others: list[Suspect], live: int) -> tuple[Note, ...]:
    """What keeps more beside the first, where it is worth a sentence."""
    if not others or others[0].retained < WORTH_TELLING * live:
        return ()
    more = sum(one.retained for one in others[1:])
    values = {"others": len(others) - 1, "more": more} if more >= WORTH_TELLING * live else {}
    code = _ALSO.get(others[0].kind, "causes.retained.also")
    named = {"holder": others[0].holder, "module": frozen_module(others[0]), "retained": others[0].retained}
    return (note(code, **named, **values),)


def _told_as(others: list[Suspect], also: tuple[Note, ...]) -> str:
    """What could go: the bytes are those of all, also of such as are too small to be told one by one."""
    it = "them" if also else "it"
    told = 0 if not also else len(others) if "others" in also[0].values else 1
    return it if told == len(others) else f"{it} and smaller ones"


def _by_trace(circumstances: Circumstances) -> Note:
    live = circumstances.request.totals.allocated
    left = circumstances.piled.left
    if isinstance(left, LoadedCopies):
        keeper = reaching(circumstances.suspects, left.bytes)
        holder = None if keeper is None else keeper.holder
        return note("causes.retained.loaded", retained=left.bytes, live=live, place=left.place, holder=holder)
    if isinstance(left, LeftByCalls):
        code = _LEFT_BY[left.by] if left.holder is None else "causes.retained.collection"
        return note(code, retained=left.bytes, live=live, place=left.place, holder=left.holder)
    if left is not None:
        return _ended(circumstances, left)
    return note("causes.retained.failed_tries", retained=circumstances.piled.retained, live=live)


def _ended(circumstances: Circumstances, left: EndedTraining | ReplacedOptimizer | FormerModel) -> Note:
    study, live = circumstances.study, circumstances.request.totals.allocated
    values = {
        "retained": left.bytes, "live": live, "holder": keeper_of(study, left.rows),
        "states": bool(np.any(study.categories[left.rows] == OPTIMIZER_STATE)),
        "gradients": bool(np.any(study.categories[left.rows] == GRADIENT)),
    }  # fmt: skip
    if isinstance(left, FormerModel):
        return note("causes.retained.former_model", place=left.place, **values)
    if isinstance(left, ReplacedOptimizer):
        return note("causes.retained.replaced_optimizer", place=left.place, **values)
    return note("causes.retained.ended_training", loop=study.loops.location(left.run), **values)


def holds(circumstances: Circumstances, tested: Tested) -> bool:
    """There is such an object, and it keeps no more than is in use."""
    del tested
    piled = circumstances.piled
    kept = piled.debris[0].retained if piled.debris else piled.retained
    return 0 < kept <= circumstances.request.totals.active
