"""What the work underway may not need: too little to say that it is left over, enough not to be sure of the rest."""

from __future__ import annotations

from oomscope.analysis.labels.categories import BUFFER, GRADIENT, OPTIMIZER_STATE, PARAMETER, UNKNOWN
from oomscope.analysis.labels.records import Driver
from oomscope.analysis.passes.last_pass import left_by_finished_passes
from oomscope.analysis.passes.left_from_before import (
    calling_lines,
    left_from_before,
    made_by_call_underway,
    made_by_other_statements,
    may_be_left,
)
from oomscope.analysis.passes.models_made_anew import made_anew
from oomscope.analysis.passes.moved_models import may_take_turns
from oomscope.analysis.passes.work_underway import functions_in_modules
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.verdict.idle_models import bytes_without_gradients
from oomscope.analysis.verdict.records import Asked, Suspect
from oomscope.analysis.verdict.suspects import OF_THE_PASS, is_of_other_work
from oomscope.frozen import frozen
from oomscope.model.ordering import is_any


@frozen
class FailedWork:
    """The work that failed, as far as it tells what is needed.

    Attributes:
        study: of the device.
        entry: of the request.
        asked: which part of the program made it.
        trains: whether it is a training step.
        in_loop: whether a loop of the program is known.
        names_known: whether the recording names tensors and their holders.
    """

    study: DeviceStudy
    entry: int
    asked: Asked
    trains: bool
    in_loop: bool
    names_known: bool

    @property
    def in_forward(self) -> bool:
        """Whether a module's forward was running."""
        return self.asked.phase == "forward"


def may_be_done_with(work: FailedWork, suspects: tuple[Suspect, ...], drivers: tuple[Driver, ...]) -> int:
    """Bytes that `work` may not need: older than its loop, another model, kept by an object."""
    study, entry = work.study, work.entry
    older, second = left_from_before(study, entry), sum(one.bytes for one in drivers if one.slug == "duplicate_model")
    running = functions_in_modules(study, entry)
    kept = sum(
        one.retained
        for one in suspects
        if one.kind not in OF_THE_PASS or (work.in_forward and is_of_other_work(one, running))
    )
    kept += unnamed_graphs(study)
    if not work.names_known:
        older = max(older, made_by_other_statements(study, entry, in_forward=work.in_forward), _beside_training(work))
        second = max(second, made_anew(study, entry))
        if work.asked.phase == "optimizer":
            second = max(second, bytes_without_gradients(study, entry))
    if work.in_forward and not work.trains:
        second += may_take_turns(study, entry)
    return max(older + second, kept, left_by_finished_passes(study, entry))


def unnamed_graphs(study: DeviceStudy) -> int:
    """Bytes of autograd graphs of which the recording does not tell who keeps them, and for which backward."""
    found = study.snapshot.recorded.holders_on(study.index)
    return sum(one.retained or 0 for one in found if one.kind == "graph" and one.holder is None)


def other_models(work: FailedWork) -> int:
    """Bytes of parameters, where a bare trace shows that several lines of the script have called models.

    Nothing in it tells which parameters the forward underway needs. A step of training is told by its gradients, but
    for the first after a training that has ended, whose model may not be this one's.
    """
    study = work.study
    if work.names_known or not work.in_forward:
        return 0
    others = _lines_of_earlier_training(work) if work.trains else len(calling_lines(study, work.entry)) - 1
    if not others:
        return 0
    there = study.history.lifetimes.allocated_at(work.entry)
    return int(study.history.size[there & (study.categories == PARAMETER)].sum())


def _lines_of_earlier_training(work: FailedWork) -> int:
    """How many lines have called models for another statement of the script than the one underway; 0 in a loop."""
    if work.in_loop:
        return 0
    study = work.study
    of_call = made_by_call_underway(study, work.entry)
    return len(calling_lines(study, work.entry, ~of_call)) if of_call.any() else 0


def _beside_training(work: FailedWork) -> int:
    """Bytes that a bare trace shows outside of any loop, where training is not what they are for.

    Tensors of no known kind in an optimizer's step, which needs a model, its gradients and its states; a whole model
    that was trained, where the request is for none.
    """
    if work.in_loop:
        return 0
    study = work.study
    there, size = study.history.lifetimes.allocated_at(work.entry), study.history.size
    if work.asked.phase == "optimizer":
        return int(size[may_be_left(study, work.entry) & (study.categories == UNKNOWN)].sum())
    if work.asked.phase == "other" and bool((there & (study.categories == OPTIMIZER_STATE)).any()):
        return int(size[there & is_any(study.categories, (PARAMETER, BUFFER, GRADIENT, OPTIMIZER_STATE))].sum())
    return 0
