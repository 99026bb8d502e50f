"""What a process could reserve when a request failed, as far as the snapshot tells."""

from __future__ import annotations

from typing import Any

import pytest

from oomscope.analysis.verdict.limits import limit_at, outside_bytes
from oomscope.analysis.verdict.records import ProcessLimit
from oomscope.history import device_history, recorded_config
from oomscope.model import Action, RecordedDevice
from tests import builders
from tests.builders import block, entry, loaded, segment

GIB = 1 << 30
A, B = 0x7F00_0000_0000, 0x7F80_0000_0000


def limit(*, device_free: int, request: int = GIB, context: Any = None, **settings: Any) -> ProcessLimit:
    """Of a request that failed while 4 GiB were reserved, 5 GiB having been the most."""
    snapshot = loaded(
        [segment(A, [block(4 * GIB)])],
        [
            [
                entry("segment_alloc", A, 4 * GIB),
                entry("segment_alloc", B, GIB),
                entry("segment_free", B, GIB),
                entry("alloc", A, 4 * GIB),
                entry("oom", device_free, request),
            ]
        ],
        allocator_settings=builders.settings(**settings),
        **({} if context is None else {"oomscope": {"devices": [{"device": 0, **context}]}}),
    )
    history = device_history(snapshot.devices[0], recorded_config(snapshot))
    at = int(history.trace.entries(Action.OOM)[-1])
    return limit_at(snapshot, history, request, device_free, at)


def test_a_device_with_too_little_free_is_the_limit() -> None:
    assert limit(device_free=GIB - 1) == ProcessLimit(5 * GIB - 1, 5 * GIB - 1, "device")


def test_a_device_with_enough_free_means_a_cap_between_what_was_allowed_and_what_was_refused() -> None:
    assert limit(device_free=50 * GIB, request=2 * GIB) == ProcessLimit(5 * GIB, 6 * GIB - 1, "bracket")


def test_expandable_segments_need_whole_pages_of_the_device() -> None:
    found = limit(device_free=GIB + 512, request=GIB, expandable_segments=True)
    assert found.source == "device", "1 GiB takes 52 pages of 20 MiB"


def test_a_recorded_cap_is_the_limit() -> None:
    assert limit(device_free=50 * GIB, context={"total": 80 * GIB, "free": 1, "cap": 4 * GIB + 5}) == ProcessLimit(
        4 * GIB + 5, 4 * GIB + 5, "recorded"
    )


def test_a_recorded_card_less_what_was_outside_then_is_the_limit() -> None:
    # What is free at the end of the snapshot is another matter.
    assert limit(device_free=GIB // 2, context={"total": 80 * GIB, "free": 7 * GIB, "cap": None}) == ProcessLimit(
        4 * GIB + GIB // 2, 4 * GIB + GIB // 2, "recorded"
    )


def test_a_recorded_limit_that_would_have_served_the_request_was_not_it() -> None:
    found = limit(device_free=50 * GIB, request=2 * GIB, context={"total": 80 * GIB, "free": 50 * GIB, "cap": None})
    assert found.source == "bracket"


def test_every_refusal_and_all_that_was_ever_allowed_narrow_the_bracket() -> None:
    snapshot = loaded(
        [segment(A, [block(4 * GIB)]), segment(B, [block(GIB)])],
        [
            [
                entry("segment_alloc", A, 4 * GIB),
                entry("oom", 50 * GIB, 3 * GIB),
                entry("oom", 50 * GIB, 2 * GIB),
                entry("segment_alloc", B, GIB),
                entry("alloc", A, 4 * GIB),
                entry("alloc", B, GIB),
            ]
        ],
    )
    history = device_history(snapshot.devices[0], recorded_config(snapshot))
    assert limit_at(snapshot, history, 3 * GIB, 50 * GIB, 1) == ProcessLimit(5 * GIB, 6 * GIB - 1, "bracket")


def test_where_the_cap_was_changed_on_the_way_only_what_came_before_counts() -> None:
    snapshot = loaded(
        [segment(A, [block(4 * GIB)]), segment(B, [block(9 * GIB)])],
        [
            [
                entry("segment_alloc", A, 4 * GIB),
                entry("oom", 50 * GIB, 3 * GIB),
                entry("segment_alloc", B, 9 * GIB),
                entry("alloc", A, 4 * GIB),
                entry("alloc", B, 9 * GIB),
            ]
        ],
    )
    history = device_history(snapshot.devices[0], recorded_config(snapshot))
    assert limit_at(snapshot, history, 3 * GIB, 50 * GIB, 1) == ProcessLimit(4 * GIB, 7 * GIB - 1, "bracket")


@pytest.mark.parametrize("context", [None, 5, {"devices": None}, {"devices": [3, {"device": 1, "total": 5}]}, []])
def test_a_malformed_context_says_nothing(context: Any) -> None:
    snapshot = loaded([segment(A, [block(GIB)])], oomscope=context)
    history = device_history(snapshot.devices[0], recorded_config(snapshot))
    assert snapshot.recorded.device(0) == RecordedDevice(0)
    assert outside_bytes(snapshot, history) is None


def test_outside_is_what_is_neither_free_nor_ours() -> None:
    snapshot = loaded(
        [segment(A, [block(4 * GIB)])], oomscope={"devices": [{"device": 0, "total": 24 * GIB, "free": 15 * GIB}]}
    )
    history = device_history(snapshot.devices[0], recorded_config(snapshot))
    assert outside_bytes(snapshot, history) == 5 * GIB
    assert outside_bytes(snapshot, history, device_free=2 * GIB, reserved=3 * GIB) == 19 * GIB
