"""The program behind a trace: its requests and frees without the addresses they got."""

from __future__ import annotations

import numpy as np

from oomscope.allocator.program import InitialLayout, Op, Program
from oomscope.analysis.whatif.releases import RETURNS, ReleaseRun, following
from oomscope.frozen import frozen
from oomscope.history import DeviceHistory
from oomscope.history.lifetimes import BEFORE, Lifetimes
from oomscope.model import NO_STACK, Action, IntArray, Layout, Snapshot, Trace, UInt8Array
from oomscope.model.ordering import stable_order

DEFAULT_POOL = 0


@frozen(eq=False)
class Extraction:
    """A program, and how its requests belong to the trace.

    Attributes:
        program: what can be replayed.
        number: int64[lifetimes], the request that each stands for.
        row: int64[requests], the row in the history's `lifetimes`; -1 for a request that was refused.
        adds_up: whether what the recording found in place is whole; if not, the program goes without it.
    """

    program: Program
    number: IntArray
    row: IntArray
    adds_up: bool


@frozen(eq=False)
class _Operations:
    """Steps of one kind; `key` orders them: twice the entry, plus one for what comes after it."""

    op: Op
    argument: IntArray
    entry: IntArray
    key: IntArray

    @classmethod
    def at(cls, op: Op, argument: IntArray, entry: IntArray) -> _Operations:
        return cls(op, argument, entry, 2 * entry)


def extract(snapshot: Snapshot, history: DeviceHistory, runs: list[ReleaseRun], address_space: int) -> Extraction:
    """The program that ran on a device of `snapshot`.

    Args:
        snapshot: what was recorded.
        history: of the device.
        runs: where its trace gives memory back.
        address_space: bytes of addresses that an expandable segment reserves.
    """
    trace, lifetimes = history.trace, history.lifetimes
    number, row, ooms, oom_numbers = _numbers(lifetimes, trace)
    size, stream = by_request(lifetimes.requested, row), by_request(lifetimes.stream, row)
    owner = by_request(_owners(history), row)
    # An entry of an allocation bears what was asked for, that of a failure what it was rounded to.
    size[oom_numbers], stream[oom_numbers] = trace.size[ooms] - history.config.padding, trace.stream[ooms]
    owner[oom_numbers] = np.maximum(trace.pool[ooms], DEFAULT_POOL)
    steps = _steps(lifetimes, number, trace, runs)
    steps.append(_Operations.at(Op.TRY_MALLOC, oom_numbers, ooms))
    steps.append(_freeable_pools(trace))
    op, argument, entry = _in_order(steps)
    initial = _initial(history, number, address_space)
    adds_up = initial is None or _adds_up(initial)
    program = Program(size, stream, owner, op, argument, entry, snapshot.pools, initial if adds_up else None)
    return Extraction(program, number, row, adds_up)


def by_request(column: IntArray, row: IntArray, refused: int = 0) -> IntArray:
    """int64[requests]: of a column of lifetimes, the value for each request; `refused` for those that got nothing."""
    values = np.full(len(row), refused, np.int64)
    served = row >= 0
    values[served] = column[row[served]]
    return values


def _owners(history: DeviceHistory) -> IntArray:
    """The number of the pool of each lifetime: what its entry names (torch 2.12+), else that of its segment."""
    owner = np.maximum(history.lifetimes.pool.astype(np.int64), DEFAULT_POOL)
    unnamed = np.flatnonzero((history.lifetimes.pool < 0) & (history.span >= 0))
    owner[unnamed] = history.spans.pool[history.span[unnamed]]
    return owner


def _initial(history: DeviceHistory, number: IntArray, address_space: int) -> InitialLayout | None:
    """The layout when the recording began; None where nothing was reserved then."""
    layout = history.layout_at(BEFORE)
    if not len(layout.segments):
        return None
    rows = np.flatnonzero(history.lifetimes.born == BEFORE)
    by_address = dict(zip(history.lifetimes.address[rows].tolist(), number[rows].tolist(), strict=True))
    active = layout.blocks.is_active.tolist()
    numbers = [
        by_address.get(address, -1) if is_active else -1
        for address, is_active in zip(layout.blocks.address.tolist(), active, strict=True)
    ]
    return InitialLayout(layout, np.array(numbers, np.int64), _bases(history, layout, address_space))


def _adds_up(initial: InitialLayout) -> bool:
    """Whether segments lie apart, blocks fill them without gaps, and every block in use is known to the trace."""
    segments, blocks = initial.layout.segments, initial.layout.blocks
    counts = np.diff(segments.first_block)
    if not np.all(counts > 0) or int(counts.sum()) != len(blocks):
        return False
    end, block_end = segments.address + segments.total_size, blocks.address + blocks.size
    first, last = segments.first_block[:-1], segments.first_block[1:] - 1
    inner = np.ones(len(blocks), np.bool_)
    inner[last] = False
    return bool(
        np.all(end[:-1] <= segments.address[1:])
        and np.all(blocks.size > 0)
        and np.array_equal(blocks.address[first], segments.address)
        and np.array_equal(block_end[last], end)
        and np.array_equal(block_end[inner], blocks.address[np.flatnonzero(inner) + 1])
        and np.array_equal(blocks.is_active, initial.number >= 0)
    )


