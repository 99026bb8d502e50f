"""The records that findings are made of. Bytes are integers; None is unknown, never 0.

The names are those of the JSON report (`oomscope/rendering/report.schema.json`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oomscope.model import Note, PoolId

CATEGORIES = (
    "parameter", "gradient", "optimizer_state", "buffer", "activation", "temporary", "input", "workspace", "unknown",
)  # fmt: skip
PHASES = ("before_recording", "forward", "backward", "optimizer", "other")
CAUSES = (
    "oversized_request", "growth", "retained", "private_pools", "other_stream", "outside_allocator", "fragmentation",
    "capacity",
)  # fmt: skip
"""In the order in which a cause is chosen among those that qualify."""


@dataclass(frozen=True, slots=True)
class Location:
    """A line of code. `oomscope.analysis.attribution.sites` tells which line stands for a stack."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class At:
    """The instant that the attribution is about: once `entry` of `device` has happened; -1: before the first."""

    kind: str
    """``oom``, ``peak``, ``end`` or ``entry``."""
    device: int
    entry: int
    time_us: int | None


@dataclass(frozen=True, slots=True)
class Recording:
    """What the recording could see.

    Attributes:
        history: ``full``, ``wrapped``, ``late``, ``state_only`` or ``none``.
        stacks: ``python``, ``all`` or ``none``.
        unattributed_live_bytes: allocated bytes at the instant of attribution that no stack explains.
        notes: what the file cannot show, and how to record it better.
    """

    history: str
    stacks: str
    unattributed_live_bytes: int
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Totals:
    """Reserved, allocated and active bytes at one instant."""

    reserved: int
    allocated: int
    active: int


@dataclass(frozen=True, slots=True)
class Usage:
    """The end of the snapshot, as `torch.cuda.memory_stats()` counts it."""

    reserved: int
    allocated: int
    active: int
    requested: int | None
    inactive: int
    pending_free: int


