"""Random programs run by the model of the allocator, with what was true after each of their operations."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

from oomscope.allocator.limits import Limit
from tests.whatif.recorder import Recorder

MIB = 1 << 20

CONFIGS = st.sampled_from(
    [
        "",
        "expandable_segments:True",
        "max_split_size_mb:24",
        "roundup_power2_divisions:4",
        "max_split_size_mb:32,roundup_power2_divisions:8",
        "expandable_segments:True,roundup_power2_divisions:2",
    ]
)
LIMITS = st.sampled_from([Limit(), Limit(cap=200 * MIB), Limit(capacity=120 * MIB)])
SIZES = st.integers(1, 3 * MIB) | st.integers(1, 60 * MIB) | st.sampled_from([512, MIB, MIB + 512, 10 * MIB, 20 * MIB])


class Operation(NamedTuple):
    """One thing that a program does; `choice` picks the block that it does it to."""

    kind: str
    size: int
    stream: int
    pool: int
    choice: int


OPERATIONS = st.lists(
    st.builds(
        Operation,
        st.sampled_from(["malloc"] * 6 + ["free"] * 4 + ["free_elsewhere", "complete", "empty_cache"]),
        SIZES,
        st.sampled_from([0, 0, 0, 7]),
        st.sampled_from([0, 0, 0, 0, 1, 2]),
        st.integers(0, 1 << 20),
    ),
    min_size=1,
    max_size=60,
)


class Moment(NamedTuple):
    """What was true once `entry` had happened."""

    entry: int
    allocated: int
    active: int
    reserved: int
    blocks: dict[int, int]
    """Bytes of each allocated block, by its address."""


def run(operations: list[Operation], conf: str, limit: Limit) -> tuple[Recorder, list[Moment]]:
    """A program under recording, and what was true after each of its operations."""
    recorder = Recorder(conf, limit)
    recorder.malloc(-1, 1)  # a snapshot without anything has no device
    moments = [_moment(recorder)]
    for number, operation in enumerate(operations):
        live, waiting = sorted(recorder.live), sorted(recorder.waiting)
        if operation.kind == "malloc":
            recorder.malloc(number, operation.size, operation.stream, operation.pool)
        elif operation.kind.startswith("free") and live:
            recorder.free(live[operation.choice % len(live)], used_elsewhere=operation.kind == "free_elsewhere")
        elif operation.kind == "complete" and waiting:
            recorder.complete(waiting[operation.choice % len(waiting)])
        elif operation.kind == "empty_cache":
            recorder.empty_cache()
        moments.append(_moment(recorder))
    return recorder, moments


def _moment(recorder: Recorder) -> Moment:
    allocator = recorder.allocator
    blocks = {block.address: block.size for block, _ in recorder.live.values()}
    return Moment(
        entry=len(recorder.entries) - 1,
        allocated=allocator.allocated,
        active=allocator.allocated + sum(block.size for block in allocator.pending.values()),
        reserved=allocator.reserved,
        blocks=blocks,
    )
