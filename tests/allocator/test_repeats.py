"""A replay without what only repeats answers as one of every step: every address, every event, every figure."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomscope.allocator import repeats
from oomscope.allocator.addresses import Ascending
from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.limits import NO_LIMIT, Limit
from oomscope.allocator.program import Op, Program
from oomscope.allocator.repeats import Forms
from oomscope.allocator.replay import Replay, Replayer
from oomscope.units import MIB
from tests.shared import needs_shared, shared_snapshot
from tests.whatif.subjects import subject_of

WAYS = [False, True] if importlib.util.find_spec("numba") is not None else [False]
FIGURES = [name for name in Replay.__slots__ if name not in ("config", "limit", "steps")]
CONFIGS = [
    AllocatorConfig.parse(text)
    for text in ("", "expandable_segments:True", "max_split_size_mb:21", "garbage_collection_threshold:0.5")
]
Step = tuple[Op, int, int]
"""What is done, with the how-many-th last request it is done (0: a new one), and of which size."""


@pytest.fixture(autouse=True)
def short_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "LEAST_STEPS", 24)


def program(*parts: Sequence[Step]) -> Program:
    """The program of steps, one part after the other."""
    op, argument, size = [], [], []
    for kind, back, wanted in (step for part in parts for step in part):
        if kind in (Op.MALLOC, Op.TRY_MALLOC):
            size.append(wanted)
        op.append(kind)
        argument.append(len(size) - 1 - back if kind != Op.EMPTY_CACHE else -1)
    zero = np.zeros(len(size), np.int64)
    return Program(
        np.array(size, np.int64), zero, zero,
        np.array(op, np.uint8), np.array(argument, np.int64), np.arange(len(op)),
    )  # fmt: skip


def ask(*sizes: int) -> list[Step]:
    return [(Op.MALLOC, 0, size * MIB) for size in sizes]


def give(*back: int) -> list[Step]:
    return [(Op.FREE, one, 0) for one in back]


def whole(asked: Program) -> Replayer:
    """What replays every step."""
    replayer = Replayer(asked)
    replayer._forms.loops = replayer._forms.shortest = ()
    return replayer


def difference(asked: Program, config: AllocatorConfig, limit: Limit, *, compiled: bool, stops: bool) -> list[str]:
    """In what a replay differs from that of every step."""
    short, full = (
        replayer.run(config, limit, Ascending(), stop_at_failure=stops, note_addresses=True, compiled=compiled)
        for replayer in (Replayer(asked), whole(asked))
    )
    return [name for name in FIGURES if np.any(getattr(short, name) != getattr(full, name))]


TRAINING = program(
    ask(40, 8, 3), [step for _ in range(40) for step in (*ask(5, 7, 30), *give(1, 2), *ask(12), *give(0, 1))],
    ask(300, 2), give(0),
)  # fmt: skip
"""What stays, forty passes alike, and something larger at the end."""
SWAPPED = program(
    ask(1, 6, 50), give(0), [step for _ in range(60) for step in (*ask(6, 9), *give(0), *give(3))], ask(70)
)
"""Each pass gives back what the one before it has made, when it has made its own: blocks change places."""


@pytest.mark.parametrize("compiled", WAYS)
@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("asked", [TRAINING, SWAPPED], ids=["training", "swapped"])
def test_loops_are_cut_short_and_nothing_else_is_different(
    asked: Program, config: AllocatorConfig, compiled: bool
) -> None:
    assert Forms(asked).loops
    for limit in (NO_LIMIT, *(Limit(cap=cap * MIB) for cap in (60, 90, 120, 200, 400))):
        for stops in (False, True):
            assert not difference(asked, config, limit, compiled=compiled, stops=stops)


@pytest.mark.parametrize("compiled", WAYS)
def test_most_steps_are_not_taken(compiled: bool) -> None:
    for asked in (TRAINING, SWAPPED):
        replay = Replayer(asked).run(AllocatorConfig(), note_addresses=True, compiled=compiled)
        assert replay.steps < 0.5 * len(asked.op)
        assert len(replay.addresses) == asked.requests


def test_blocks_that_change_places_repeat_after_two_passes() -> None:
    forms = Forms(SWAPPED)
    assert forms.shortest == (1,)
    replay = Replayer(SWAPPED).run(AllocatorConfig())
    assert replay.steps == len(forms.form(forms.longer((1,), 0)).program.op)
    assert len(set(whole(SWAPPED).run(AllocatorConfig(), note_addresses=True).addresses[3:-1:2].tolist())) == 2


@pytest.mark.parametrize(
    "body",
    [
        pytest.param([*ask(5, 7), *give(1)], id="each pass leaves something"),
        pytest.param([*ask(5), (Op.EMPTY_CACHE, 0, 0), *give(0)], id="each pass empties the cache"),
        pytest.param([*ask(5), (Op.FREE_REQUESTED, 0, 0), (Op.FREE_COMPLETED, 0, 0)], id="each pass waits"),
        pytest.param([(Op.TRY_MALLOC, 0, 5 * MIB), *ask(4), *give(0)], id="each pass was refused something"),
    ],
)
def test_what_may_not_repeat_is_replayed(body: list[Step]) -> None:
    asked = program(ask(40), [step for _ in range(40) for step in body])
    assert not Forms(asked).loops
    assert Replayer(asked).run(AllocatorConfig()).steps == len(asked.op)


def test_a_loop_that_asks_for_another_size_once_is_two() -> None:
    passes = [[*ask(5, 7), *give(0, 1)] for _ in range(80)]
    passes[40] = [*ask(5, 8), *give(0, 1)]
    first, second = Forms(program(*passes)).loops
    assert first.begin + first.passes * first.period <= 40 * 4 + 1
    assert second.begin > 40 * 4


def test_a_free_of_what_an_earlier_pass_made_is_no_way_out_of_the_loop() -> None:
    """The program frees, after the loop, a request of its middle: that is not the one of its end."""
    asked = program([step for _ in range(40) for step in (*ask(5, 7), *give(0, 1))], give(41))
    assert not Forms(asked).loops


def test_while_memory_comes_and_goes_every_step_is_taken() -> None:
    """Small requests and a large one have no room beside each other, and none is served by the other's memory."""
    body = [*ask(*[1] * 20), *give(*range(20)), *ask(70), *give(0)]
    asked = program(ask(2), [step for _ in range(40) for step in body])
    assert Forms(asked).loops
    tight = Limit(cap=100 * MIB)
    replay = Replayer(asked).run(AllocatorConfig(), tight)
    assert replay.retries > 30
    assert replay.steps == len(asked.op)
    assert not difference(asked, AllocatorConfig(), tight, compiled=False, stops=False)


