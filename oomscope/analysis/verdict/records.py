"""Why a request failed, as records: limit, evidence, suspects, advice and verdict.

Bytes are integers; None is unknown, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from oomscope.analysis.labels.records import Driver
from oomscope.analysis.memory.records import FreeForRequest, Totals
from oomscope.analysis.passes.records import CallsInProgress, FailingPass
from oomscope.analysis.records import Location
from oomscope.analysis.said.records import Said
from oomscope.frozen import frozen
from oomscope.model import Note


@frozen
class ProcessLimit:
    """What this process may reserve: a cap that is inferred lies between the two, else they are the same."""

    low: int
    high: int
    source: str
    """``recorded``, ``bracket`` or ``device``."""


@frozen
class Qualifying:
    """A cause that passes its counterfactual, and the bytes it would have spared beyond the request."""

    cause: str
    bytes: int
    spare: int


@frozen
class Evidence:
    """One number that proves the verdict; `oomscope.wording.evidence` says what `slug` counts."""

    slug: str
    bytes: int | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


@frozen
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
        stores: where methods of its class fill it, where it is an attribute.
        made_under: of several such lines the one that was running when most of what it keeps was allocated.
        is_bounded: whether it is a deque or a queue with room for so many items and no more.
        is_full: whether it is bounded, and holds as many items as it ever will, or is a window of a few.
        is_abandoned: whether it is several such collections, one alike another, from which nobody takes any more.
        is_ended_closure: whether it is a function that a call has left behind, with that call's variables.
        unread: of a variable that no running code reads again, and that keeps what was made before the work underway,
            how sure that is: ``proven`` or ``likely``; None for all else.
        shows: bytes that its tensors show of `retained`, where they are views of a small part of it; None for all else.
        reads: the parts of such a variable that are read again.
        others: further variables that keep some of the same, and have to go as well.
        by_hooks: bytes that such a variable keeps by hooks that are still registered.
        part: what of its items nearly all of it is, such as ``.memory`` or ``['loss']``; None where it is no one thing.
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
    stores: tuple[Location, ...] = ()
    made_under: Location | None = None
    is_bounded: bool = False
    is_full: bool = False
    is_abandoned: bool = False
    is_ended_closure: bool = False
    unread: str | None = None
    shows: int | None = None
    reads: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    part: str | None = None
    by_hooks: int = 0


@frozen
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


@frozen
class Verdict:
    """Why one request failed.

    Attributes:
        headline: a sentence each; `oomscope.wording` says them.
        doubt: why the confidence is not high; None where it is.
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
    doubt: Note | None = None
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

    @property
    def told_passes(self) -> tuple[int | None, ...]:
        """How many passes each note of the headline speaks of that speaks of passes; None without a number."""
        told = (note.values for note in self.headline)
        return tuple(one.get("passes") for one in told if "per_pass" in one or "passes" in one)


@frozen
class Asked:
    """The part of the program that made a request.

    Attributes:
        phase: ``forward``, ``backward``, ``optimizer`` or ``other``.
        site: the line that asked, in a library or the reader's own; None where the stack has none.
        caller: the reader's own line behind it, where that is another.
        backward_call: the reader's line that called backward, for a request by the autograd engine.
        gradient_of: the parameter whose gradient it was for, where that can be told.
        node: the node of the autograd graph that backward was in, such as ``MmBackward0``.
        is_first: whether that forward or backward was the first of the run, where no loop tells how far it had come.
        within: what a library was doing, the outermost first: ``sanity_check``, ``evaluation``, ``prediction``,
            ``encoding``, ``generation``.
    """

    phase: str
    site: Location | None = None
    caller: Location | None = None
    backward_call: Location | None = None
    gradient_of: str | None = None
    node: str | None = None
    is_first: bool = False
    within: tuple[str, ...] = ()


@frozen
class Oom:
    """A request that failed. `recovered`: the program went on allocating afterwards. `said`: what it said of it."""

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
    limit: ProcessLimit
    totals: Totals
    free: FreeForRequest
    verdict: Verdict
    said: Said = field(default_factory=Said)