@dataclass(frozen=True, slots=True)
class Peak:
    """The most that was allocated, active and reserved in the recorded window, and the entries where it was reached."""

    allocated: int
    active: int
    reserved: int
    allocated_entry: int
    reserved_entry: int


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What does not add up.

    Attributes:
        unaccounted_bytes: what the trace and the final segments say differently.
        uncertain_bytes: by how much the allocated curve may be too low before the end.
        notes: the same in words.
        replay_agrees: whether a replay under the recorded setting gives every recorded address. Where it does not,
            blocks may have been rounded in another way than is known here, and no figure but the end's is exact. None:
            not tried.
    """

    unaccounted_bytes: int
    uncertain_bytes: int = 0
    notes: tuple[Note, ...] = ()
    replay_agrees: bool | None = None


@dataclass(frozen=True, slots=True)
class PoolUse:
    """One kind of free list: pool × stream × size class."""

    pool: PoolId
    stream: int
    segment_type: str
    """``large`` or ``small``."""
    is_expandable: bool
    segments: int
    reserved: int
    active: int
    inactive: int
    largest_inactive: int
    releasable: int
    walled: int
    stranded: int


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """Free bytes and why they are free, at the instant of attribution. releasable + walled + stranded = inactive."""

    inactive: int
    largest_inactive: int
    rounding: int | None
    unsplit: int | None
    releasable: int
    walled: int
    stranded: int
    holes: int
    """How many inactive blocks there are."""
    by_pool: tuple[PoolUse, ...]


@dataclass(frozen=True, slots=True)
class SiteUse:
    """Live bytes of one site (or of one reason for having none).

    Attributes:
        site: None where there is none; then `label` says why.
        label: a slug of `oomscope.analysis.attribution.by_site`; None where there is a site.
        caller: the reader's own code that led there; None where there is none.
        category: the one most of the bytes belong to.
        stack: the stack that most of the bytes share, as ``file:line function``, innermost first.
        stacks: the largest distinct stacks, as (stack number, bytes, blocks).
    """

    site: Location | None
    caller: Location | None
    label: str | None
    bytes: int
    blocks: int
    category: str = "unknown"
    stack: tuple[str, ...] = ()
    stacks: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class NamedTensor:
    """A block that the recording could name."""

    name: str
    category: str
    bytes: int
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    holders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Holder:
    """A Python object that keeps memory alive, as the recording found it.

    Attributes:
        holder: the path to it from something a person knows, such as ``train: total_loss``.
        kind: what it is: ``collection``, ``graph``, ``cycle``, ``parameter``, …
        bytes: all it reaches.
        retained: what would come free with it alone, as a dominator tree gives it.
        tensors: how many tensors those are.
    """

    holder: str
    kind: str
    bytes: int
    retained: int
    tensors: int


@dataclass(frozen=True, slots=True)
class Pin:
    """A site whose live blocks keep free bytes from being released."""

    site: Location | None
    caller: Location | None
    label: str | None
    live_bytes: int
    blocks: int
    stranded_bytes: int
    """Stranded bytes in segments that hold at least one of its blocks; sites may share a segment."""
    alone_bytes: int
    """Stranded bytes in segments that nothing but its blocks keeps: what its move alone would free."""
    together_bytes: int
    """What the moves of this one and of all before it would free together: the fewest sites for the most bytes."""
    segments: int
    smallest: int
    largest: int
    oldest_entry: int


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class StepPeak:
    """One step (iteration): entries ``begin`` to ``end`` inclusive, and the most that was allocated in it."""

    name: str
    begin: int
    end: int
    peak_allocated: int
    peak_entry: int
    end_allocated: int


@dataclass(frozen=True, slots=True)
class Steps:
    """The iterations of the program. `boundaries` are the entries where each begins."""

    count: int
    source: str
    """``annotations``, ``recorded``, ``inferred`` or ``none``."""
    boundaries: tuple[int, ...] = ()
    steps: tuple[StepPeak, ...] = ()


@dataclass(frozen=True, slots=True)
class FailingPass:
    """The pass of a loop in which a request failed, against the last one that was finished.

    Attributes:
        loop: where the loop is.
        index: number of the pass, from 0, in this run of the loop.
        completed: how many passes of it were finished.
        ratio: how much larger its requests were than those of the last finished pass; None where none is common.
        grew_at: the line whose request grew most.
        staircase: the sizes of the first and of this pass, where they rose pass after pass.
        earlier_run_passes: how many passes the last run of the loop had that gave everything back; None for none.
    """

    loop: Location | None
    index: int
    completed: int
    ratio: float | None = None
    grew_at: Location | None = None
    staircase: tuple[int, int] | None = None
    earlier_run_passes: int | None = None


@dataclass(frozen=True, slots=True)
class CallsInProgress:
    """Calls of one function that were underway at the same time."""

    function: str
    file: str
    line: int
    calls: int


@dataclass(frozen=True, slots=True)
class Limit:
    """What this process may reserve. `high` is None where nothing bounds it from above."""

    low: int
    high: int | None
    source: str
    """``recorded``, ``bracket`` or ``device``."""


@dataclass(frozen=True, slots=True)
class Qualifying:
    """A cause that passes its counterfactual, and the bytes it would have spared beyond the request."""

    cause: str
    bytes: int
    spare: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """One number that proves the verdict; `oomscope.wording.evidence` says what `slug` counts."""

    slug: str
    bytes: int | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Driver:
    """What the live bytes are.

    Attributes:
        slug: its name.
        bytes: of the live blocks that it names; all drivers sum to what is allocated.
        site: the line that holds most of them; None where next to nothing has frames.
        categories: its bytes by category; over all drivers they sum to the table of categories.
    """

    slug: str
    bytes: int
    site: Location | None = None
    categories: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A Python object that keeps memory alive and is no part of a model.

    Attributes:
        holder: the way to it from something a person knows, such as ``metrics.py: metric.outputs``.
        kind: ``list``, ``dict``, ``deque``, ``collection``, ``attribute``, ``global``, ``closure``, ``exception``,
            ``cycle``, ``graph``, ``in_flight``, …
        retained: bytes that would come free with it alone.
        share: of the allocated bytes.
        tensors: how many tensors it retains.
        passes: from how many finished passes of the loop those are.
        path: the ways to the largest of what it retains.
        finished_bytes: bytes of `retained` that finished passes of the loop made.
        earlier_bytes: bytes of `retained` that were made before the pass that failed, in whatever loop.
        keeps_graph: whether most of it was saved for a backward.
        reaches: bytes that it keeps alive together with others.
        at: the line that can let go of it, where the recording knows it.
    """

    holder: str
    kind: str
    retained: int
    share: float
    tensors: int
    passes: int = 0
    path: tuple[str, ...] = ()
    finished_bytes: int = 0
    earlier_bytes: int = 0
    keeps_graph: bool = False
    reaches: int = 0
    at: Location | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """Something to do (or not to do, where `refuted`); `oomscope.wording.remedies` has its sentences.

    Attributes:
        slug: which remedy.
        values: what its sentences mention.
        saves_bytes: what it saves; None unknown.
        enough: whether it alone would have let the request through; None unknown.
        refuted: whether it is often advised and would not have helped.
        at: the line to change.
    """

    slug: str
    values: Mapping[str, Any] = field(default_factory=dict)
    saves_bytes: int | None = None
    enough: bool | None = None
    refuted: bool = False
    at: Location | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why one request failed.

    Attributes:
        headline: a sentence each; `oomscope.wording` says them.
        replay: what other settings would have done to it, by replay; empty where there is no replay to trust.
        cannot_know: what the snapshot does not tell.
        suspects: who keeps memory alive, by the bytes that each alone retains.
        asked: which part of the program made the request.
        failing_pass: how far the loop had come; None where no loop is known.
        in_progress: calls of one function that were underway at the same time.
    """

    cause: str
    confidence: str
    headline: tuple[Note, ...]
    replay: tuple[Note, ...] = ()
    qualifying: tuple[Qualifying, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    contributing: tuple[str, ...] = ()
    drivers: tuple[Driver, ...] = ()
    advice: tuple[Advice, ...] = ()
    cannot_know: tuple[Note, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    asked: Asked | None = None
    failing_pass: FailingPass | None = None
    in_progress: tuple[CallsInProgress, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """The part of the program that made a request.

    Attributes:
        phase: ``forward``, ``backward``, ``optimizer`` or ``other``.
        site: the line that asked, in a library or the reader's own; None where the stack has none.
        caller: the reader's own line behind it, where that is another.
        backward_call: the reader's line that called backward, for a request by the autograd engine.
        gradient_of: the parameter whose gradient it was for, where that can be told.
        node: the node of the autograd graph that backward was in, such as ``MmBackward0``.
    """

    phase: str
    site: Location | None = None
    caller: Location | None = None
    backward_call: Location | None = None
    gradient_of: str | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True)
class FreeForRequest:
    """The free bytes of the device at the instant of an OOM, by what they were worth to the failed request."""

    usable: int
    """Inactive bytes where the request may look: same pool, stream and size class."""
    largest: int
    """The largest piece of those; with expandable segments, with the pages that could still be mapped behind it."""
    releasable: int
    walled: int
    stranded: int
    other_streams: int
    other_class: int
    """In the other size class (small against large) of the same pool."""
    pending: int
    walled_piece: int = 0
    """The largest piece that the request could have had without walls: a hole of its size class in a private pool, or
    all that could then be released, with what the limit still left."""
    other_streams_piece: int = 0
    """The largest piece of `other_streams` in its size class."""


@dataclass(frozen=True, slots=True)
class Oom:
    """A request that failed. `recovered`: the program went on allocating afterwards."""

    entry: int
    time_us: int | None
    requested: int
    alloc_size: int
    device_free: int | None
    stream: int
    recovered: bool
    site: Location | None
    caller: Location | None
    stack: tuple[str, ...]
    limit: Limit
    totals: Totals
    free: FreeForRequest
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Bill:
    """What the model must cost, against what is there. Bytes at the instant of attribution; None is unknown."""

    parameters: int
    parameter_bytes: int
    rows: tuple[tuple[str, int | None, int], ...]
    """(what, a slug; expected bytes or None; bytes that are there)."""
    source: str
    """``recorded`` or ``inferred``."""
