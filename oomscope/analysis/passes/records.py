"""What repeats and what grows, as records.

Bytes are integers; None is unknown, never 0.
"""

from __future__ import annotations

from oomscope.analysis.records import Location
from oomscope.frozen import frozen


@frozen
class Growth:
    """A site whose live bytes rise and do not come back."""

    site: Location | None
    caller: Location | None
    label: str | None
    bytes_per_step: int
    generations: int
    live_bytes: int
    kind: str
    """``generations``, ``reallocation`` or ``time``."""
    since_entry: int
    fit: float
    spared_bytes: int = 0
    """What would be free if only the newest generation were alive (or the block had its early size)."""
    loop: Location | None = None
    """Where the loop is whose passes leave it behind; None where none is known."""
    passes: int = 0
    """How many finished passes of the loop left something that is still alive."""
    blocks: int = 0
    """How many of its blocks are alive."""
    keeps_all: bool = False
    """Whether the passes give back next to nothing of all that they make: a list is filled, or a data set."""
    within_step: bool = False
    """Found only among the rounds of a loop inside one step, such as micro-batches, which may end with that step."""
    in_another_thread: bool = False
    """Its loop runs in a thread of the program that is not the failing one: it may only run ahead, as a loader does."""


@frozen
class StepPeak:
    """One step (iteration): entries ``begin`` to ``end`` inclusive, and the most that was allocated in it."""

    name: str
    begin: int
    end: int
    peak_allocated: int
    peak_entry: int
    end_allocated: int


@frozen
class Steps:
    """The iterations of the program. `boundaries` are the entries where each begins."""

    count: int
    source: str
    """``annotations``, ``recorded``, ``inferred`` or ``none``."""
    boundaries: tuple[int, ...] = ()
    steps: tuple[StepPeak, ...] = ()
    by_optimizer: bool = False
    """Whether each ends with a step of the optimizer, whose number, from 1, is its name."""


@frozen
class LargerInput:
    """A variable with which a pass became larger than those before it.

    Attributes:
        variable: as the recorder names it: ``train: batch``.
        shape: of the tensor.
        bytes: that it takes.
        before: the most that a pass before took at the same place.
        is_own: whether it is one of the function that loops, and not of one that it has called.
    """

    variable: str
    shape: tuple[int, ...]
    bytes: int
    before: int
    is_own: bool = True

    @property
    def ratio(self) -> float:
        """How much larger it is than the largest before."""
        return self.bytes / self.before


@frozen
class KeepsMore:
    """That a pass holds more of what it has made than the last one did when it asked for the same.

    Attributes:
        bytes: what it holds as the request is made.
        before: what the last one held there.
        place: the line that made most of it.
    """

    bytes: int
    before: int
    place: Location | None


@frozen
class FailingPass:
    """The pass of a loop in which a request failed, against the last finished one that came as far.

    Attributes:
        loop: where the loop is.
        index: number of the pass, from 0, in this run of the loop.
        completed: how many passes of it were finished.
        ratio: how much larger its requests were than those of that pass; None where none is common.
        grew_at: the line whose request grew most.
        ratio_to_largest: how much more it has asked for there at once than any pass before, of earlier runs of the
            loop as well; None where there is no such line.
        began_at: the line of the function that loops which led to the first larger request of this pass: what it makes,
            takes in or hands to the model is what grew.
        input: the variable that brought it in on that line, if the recording names one that is larger than ever before.
        keeps: how much more of what it made it holds than the last one did; None where that is little.
        staircase: the sizes of the first and of this pass, where they rose pass after pass.
        earlier_run_passes: how many passes the last run of the loop had that gave everything back; None for none.
        before: how many passes earlier runs of the loop had.
        gathers_for: the backward that is to come, after the loop, of what its passes make, as the recorder saw it.
        is_part: whether the loop may have begun before the recording, so that there were more passes than are counted.
    """

    loop: Location | None
    index: int
    completed: int
    ratio: float | None = None
    grew_at: Location | None = None
    ratio_to_largest: float | None = None
    began_at: Location | None = None
    input: LargerInput | None = None
    keeps: KeepsMore | None = None
    staircase: tuple[int, int] | None = None
    earlier_run_passes: int | None = None
    before: int = 0
    gathers_for: Location | None = None
    is_part: bool = False

    @property
    def is_first(self) -> bool:
        """Whether no pass has come before it."""
        return not self.finished and not self.is_part

    @property
    def gathers(self) -> bool:
        """Whether the loop keeps what its passes make until its end, so that each needs more than the last."""
        return self.gathers_for is not None or self.earlier_run_passes is not None

    @property
    def finished(self) -> int:
        """How many passes were finished in all runs of the loop."""
        return self.before + self.completed

    @property
    def is_larger(self) -> bool:
        """Whether it asked for more than all passes before it, which fitted beside all that was there already."""
        if self.ratio_to_largest is not None and self.ratio_to_largest <= NO_LONGER:
            return False
        return self.staircase is not None or (self.ratio is not None and self.ratio > NO_LONGER)

    @property
    def frees_less(self) -> bool:
        """Whether it asks for what the last one asked for, and holds much more of what it has made."""
        return self.keeps is not None and not self.is_larger and not self.gathers

    @property
    def has_fitted(self) -> bool:
        """Whether the last finished pass asked for as much as this one has so far, and gave it back."""
        return not self.gathers and self.completed > 0 and self.ratio is not None and self.ratio <= NO_LONGER


NO_LONGER = 1.05
"""Batches whose sizes differ by less are called the same."""


@frozen
class CallsInProgress:
    """Calls of one function that were underway at the same time."""

    function: str
    file: str
    line: int
    calls: int
