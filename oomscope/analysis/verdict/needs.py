"""What the work underway needs when a request fails: what it holds, and what was still to come."""

from __future__ import annotations

from functools import cached_property

from oomscope.analysis.labels.categories import OPTIMIZER_STATE
from oomscope.analysis.labels.model_cost import OPTIMIZER_STATES, make_bill
from oomscope.analysis.passes.larger_pass import LargerPass, larger_pass
from oomscope.analysis.passes.last_pass import at_work, came_as_far, most_needed, rise_of_needs, still_to_come
from oomscope.analysis.passes.loaded_copies import LoadedCopies, find_loading
from oomscope.analysis.passes.loop_that_matters import pass_begins
from oomscope.analysis.passes.made_once import fills_a_history
from oomscope.analysis.passes.records import NO_LONGER, FailingPass
from oomscope.analysis.passes.same_call import LargerCall, LastCall, find_larger_call, find_last_call
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.verdict.failed_requests import FailedRequest
from oomscope.analysis.verdict.outsized import times_the_largest
from oomscope.analysis.verdict.shortage import MARGIN
from oomscope.model import BoolArray

OF_THIS_ORDER = 8
"""Times that a block may be smaller than a request, and still be of its order."""


class Needs:
    """The bytes that a pass needs. Each figure is found when it is first asked for.

    Args:
        study: of the device.
        request: the request that failed.
        phase: the phase that made it, by name.
        failing_pass: how the pass compares with the last one; None where no loop was seen.
    """

    def __init__(
        self, study: DeviceStudy, request: FailedRequest, phase: str | None, failing_pass: FailingPass | None
    ) -> None:
        self._study, self._request, self._phase, self._failing_pass = study, request, phase, failing_pass

    @cached_property
    def state_to_come(self) -> tuple[int, int]:
        """Bytes of optimizer state that were there in the optimizer's step, and that it will need; else (0, 0)."""
        if self._phase != "optimizer":
            return 0, 0
        bill = make_bill(self._study, self._request.entry)
        rows = {what: (wanted or 0, there) for what, wanted, there in bill.rows} if bill else {}
        wanted, there = rows.get(OPTIMIZER_STATES, (0, 0))
        return there, max(wanted, there)

    @cached_property
    def times_the_largest(self) -> float | None:
        """How many times the largest activation the request was; None where that is nothing unusual."""
        if self._phase in ("backward", "optimizer"):
            return None  # their largest requests are as large as a parameter, whatever the activations are
        return times_the_largest(self._study, self._request)

    @cached_property
    def history_of_steps(self) -> int:
        """Bytes that L-BFGS keeps of its last steps, of which it goes on to keep more."""
        rows = self._states & fills_a_history(self._study)
        return int(self._study.history.size[rows].sum())

    @cached_property
    def next_step(self) -> int | None:
        """Bytes that a step like this one will need at its peak, once the optimizer's state is whole.

        None outside of an optimizer's step that makes its state.
        """
        there, needs = self.state_to_come
        if needs <= there:
            return None
        study, entry = self._study, self._request.entry
        begins = pass_begins(study, entry)
        begin = int(begins[-1]) if len(begins) else 0
        states, born = self._states, study.history.lifetimes.born
        older = states & (born < begin)
        first = int(born[states & ~older].min(initial=entry))
        peak = int(study.history.curves.allocated[begin : first + 1].max(initial=0))
        before = peak - int(study.history.size[older].sum()) + needs
        return max(before, self._request.totals.active - there + needs)

    @cached_property
    def still_to_come(self) -> int | None:
        """Bytes that this pass will still need, if it needs what the last one did.

        Where none has come as far, what the last call of the function that runs the model has needed from here on. None
        where no pass has finished, where this one asks for less, or where the last one failed as well.
        """
        found, entry = self._failing_pass, self._request.entry
        if self.last_call is not None:
            return self.last_call.needed
        if found is None or found.ratio is None or found.ratio < 1 / NO_LONGER:
            return None
        return still_to_come(self._study, entry)

    @cached_property
    def last_call(self) -> LastCall | None:
        """The last call of the function that runs the model, where no pass of the loop has come as far; else None."""
        study, entry = self._study, self._request.entry
        return None if came_as_far(study, entry) else find_last_call(study, entry)

    @cached_property
    def larger_call(self) -> LargerCall | None:
        """The calls before of the function that runs the model, if no pass has finished and all asked for less here."""
        if self._failing_pass is not None and self._failing_pass.finished:
            return None
        return find_larger_call(self._study, self._request.entry)

    @cached_property
    def loading(self) -> LoadedCopies | None:
        """What the load of a checkpoint, in which the request failed, has put beside the tensors that it is to fill."""
        return find_loading(self._study, self._request.entry)

    @property
    def as_larger(self) -> int | None:
        """Bytes that a pass which is larger than the last will need at its peak, if all of it is as much larger.

        None for any other pass, and where this one holds as much already: the passes may begin elsewhere than is told.
        """
        totals = self._request.totals
        still = 0 if self._larger is None else self._larger.needs() - totals.allocated
        return totals.active + still if still > self._request.size else None

    @property
    def share_that_fits(self) -> float | None:
        """Of what a larger pass has taken in, as much as would have fitted to its end; None where that is not known."""
        if self._larger is None or self.as_larger is None:
            return None
        totals, limit = self._request.totals, self._request.limit.low
        return self._larger.share_that_fits(int(limit / (1 + MARGIN)) - (totals.active - totals.allocated))

    @cached_property
    def _larger(self) -> LargerPass | None:
        found = self._failing_pass
        if found is None or not found.ratio or not found.is_larger:
            return None
        return larger_pass(self._study, self._request.entry, found.ratio)

    @cached_property
    def at_work(self) -> int:
        """Bytes that the forward or backward underway holds, in blocks of the order of the one it asks for.

        A layer is followed by others like it; one large request after many small ones may be the last of its kind.
        """
        return at_work(self._study, self._request.entry, self._request.size // OF_THIS_ORDER)

    @cached_property
    def made_so_far(self) -> int:
        """Bytes of all blocks that the forward or backward underway has made so far, and holds."""
        return at_work(self._study, self._request.entry)

    @cached_property
    def most(self) -> int | None:
        """The most bytes that a finished pass of the loop has needed; None where none has finished."""
        return most_needed(self._study, self._request.entry)

    @cached_property
    def rise(self) -> int:
        """By how many bytes each of the last passes has needed more than the one before; 0 for none."""
        return rise_of_needs(self._study, self._request.entry)

    @cached_property
    def _states(self) -> BoolArray:
        """bool[lifetimes]: the optimizer's state that is there."""
        states: BoolArray = self._study.categories == OPTIMIZER_STATE
        return self._study.history.lifetimes.allocated_at(self._request.entry) & states
