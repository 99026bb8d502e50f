"""A recorded run, extracted from its trace and replayed, is the recorded run."""

from __future__ import annotations

from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

from oomscope.allocator.addresses import Addresses, Ascending, Descending, Shuffled
from oomscope.allocator.limits import Limit
from oomscope.analysis.whatif.preparation import Subject, prepare
from oomscope.history import device_history, recorded_config
from oomscope.model import Snapshot
from tests.whatif.recorder import BASE, Recorder

MIB = 1 << 20

CONFIGS = [
    "",
    "expandable_segments:True",
    "max_split_size_mb:24",
    "roundup_power2_divisions:4",
    "expandable_segments:True,roundup_power2_divisions:2",
]
LIMITS = [Limit(), Limit(cap=200 * MIB), Limit(cap=90 * MIB)]
SIZES = st.integers(1, 3 * MIB) | st.integers(1, 60 * MIB) | st.sampled_from([MIB, 2 * MIB, 20 * MIB])

ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["malloc"] * 5 + ["free"] * 4 + ["free_elsewhere", "complete", "empty_cache"]),
        SIZES,
        st.sampled_from([0, 0, 0, 7]),
        st.integers(0, 1 << 20),
    ),
    min_size=5,
    max_size=120,
)
ORDERS = st.sampled_from([Ascending, Descending, Shuffled])


def order(kind: type) -> Addresses:
    return Shuffled(5, BASE, BASE + (1 << 46)) if kind is Shuffled else kind(BASE, BASE + (1 << 46))


def record(recorder: Recorder, actions: list[tuple[str, int, int, int]]) -> None:
    """Let a program do `actions`, as far as they make sense."""
    for number, (action, size, stream, choice) in enumerate(actions):
        live, waiting = sorted(recorder.live), sorted(recorder.waiting)
        if action == "malloc":
            recorder.malloc(number + 1000 * len(recorder.began), size, stream)
        elif action.startswith("free") and live:
            recorder.free(live[choice % len(live)], used_elsewhere=action == "free_elsewhere")
        elif action == "complete" and waiting:
            recorder.complete(waiting[choice % len(waiting)])
        elif action == "empty_cache":
            recorder.empty_cache()


def listing(recorder: Recorder) -> str:
    lines = (f"{at} {entry['action']} {entry.get('addr')} {entry['size']}" for at, entry in enumerate(recorder.entries))
    return "\n".join(lines)


def subject(snapshot: Snapshot) -> Subject:
    return prepare(snapshot, device_history(snapshot.devices[0], recorded_config(snapshot)))


@given(ACTIONS, st.sampled_from(CONFIGS), st.sampled_from(LIMITS), ORDERS)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_replay_of_a_recording_equals_it(
    actions: list[tuple[str, int, int, int]], conf: str, limit: Limit, kind: type
) -> None:
    recorder = Recorder(conf, limit, order(kind))
    record(recorder, actions)
    assume(recorder.began)
    prepared = subject(recorder.snapshot())
    note(listing(recorder))
    assert prepared.check.mismatches == 0, prepared.check
    assert prepared.check.addresses == len(recorder.began)
    replayed, real = prepared.recorded, recorder.allocator
    assert replayed.peak_reserved == real.peak_reserved
    assert replayed.final_reserved == real.reserved
    assert replayed.peak_allocated == real.peak_allocated
    assert replayed.segment_allocs == real.num_device_alloc


@given(ACTIONS, ACTIONS, st.sampled_from(CONFIGS), ORDERS)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_recording_that_lost_its_beginning_is_replayed_from_where_it_begins(
    before: list[tuple[str, int, int, int]], after: list[tuple[str, int, int, int]], conf: str, kind: type
) -> None:
    recorder = Recorder(conf, None, order(kind))
    record(recorder, before)
    recorder.forget()
    known = len(recorder.began)
    record(recorder, after)
    assume(len(recorder.began) > known)
    prepared = subject(recorder.snapshot())
    note(listing(recorder))
    assert prepared.check.addresses == len(recorder.began) - known
    # Where an expandable segment begins, and how much a block kept that was there before, may not be in the file.
    # A replay that took it for something else finds that out.
    uncertain = prepared.config.expandable_segments or prepared.device.slack.any()
    assert prepared.check.mismatches == 0 or uncertain, prepared.check
    if prepared.check.mismatches == 0:
        assert prepared.recorded.final_reserved == recorder.allocator.reserved
