"""The recorded run of one device, made ready for replays, and checked against the recording first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oomscope.allocator.addresses import Addresses, Recorded
from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.driver_addresses import DriverAddresses
from oomscope.allocator.program import Op, Program
from oomscope.allocator.replay import Replay, Replayer
from oomscope.allocator.torch_releases import Release, possible_releases
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.whatif.departure import departing_rule
from oomscope.analysis.whatif.extraction import Extraction, extract
from oomscope.analysis.whatif.recorded_limit import RecordedLimit, possible_limits
from oomscope.analysis.whatif.records import SelfCheck
from oomscope.analysis.whatif.releases import OBTAINS, RETURNS, ReleaseRun, emptied_by_libraries, release_runs
from oomscope.errors import ReplayError
from oomscope.frozen import frozen
from oomscope.history import DeviceHistory
from oomscope.model import Action, BoolArray, IntArray, Snapshot

MAX_ADDRESS = 1 << 51
"""Recorded addresses lie below, invented ones above."""


@frozen(eq=False)
class Subject:
    """A recorded run that can be replayed.

    Attributes:
        device: what was recorded.
        release: the torch release whose rules hold.
        limit: what it could reserve.
        extraction: its program, without what was there before.
        replayer: replays it from the recorded start.
        recorded: the replay of the recorded setting.
        check: how that compares with the recording.
    """

    device: DeviceHistory
    release: Release
    limit: RecordedLimit
    extraction: Extraction
    replayer: Replayer
    recorded: Replay
    check: SelfCheck

    @property
    def config(self) -> AllocatorConfig:
        """The settings it was recorded under."""
        return self.device.config

    @property
    def complete(self) -> bool:
        """Whether the recording saw the first allocation."""
        return self.extraction.program.initial is None

    def addresses(self) -> Addresses:
        """The addresses of the recorded segments, as far as the replay asks for the same ones."""
        return recorded_addresses(self.device)

    def allocations_before(self, entry: int) -> int:
        """How many alloc entries stand before `entry`."""
        return int(np.count_nonzero(self.device.trace.action[: max(entry, 0)] == Action.ALLOC))


def prepared(study: DeviceStudy) -> Subject:
    """The run of a device that was studied, made ready once.

    Raises:
        ReplayError: its addresses are none of a CUDA device.
    """
    return study.once("prepared", lambda: prepare(study.snapshot, study.history))


def prepare(snapshot: Snapshot, device: DeviceHistory) -> Subject:
    """Extract the program of `device`, replay it as it was recorded, and compare.

    Raises:
        ReplayError: its addresses are none of a CUDA device.
    """
    _check_addresses(device)
    runs = release_runs(device.trace, snapshot.stacks)
    best = _best(snapshot, device, runs)
    if best.check.mismatches and not device.config.garbage_collection_threshold:
        others = emptied_by_libraries(device, runs)
        if others != runs:
            best = min(best, _best(snapshot, device, others), key=lambda one: one.check.mismatches)
    return best


def _best(snapshot: Snapshot, device: DeviceHistory, runs: list[ReleaseRun]) -> Subject:
    """The reading under which the replay departs least from the recording."""
    subjects = (
        _with_limit(snapshot, device, runs, limit, release)
        for release in possible_releases(snapshot.recorded.torch, snapshot.schema)
        for limit in possible_limits(snapshot, device, runs)
    )
    best = next(subjects)
    while best.check.mismatches and (other := next(subjects, None)) is not None:
        best = min(best, other, key=lambda one: one.check.mismatches)
    return best


def _check_addresses(device: DeviceHistory) -> None:
    trace, segments = device.trace, device.layout.segments
    addresses = np.concatenate([trace.address[trace.entries(*OBTAINS, *RETURNS)], segments.address])
    if len(addresses) and not 0 <= int(addresses.min()) <= int(addresses.max()) < MAX_ADDRESS:
        raise ReplayError("The snapshot has addresses that no CUDA device gives; its allocator is not modelled here.")


def _with_limit(
    snapshot: Snapshot, device: DeviceHistory, runs: list[ReleaseRun], limit: RecordedLimit, release: Release
) -> Subject:
    extraction = extract(snapshot, device, runs, limit.limit.address_space)
    replayer = Replayer(extraction.program, release)
    recorded = replayer.run(device.config, limit.limit, recorded_addresses(device), note_addresses=True)
    check = compare(device, extraction.program, recorded)
    if check.first_mismatch is not None:
        check = replace(check, rule=departing_rule(device, recorded, check.first_mismatch, snapshot.settings))
    if not extraction.adds_up:
        check = replace(check, mismatches=max(check.mismatches, 1), first_mismatch=check.first_mismatch or 0)
    return Subject(device, release, limit, extraction, replayer, recorded, check)


def recorded_addresses(device: DeviceHistory) -> Recorded:
    """The addresses of the recorded segments in the order in which they were obtained, then as the driver goes on."""
    trace = device.trace
    entries = trace.entries(*OBTAINS)
    return Recorded(trace.address[entries].tolist(), trace.size[entries].tolist(), DriverAddresses())


def compare(device: DeviceHistory, program: Program, recorded: Replay) -> SelfCheck:
    """Every address and every segment event of a replay against the recording."""
    trace = device.trace
    wrong_allocs, compared = _wrong_allocations(device, program, recorded)
    entries = trace.entries(*OBTAINS, *RETURNS)
    wrong_segments = entries[_wrong_segment_events(device, entries, recorded)]
    extra = abs(len(entries) - len(recorded.segment_events))
    wrong = np.concatenate([wrong_allocs, wrong_segments])
    if not len(wrong) and extra:
        wrong = np.array([len(trace) - 1], np.int64)
    first = int(wrong.min()) if len(wrong) else None
    return SelfCheck(compared, len(entries), len(wrong_allocs) + len(wrong_segments) + extra, first)


def _wrong_allocations(device: DeviceHistory, program: Program, recorded: Replay) -> tuple[IntArray, int]:
    """The alloc and oom entries that the replay answers differently; and how many there are."""
    asked = (program.op == Op.MALLOC) | (program.op == Op.TRY_MALLOC)
    entry, op = program.entry[asked], program.op[asked]
    expected = np.where(op == Op.TRY_MALLOC, -1, device.trace.address[entry])
    found = np.full(len(expected), -2, np.int64)
    found[: len(recorded.addresses)] = recorded.addresses
    return entry[expected != found], int(np.count_nonzero(op == Op.MALLOC))


def _wrong_segment_events(device: DeviceHistory, entries: IntArray, recorded: Replay) -> BoolArray:
    trace = device.trace
    expected = np.stack([trace.action[entries].astype(np.int64), trace.address[entries], trace.size[entries]], axis=1)
    found = np.full_like(expected, -1)
    events = np.array(recorded.segment_events[: len(expected)], np.int64).reshape(-1, 3)
    found[: len(events)] = events
    differs: BoolArray = np.any(expected != found, axis=1)
    return differs
