"""Traps in traces: what has no entry of its own, and what stands in another order than it happened."""

from __future__ import annotations

from typing import Any

import pytest

from oomscope.allocator.limits import Limit
from oomscope.allocator.program import Op
from oomscope.analysis.whatif.preparation import Subject
from tests import builders
from tests.whatif.recorder import EMPTY_CACHE, Recorder
from tests.whatif.subjects import subject_of

MIB = 1 << 20


def steps(subject: Subject) -> list[tuple[Op, int]]:
    program = subject.extraction.program
    return [(Op(op), argument) for op, argument in zip(program.op.tolist(), program.argument.tolist(), strict=True)]


def test_a_free_that_completes_at_once_is_one_step() -> None:
    recorder = Recorder()
    recorder.malloc(0, 3 * MIB)
    recorder.free(0)
    assert steps(subject_of(recorder.snapshot())) == [(Op.MALLOC, 0), (Op.FREE, 0)]


def waiting() -> Recorder:
    """A request that is served only after another stream is done with a block."""
    recorder = Recorder(limit=Limit(cap=40 * MIB))
    recorder.malloc(0, 30 * MIB)
    recorder.malloc(1, MIB)
    recorder.free(0, used_elsewhere=True)
    recorder.free(1)
    recorder.malloc(2, 35 * MIB)
    return recorder


def test_a_wait_inside_a_request_is_put_behind_it() -> None:
    recorder = waiting()
    actions = [entry["action"] for entry in recorder.entries]
    assert actions[-5:] == ["free_completed", "segment_free", "segment_free", "segment_alloc", "alloc"]
    subject = subject_of(recorder.snapshot())
    assert steps(subject)[-2:] == [(Op.MALLOC, 2), (Op.FREE_COMPLETED, 0)]
    assert subject.check.exact
    assert subject.recorded.retries == 1


def test_a_wait_without_anything_between_is_told_by_its_stack() -> None:
    recorder = Recorder(limit=Limit(cap=60 * MIB))
    recorder.malloc(0, 58 * MIB)
    recorder.free(0, used_elsewhere=True)
    # 20 MiB would fit into the block if it were free already.
    recorder.malloc(1, 20 * MIB)
    subject = subject_of(recorder.snapshot())
    assert (Op.FREE_COMPLETED, 0) in steps(subject)
    assert subject.check.exact


def test_a_wait_before_a_failure_is_put_behind_it() -> None:
    recorder = Recorder(limit=Limit(cap=60 * MIB))
    recorder.malloc(0, 30 * MIB)
    recorder.malloc(1, 19 * MIB)
    recorder.free(0)
    recorder.malloc(2, 20 * MIB)
    recorder.malloc(3, 9 * MIB)
    recorder.free(2, used_elsewhere=True)
    recorder.malloc(4, MIB)
    # The wait makes 20 MiB free that this request could have had; nothing is looked for again, and no segment is free.
    recorder.malloc(5, 18 * MIB)
    actions = [entry["action"] for entry in recorder.entries]
    assert actions[-2:] == ["free_completed", "oom"]
    subject = subject_of(recorder.snapshot())
    assert steps(subject)[-2:] == [(Op.TRY_MALLOC, 5), (Op.FREE_COMPLETED, 2)]
    assert subject.check.exact


@pytest.mark.parametrize("with_frames", [True, False])
def test_empty_cache_is_told_by_its_frame_or_by_what_follows(with_frames: bool) -> None:
    recorder = Recorder()
    recorder.malloc(0, 30 * MIB)
    recorder.free(0)
    recorder.empty_cache(with_frames=with_frames)
    recorder.malloc(1, MIB, frames=[builders.frame("forward")])
    if not with_frames:
        # Without frames it stands at the end, where no request follows it.
        recorder.malloc(2, 40 * MIB)
        recorder.free(2)
        recorder.empty_cache(with_frames=False)
    subject = subject_of(recorder.snapshot())
    assert (Op.EMPTY_CACHE, -1) in steps(subject)
    if with_frames:
        assert subject.check.exact


def test_two_releases_in_a_row_for_two_reasons_are_two() -> None:
    recorder = Recorder(limit=Limit(cap=60 * MIB))
    recorder.malloc(0, 20 * MIB)
    recorder.malloc(1, 30 * MIB)
    recorder.free(0)
    recorder.empty_cache()
    recorder.free(1)
    recorder.malloc(2, 50 * MIB)
    entries = [entry["action"] for entry in recorder.entries]
    assert entries.count("segment_free") == 2
    subject = subject_of(recorder.snapshot())
    assert subject.check.exact
    assert subject.recorded.retries == 1


def test_a_private_pool_is_known_by_its_segments_while_it_lives() -> None:
    recorder = Recorder()
    recorder.malloc(0, 30 * MIB)
    recorder.free(0)
    # Without its pool the request would be served by the block that is free in the default one.
    recorder.malloc(1, 30 * MIB, owner=1)
    recorder.malloc(2, 5 * MIB, owner=2)
    subject = subject_of(recorder.snapshot())
    assert [subject.extraction.program.pools[owner] for owner in subject.extraction.program.owner] == [
        (0, 0),
        (1, 0),
        (2, 0),
    ]
    assert subject.check.exact


def test_from_2_12_on_entries_name_their_pool() -> None:
    recorder = Recorder()
    recorder.malloc(0, 30 * MIB, owner=1)
    recorder.free(0)
    recorder.allocator.freeable_pools.append(1)
    recorder.empty_cache()
    for entry in recorder.entries:
        entry["pool_id"] = (1, 0)
    subject = subject_of(recorder.snapshot(release="2.12"))
    assert (Op.POOL_FREEABLE, 1) in steps(subject)
    assert subject.check.exact
    assert subject.recorded.final_reserved == 0


def test_entries_that_we_do_not_know_do_no_harm() -> None:
    recorder = Recorder()
    recorder.malloc(0, 30 * MIB)
    recorder.entries.append(builders.entry("snapshot", 0, 30 * MIB))
    recorder.entries.append(builders.entry("of_the_future", 5, 6))
    recorder.free(0)
    assert subject_of(recorder.snapshot()).check.exact


@pytest.mark.parametrize(
    "spoil",
    [
        lambda entries: entries.pop(3),
        lambda entries: entries[2].update(addr=entries[2]["addr"] + 512),
        lambda entries: entries[1].update(size=entries[1]["size"] * 2),
        lambda entries: entries.insert(0, builders.entry("segment_alloc", 0, 20 * MIB)),
    ],
)
def test_a_trace_that_was_tampered_with_is_found_out_and_never_crashes(spoil: Any) -> None:
    recorder = Recorder()
    for name, size in enumerate((12, 3, 5, 30, 4)):
        recorder.malloc(name, size * MIB)
    for name in (0, 2, 3):
        recorder.free(name)
    recorder.malloc(9, 25 * MIB)
    spoil(recorder.entries)
    subject = subject_of(recorder.snapshot())
    assert subject.check.mismatches > 0
    assert subject.check.first_mismatch is not None


def test_the_frames_of_empty_cache_are_those_of_torch() -> None:
    assert EMPTY_CACHE[0]["name"] == "empty_cache"
