"""Real captures against torch's own statistics, and against themselves."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from oomscope.analysis.recording_quality import history_kind
from oomscope.history import BEFORE, DeviceHistory, device_history, recorded_config
from oomscope.history.layouts import layout_at
from tests.history.cutting import cut, slack_curve
from tests.history.same import assert_same_layout, assert_tiled
from tests.shared import captures, needs_shared, public, shared_snapshot, truth

pytestmark = needs_shared

LARGE = "whatif.oom_varlen_training.default"
FULL = [name for name in captures() if name not in ("late_start", "ring_wrapped", "state_only", "no_history")]
SMALL = [name for name in FULL if name != LARGE]


@cache
def histories(name: str) -> tuple[DeviceHistory, ...]:
    snapshot = shared_snapshot(name)
    return tuple(device_history(device, recorded_config(snapshot)) for device in snapshot.devices)


def history(name: str) -> DeviceHistory:
    """Of the device that the capture is about: the one that was used."""
    return max(histories(name), key=lambda one: one.layout.reserved)


@pytest.mark.parametrize("name", captures())
def test_what_is_in_use_at_the_end_is_what_torch_counted(name: str) -> None:
    stats, one = truth(name)["stats"], history(name)
    end = one.curves.at(one.entries - 1)
    assert end == tuple(stats[f"{kind}_bytes.all.current"] for kind in ("allocated", "active", "reserved"))
    blocks = one.layout.blocks
    assert int(blocks.requested_size[blocks.is_active].sum()) == stats["requested_bytes.all.current"]


@pytest.mark.parametrize("name", FULL)
def test_peaks_are_torchs_own_where_the_recording_is_whole(name: str) -> None:
    stats, one = truth(name)["stats"], history(name)
    assert history_kind(shared_snapshot(name), histories(name)) == "full"
    assert not one.slack.any()
    for kind in ("allocated", "active", "reserved"):
        assert int(getattr(one.curves, kind).max()) == stats[f"{kind}_bytes.all.peak"], kind


@pytest.mark.parametrize("name", captures())
def test_nothing_is_unaccounted(name: str) -> None:
    for one in histories(name):
        assert (one.missing_bytes, one.overlapping, one.strangers) == (0, 0, 0)
        curves = one.curves
        assert (curves.allocated >= 0).all()
        assert (curves.allocated <= curves.active).all()
        assert (curves.active <= curves.reserved).all()


@pytest.mark.parametrize("name", captures())
def test_the_last_layout_rebuilt_is_the_one_that_torch_wrote(name: str) -> None:
    for one in histories(name):
        rebuilt = layout_at(one.entries - 1, one.lifetimes, one.size, one.spans)
        assert_same_layout(rebuilt, one.layout)


@pytest.mark.parametrize("name", captures())
def test_curves_lifetimes_and_layouts_agree_at_any_entry(name: str) -> None:
    random = np.random.default_rng(1)
    for one in histories(name):
        entries = [BEFORE, *random.integers(BEFORE, one.entries, 12).tolist(), one.entries - 1]
        for entry in entries:
            allocated, active, reserved = one.curves.at(entry)
            assert int(one.size[one.lifetimes.allocated_at(entry)].sum()) == allocated
            assert int(one.size[one.lifetimes.active_at(entry)].sum()) == active
            assert int(one.spans.size[one.spans.there_at(entry)].sum()) == reserved
            layout = one.layout_at(entry)
            assert (layout.allocated, layout.active, layout.reserved) == (allocated, active, reserved)
            assert_tiled(layout)


@pytest.mark.parametrize("percent", [10, 35, 50, 65, 80, 95])
@pytest.mark.parametrize("name", SMALL)
def test_a_ring_that_lost_its_beginning_shows_the_rest_as_it_was(name: str, percent: int) -> None:
    snapshot, whole = shared_snapshot(name), history(name)
    # Odd cuts, so that some fall between the request and the completion of a free.
    for kept_from in {whole.entries * percent // 100 + shift for shift in range(4)}:
        one = device_history(cut(snapshot.device(whole.index), kept_from), whole.config)
        np.testing.assert_array_equal(one.curves.reserved, whole.curves.reserved[kept_from:])
        for kind, ended in (("allocated", one.lifetimes.freed), ("active", one.lifetimes.gone)):
            missing = getattr(whole.curves, kind)[kept_from:] - getattr(one.curves, kind)
            assert (missing >= 0).all(), kind
            assert (missing <= slack_curve(one, ended)).all(), kind
        assert (one.missing_bytes, one.overlapping, one.strangers) == (0, 0, 0)


@pytest.mark.parametrize("name", public())
def test_other_peoples_files_give_a_history_that_ends_at_their_segments(name: str) -> None:
    for one in histories(name):
        layout = one.layout
        assert one.curves.at(one.entries - 1) == (layout.allocated, layout.active, layout.reserved)
