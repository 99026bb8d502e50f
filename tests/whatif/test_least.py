"""The least memory: that it is found, for whatever card, and how much is spent on showing it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from oomscope.allocator import AllocatorConfig
from oomscope.allocator.limits import Limit
from oomscope.allocator.replay import Replay, Replayer
from oomscope.analysis.whatif import EXPANDABLE, least, whatif
from oomscope.analysis.whatif.least import Least, least_memory
from oomscope.wording.whatif_table import notes_text
from tests.whatif.recorder import Recorder
from tests.whatif.subjects import subject_of

MIB = 1 << 20


def passing() -> Recorder:
    """Requests of many sizes, each given back before the next but one."""
    recorder = Recorder()
    for name in range(12):
        recorder.malloc(name, (11 + 7 * name) * MIB)
        if name:
            recorder.free(name - 1)
    return recorder


@pytest.mark.parametrize("setting", ["", EXPANDABLE, "garbage_collection_threshold:0.5"])
def test_a_program_without_requests_needs_nothing(setting: str) -> None:
    recorder = Recorder(setting)
    recorder.malloc(0, 30 * MIB)
    for row in whatif(recorder.snapshot(), 0, without=["model.py"], settings=[setting or EXPANDABLE]).rows[2:]:
        assert (row.least_memory, row.peak_reserved) == (0, 0)
        assert "nothing is left to replay" in notes_text(row)


@pytest.mark.parametrize("setting", ["", EXPANDABLE])
def test_the_card_that_is_asked_for_does_not_move_the_least_memory(setting: str) -> None:
    needs = {
        whatif(passing().snapshot(), 0, settings=[setting], gpu=card).rows[1].least_memory
        for card in (None, 40 * MIB, 64 * MIB, 1 << 40)
    }
    assert len(needs) == 1


def test_under_garbage_collection_no_larger_limit_is_vouched_for() -> None:
    subject = subject_of(passing().snapshot())
    found = least_memory(subject.replayer, AllocatorConfig.parse("garbage_collection_threshold:0.5"), subject.addresses)
    assert found.proven_to == found.cap
    rows = whatif(passing().snapshot(), 0, settings=["garbage_collection_threshold:0.5"], limit=1 << 30).rows
    assert "minimum verified for this limit only" in notes_text(rows[1])


def test_the_search_ends_where_every_other_limit_kills() -> None:
    tried = []

    def run(cap: int) -> SimpleNamespace:
        tried.append(cap)
        return SimpleNamespace(
            survived=cap % 2 == 0, retries=0, failures=[SimpleNamespace(request=1)], same_caps=(cap, cap + 1)
        )

    found = least._proven(run, Least(100, 0, 102), lambda: True, 7)  # type: ignore[arg-type]
    assert len(tried) <= 8
    assert found.proven_to is not None


def test_long_programs_are_tried_fewer_times(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = subject_of(passing().snapshot())
    spent: list[int] = []
    monkeypatch.setattr(least, "_proven", lambda run, found, may_go_on, proofs: spent.append(proofs) or found)
    config = AllocatorConfig.parse("max_split_size_mb:24")
    for steps in (4_000_000, 5 * len(subject.replayer.program.op), 1):
        monkeypatch.setattr(least, "PROOF_STEPS", steps)
        least_memory(subject.replayer, config, subject.addresses)
    assert spent == [32, 5, 1]


@pytest.mark.parametrize("setting", ["", EXPANDABLE, "max_split_size_mb:24", "garbage_collection_threshold:0.5"])
def test_no_limit_is_replayed_twice(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a replay has told of other limits is not replayed again, nor is one that was made before."""
    subject, config = subject_of(passing().snapshot()), AllocatorConfig.parse(setting)
    known = subject.replayer.run(config, addresses=subject.addresses())
    tried: list[Replay] = []
    run = Replayer.run

    def watched(self: Replayer, *arguments: Any, **options: Any) -> Replay:
        cap = arguments[1].cap
        assert not any(one.same_caps and one.same_caps[0] <= cap < (one.same_caps[1] or 1 << 63) for one in tried)
        tried.append(run(self, *arguments, **options))
        return tried[-1]

    monkeypatch.setattr(Replayer, "run", watched)
    alone = least_memory(subject.replayer, config, subject.addresses)
    count = len(tried)
    tried.clear()
    assert least_memory(subject.replayer, config, subject.addresses, known=known) == alone
    assert len(tried) == count - (known.same_caps is not None and not config.garbage_collection_threshold)


def test_a_replay_that_was_refused_memory_tells_nothing_of_larger_limits() -> None:
    subject, config = subject_of(passing().snapshot()), AllocatorConfig()
    alone = least_memory(subject.replayer, config, subject.addresses)
    bound = subject.replayer.run(config, Limit(capacity=alone.cap), subject.addresses())
    assert bound.refused
    assert least_memory(subject.replayer, config, subject.addresses, known=bound) == alone