def test_a_failure_is_that_of_the_whole_program() -> None:
    failure = Replayer(TRAINING).run(AllocatorConfig(), Limit(cap=250 * MIB)).failures[0]
    assert (failure.request, failure.entry) == (TRAINING.requests - 2, len(TRAINING.op) - 3)


@st.composite
def looping(draw: st.DrawFn) -> Program:
    """A beginning, some loops whose passes give back what they or the ones before made, and an end."""
    sizes = st.sampled_from([1, 2, 3, 5, 9, 12, 21, 33])
    parts: list[Sequence[Step]] = [ask(*draw(st.lists(sizes, max_size=6)))]
    for _ in range(draw(st.integers(1, 2))):
        made = draw(st.lists(sizes, min_size=1, max_size=5))
        order = draw(st.permutations(range(len(made))))
        late = draw(st.integers(0, len(made)))
        # The first `late` of each pass go in the next one, when its own have been made.
        now = [one for one in order if one >= late]
        before = [one for one in order if one < late]
        body = [*ask(*made), *give(*(len(made) - 1 - one for one in now))]
        body += give(*(2 * len(made) - 1 - one for one in before))
        parts += [ask(*made), *([body] * draw(st.integers(10, 50)))]
    return program(*parts, ask(*draw(st.lists(sizes, max_size=4))))


@settings(max_examples=60, deadline=None)
@given(asked=looping(), config=st.sampled_from(CONFIGS), cap=st.none() | st.integers(30, 200), stops=st.booleans())
def test_any_loops(asked: Program, config: AllocatorConfig, cap: int | None, stops: bool) -> None:
    limit = Limit(cap=None if cap is None else cap * MIB)
    repeats.LEAST_STEPS = 24
    for compiled in WAYS:
        assert not difference(asked, config, limit, compiled=compiled, stops=stops)


@needs_shared
@pytest.mark.parametrize("conf", ["", "expandable_segments:True", "roundup_power2_divisions:4"])
def test_a_long_training_is_told_by_a_tenth_of_it(conf: str) -> None:
    subject = subject_of(shared_snapshot("big_history"))
    config, asked = AllocatorConfig.parse(conf), subject.replayer.program
    short = subject.replayer.run(config, addresses=subject.addresses(), note_addresses=True, compiled=False)
    full = whole(asked).run(config, addresses=subject.addresses(), note_addresses=True, compiled=False)
    assert short.steps < 0.1 * len(asked.op)
    assert not [name for name in FIGURES if np.any(getattr(short, name) != getattr(full, name))]
