"""The compiled core answers as the plain model does: every address, every segment event, every figure."""

from __future__ import annotations

import importlib
import importlib.util
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomscope.allocator import compiled
from oomscope.allocator.addresses import Ascending, Descending, Shuffled
from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.limits import Limit
from oomscope.allocator.plain import Prepared
from oomscope.allocator.program import Op, Program
from oomscope.allocator.repeats import Forms
from oomscope.allocator.replay import Replay, Replayer
from oomscope.allocator.torch_releases import LATEST, release_of
from oomscope.analysis.whatif.preparation import Subject
from tests.allocator.test_invariants import CONFIGS, LIMITS, SIZES
from tests.samples import SAMPLES, sample
from tests.shared import captures, needs_shared, public, shared_snapshot
from tests.whatif.subjects import subject_of

pytestmark = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")

CUDA_ONLY = ("no_history", "state_only")
FIGURES = [name for name in Replay.__slots__ if name not in ("config", "limit")]


def difference(replayer: Replayer, config: AllocatorConfig, limit: Limit, order: Any, **options: bool) -> list[str]:
    """In what the two differ."""
    plain, fast = (
        replayer.run(config, limit, order(), note_addresses=True, compiled=way, **options) for way in (False, True)
    )
    return [name for name in FIGURES if np.any(getattr(plain, name) != getattr(fast, name))]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Any legal order of requests and frees on two streams, of the default pool and a private one."""
    count = draw(st.integers(1, 60))
    op: list[int] = []
    argument: list[int] = []
    held: list[int] = []
    waiting: list[int] = []
    made = 0
    while made < count:
        kind = draw(st.sampled_from("mmmmmffffftrceo"))
        if kind in "mt":
            op.append(Op.MALLOC if kind == "m" else Op.TRY_MALLOC)
            argument.append(made)
            held += [made] if kind == "m" else []
            made += 1
        elif kind in "fr" and held:
            one = held.pop(draw(st.integers(0, len(held) - 1)))
            op.append(Op.FREE if kind == "f" else Op.FREE_REQUESTED)
            argument.append(one)
            waiting += [one] if kind == "r" else []
        elif kind == "c" and waiting:
            op.append(Op.FREE_COMPLETED)
            argument.append(waiting.pop(draw(st.integers(0, len(waiting) - 1))))
        elif kind in "eo":
            op.append(Op.EMPTY_CACHE if kind == "e" else Op.POOL_FREEABLE)
            argument.append(-1 if kind == "e" else 1)
    column = st.lists(st.sampled_from([0, 0, 0, 1]), min_size=count, max_size=count)
    return Program(
        size=np.array(draw(st.lists(SIZES, min_size=count, max_size=count)), np.int64),
        stream=np.array(draw(column), np.int64) * 7,
        owner=np.array(draw(column), np.int64),
        op=np.array(op, np.uint8),
        argument=np.array(argument, np.int64),
        entry=np.arange(len(op)),
        pools=((0, 0), (1, 0)),
    )


@settings(max_examples=300, deadline=None)
@given(
    program=programs(),
    conf=st.sampled_from(CONFIGS),
    limit=st.sampled_from([*LIMITS, Limit(cap=60 << 20), Limit(capacity=44 << 20, device_total=64 << 20)]),
    order=st.sampled_from([Ascending, Descending, lambda: Shuffled(3)]),
    stop=st.booleans(),
    release=st.sampled_from([LATEST, release_of("2.10-2.11")]),
)
def test_any_program_gives_the_same(program: Program, conf: str, limit: Limit, order: Any, stop: bool, release: Any):
    replayer = Replayer(program, release)
    assert not difference(replayer, AllocatorConfig.parse(conf), limit, order, stop_at_failure=stop)


def cases(subject: Subject) -> list[tuple[AllocatorConfig, Limit]]:
    recorded, peak = subject.limit.limit, max(subject.recorded.peak_allocated, 1 << 20)
    limits = [recorded, Limit(cap=int(1.12 * peak)), Limit(capacity=int(1.05 * peak), device_total=2 * peak)]
    configs = [subject.config, *map(AllocatorConfig.parse, CONFIGS)]
    return [(config, limit) for config in configs for limit in limits]


def assert_the_same(subject: Subject) -> None:
    for config, limit in cases(subject):
        orders: list[Any] = [subject.addresses, Descending] if limit is subject.limit.limit else [subject.addresses]
        for order in orders:
            assert not difference(subject.replayer, config, limit, order), (config, limit)
    program = subject.extraction.program
    if program.initial is not None:
        compact = Replayer(program.replaced_compactly(), subject.release)
        assert not difference(compact, AllocatorConfig.parse("expandable_segments:True"), Limit(), subject.addresses)


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in CUDA_ONLY])
def test_every_sample_is_replayed_to_the_same_addresses(name: str):
    for device in sample(name).devices:
        assert_the_same(subject_of(sample(name), device.index))


@needs_shared
@pytest.mark.parametrize("name", [name for name in (*captures(), *public()) if name not in CUDA_ONLY])
def test_every_capture_is_replayed_to_the_same_addresses(name: str):
    for device in shared_snapshot(name).devices:
        assert_the_same(subject_of(shared_snapshot(name), device.index))


@needs_shared
def test_a_long_capture_is_replayed_to_the_same_addresses():
    subject = subject_of(shared_snapshot("big_history"))
    for conf in ("", "expandable_segments:True"):
        assert not difference(subject.replayer, AllocatorConfig.parse(conf), Limit(), subject.addresses)


def test_nothing_of_a_replay_stays_but_its_figures():
    """Blocks and columns refer to each other; without Python's collector, a search would keep those of every replay."""
    subject = subject_of(sample("oom_fragmentation"))
    run = importlib.import_module("oomscope.allocator.compiled.run")
    program = subject.replayer.program
    prepared = Prepared(Forms(program).form(()), ())
    done = run.CompiledRun(prepared, AllocatorConfig(), Limit(), None, note_addresses=True)
    done.steps(0, len(program.op), stop_at_failure=False)
    store, peak = done.allocator.store, done.allocator.peak_allocated
    gone = [weakref.ref(column) for column in (store.state.request, store.state.block, store.state.order)]
    store.let_go()
    assert not any(column() is not None for column in gone)
    assert done.allocator.peak_allocated == peak


def test_blocks_that_need_an_alignment_are_left_to_the_plain_model():
    size = np.array([3 << 20, 5 << 20], np.int64)
    zero = np.zeros(2, np.int64)
    program = Program(size, zero, zero, np.zeros(2, np.uint8), np.arange(2), np.arange(2))
    config = AllocatorConfig(expandable_segments=True, padding=32, base_alignment=16 << 10)
    assert not difference(Replayer(program), config, Limit(), Ascending)


def test_a_process_that_replays_little_loads_nothing():
    choice = compiled.Choice()
    assert choice.of(compiled.WORTH - 1) is None
    assert choice.of(1) is not None


def test_where_numba_does_not_work_the_plain_model_serves(monkeypatch: pytest.MonkeyPatch):
    def broken(name: str) -> None:
        raise SystemError(f"{name}: initialization failed")

    monkeypatch.setattr("importlib.import_module", broken)
    choice = compiled.Choice()
    assert choice.of(10 * compiled.WORTH) is None


def test_where_what_was_compiled_does_not_work_the_plain_model_serves(monkeypatch: pytest.MonkeyPatch):
    from oomscope.allocator.compiled import core

    def broken(*_: object) -> None:
        raise TypeError("an option that this numba does not know")

    monkeypatch.setattr(core, "take", broken)
    assert compiled.Choice().load() is None