def _bases(history: DeviceHistory, layout: Layout, address_space: int) -> IntArray:
    """For each segment of `layout`, the lowest address that the trace knows of the expandable segment it is part of."""
    spans, segments = history.spans, layout.segments
    base: IntArray = segments.address.copy()
    for row in np.flatnonzero(segments.is_expandable).tolist():
        alike = (
            spans.is_expandable
            & (spans.stream == segments.stream[row])
            & (spans.is_large == segments.is_large[row])
            & (spans.pool == segments.pool[row])
            & (spans.address > base[row] - address_space)
        )
        base[row] = spans.address[alike].min(initial=base[row])
    return base


def _numbers(lifetimes: Lifetimes, trace: Trace) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Numbers for all requests, in the order in which they were made.

    Returns:
        The number of each lifetime; the lifetime of each number, -1 for a refused request; the `OOM` entries; and
        their numbers.
    """
    ooms = trace.entries(Action.OOM)
    made = np.concatenate([lifetimes.born, ooms])
    order = stable_order(made)
    row = np.where(order < len(lifetimes), order, -1)
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return number[: len(lifetimes)], row, ooms, number[len(lifetimes) :]


def _steps(lifetimes: Lifetimes, number: IntArray, trace: Trace, runs: list[ReleaseRun]) -> list[_Operations]:
    """What is done with the requests that were served, and the calls of `empty_cache`."""
    end = len(trace)
    born, freed, gone = lifetimes.born, lifetimes.freed, lifetimes.gone
    made = np.flatnonzero(born != BEFORE)
    apart = (gone - freed > 1) | (freed < 0)
    apart[_waited_for(lifetimes, trace, runs)] = True
    at_once = np.flatnonzero(~apart & (gone < end))
    requested = np.flatnonzero(apart & (freed >= 0) & (freed < end))
    completed = np.flatnonzero(apart & (gone < end))
    emptied = np.array([run.begin for run in runs if run.by_empty_cache], np.int64)
    return [
        _Operations.at(Op.MALLOC, number[made], born[made]),
        _Operations.at(Op.FREE, number[at_once], freed[at_once]),
        _Operations.at(Op.FREE_REQUESTED, number[requested], freed[requested]),
        _completions(number[completed], gone[completed], trace, runs),
        _Operations.at(Op.EMPTY_CACHE, np.full(len(emptied), -1, np.int64), emptied),
    ]


def _waited_for(lifetimes: Lifetimes, trace: Trace, runs: list[ReleaseRun]) -> list[int]:
    """The lifetimes that a failing request waited for although nothing stands between the two entries of their free.

    Their completion bears the stack of that request, as what stands behind it does, not that of the free.
    """
    row_of: dict[int, int] = {}
    found = []
    for begin, _ in _waits(trace, runs):
        gone, stack = begin - 1, int(trace.stack[begin])
        if gone < 1 or stack in (NO_STACK, int(trace.stack[gone - 1])):
            continue
        if trace.action[gone] == Action.FREE_COMPLETED and trace.stack[gone] == stack:
            row_of = row_of or dict(zip(lifetimes.gone.tolist(), range(len(lifetimes)), strict=True))
            found.append(row_of[gone])
    return found


def _completions(number: IntArray, entry: IntArray, trace: Trace, runs: list[ReleaseRun]) -> _Operations:
    """The frees that had to wait.

    A request that cannot be served waits for them all before it releases memory, so they stand directly before its
    segment_free entries, or its failure, although the request came first. Those are put behind the request.
    """
    key = 2 * entry
    waited = dict(zip(entry.tolist(), range(len(entry)), strict=True))
    for begin, request in _waits(trace, runs):
        before = begin - 1
        while before in waited:
            key[waited[before]] = 2 * request + 1
            before -= 1
    return _Operations(Op.FREE_COMPLETED, number, entry, key)


def _waits(trace: Trace, runs: list[ReleaseRun]) -> list[tuple[int, int]]:
    """Where requests waited for other streams: the entry behind the wait, and the one that answers the request."""
    answers = trace.entries(Action.ALLOC, Action.OOM)
    released = [run for run in runs if not run.by_empty_cache]
    ends = np.array([run.end for run in released], np.int64)
    waits = [
        (run.begin, request)
        for run, request in zip(released, following(ends, answers, len(trace)).tolist(), strict=True)
    ]
    answered = {request for _, request in waits}
    # A request that found nothing to release waited all the same.
    return waits + [(oom, oom) for oom in trace.entries(Action.OOM).tolist() if oom not in answered]


def _freeable_pools(trace: Trace) -> _Operations:
    """Where private pools whose segments were given back had lost their owner, at the latest.

    Known only where entries name their pool (torch 2.12+).
    """
    entries = trace.entries(*RETURNS)
    pools, first = np.unique(trace.pool[entries], return_index=True)
    private = pools > DEFAULT_POOL
    entry = entries[first[private]]
    return _Operations(Op.POOL_FREEABLE, pools[private].astype(np.int64), entry, 2 * entry - 1)


def _in_order(steps: list[_Operations]) -> tuple[UInt8Array, IntArray, IntArray]:
    """All steps by their keys."""
    order = stable_order(np.concatenate([part.key for part in steps]))
    op = np.concatenate([np.full(len(part.argument), part.op, np.uint8) for part in steps])
    argument = np.concatenate([part.argument for part in steps])
    entry = np.concatenate([part.entry for part in steps])
    return op[order], argument[order], entry[order]
