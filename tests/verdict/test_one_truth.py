"""One object has one size on a page: in the headline, in the bar and in the table of holders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oomscope
from oomscope.analysis.attribution import held_blocks
from oomscope.analysis.attribution.held_blocks import holders_in_blocks, is_within
from oomscope.analysis.findings import DeviceFindings
from oomscope.model.recorded_holders import RecordedHolder
from oomscope.rendering.html.live_parts import live_parts
from tests.samples import bundled_path
from tests.verdict.known import PROGRAMS

NEARLY = 0.005
"""Of an object's bytes: what running code holds as well is told apart by age, one block at a time."""
KEEPERS = [
    *(bundled_path(name) for name in ("oom_fragmentation", "oom_kept_exception", "oom_leak_in_validation")),
    *(PROGRAMS / f"{name}.pickle.xz" for name in ("captions", "callbacks_late", "clip_features", "fit_batch", "folds")),
    *(PROGRAMS / f"{name}.pickle.xz" for name in ("log_lines", "page_cache", "ratings", "sweep", "warm_notebook")),
]


def analyzed(path: Path) -> DeviceFindings:
    return next(device for device in oomscope.analyze(oomscope.load(path)).devices if device.oom is not None)


def held_by_headline(device: DeviceFindings) -> dict[str, int]:
    """What the headline says that each object keeps."""
    assert device.oom is not None
    said = [note.values for note in device.oom.verdict.headline if "holder" in note.values]
    return {str(one["holder"]): int(one.get("retained", one.get("bytes", 0))) for one in said}


@pytest.mark.parametrize("path", KEEPERS, ids=lambda path: path.name.partition(".")[0])
def test_an_object_has_one_size(path):
    device = analyzed(path)
    said = held_by_headline(device)
    assert said, "this capture was chosen for its holder"
    table = {one.holder: one.retained for one in device.holders}
    parts = sorted((part.bytes for part in live_parts(device, lambda text: text).parts), reverse=True)
    for holder, bytes_ in said.items():
        assert table.get(holder, bytes_) == bytes_
        assert min(abs(part - bytes_) for part in parts) <= NEARLY * bytes_


def test_a_holder_is_counted_in_blocks_and_not_in_tensors():
    device = analyzed(bundled_path("oom_fragmentation"))
    (cache,) = [one for one in holders_in_blocks(device.study) if one.holder == "main: cache"]
    tensors = [one.bytes for one in device.study.snapshot.recorded.tensors_on(0) if "main: cache" in str(one.holders)]
    live = device.history.lifetimes.allocated_at(device.at_entry)
    assert sum(filter(None, tensors)) < (cache.retained or 0)
    assert cache.retained == device.history.size[np.flatnonzero(live)].sum() == device.at.allocated


@pytest.mark.parametrize(
    ("path", "holder", "within"),
    [
        ("fit: curve[3]", "fit: curve", True),
        ("fit: curves[3]", "fit: curve", False),
        ("a.py: problems[24].__traceback__ → attempt: x", "a.py: problems[*]", True),
        ("a.py: problems.x", "a.py: problems[*]", False),
        ("Fitter.callback → Callback.fitter → Fitter.model.0.weight", "reference cycle: Fitter.callback", True),
        ("reference cycle: Fitter.callback → Callback.fitter", "reference cycle: Fitter.callback", True),
        ("main: root.next.next … .next.next.value", "main: root.*.value", True),
        ("main: root.value", "main: root.*.value", True),
        ("main: root.next.values", "main: root.*.value", False),
    ],
)
def test_a_way_leads_through_an_object(path, holder, within):
    assert is_within(path, holder) is within


def test_parts_of_an_object_count_for_the_object_and_no_tensor_twice():
    rows = [
        RecordedHolder("main: seen", "dict", 0, bytes=10, retained=10, tensors=1),
        RecordedHolder("main: seen['a']", "list", 0, bytes=30, retained=20, tensors=2),
        RecordedHolder("main: seen", "parameter", 0, bytes=5, retained=5, tensors=1),
        RecordedHolder("main: seconds", "list", 0, bytes=7, retained=7, tensors=1),
    ]
    found = [(one.holder, one.kind, one.bytes, one.retained, joined) for one, joined in held_blocks._outermost(rows)]
    assert found == [
        ("main: seen", "dict", 40, 30, True),
        ("main: seen", "parameter", 5, 5, False),
        ("main: seconds", "list", 7, 7, False),
    ]


def test_what_an_error_keeps_that_a_console_showed_is_told_of_that_error():
    device = analyzed(PROGRAMS / "lab_console.pickle.xz")
    (shown,) = [one for one in device.holders if one.holder == "sys: last_value"]
    assert shown.kind == "exception"
    assert shown.retained > 3 << 30
    assert device.oom is not None
    assert device.oom.verdict.advice[0].slug == "forget_exception.shown"


def test_data_that_an_object_holds_is_no_buffer_of_a_model() -> None:
    device = analyzed(PROGRAMS / "two_tower_retrieval.pickle.xz")
    assert device.oom is not None
    held = {one.slug: one.bytes for one in device.oom.verdict.drivers}
    assert held["parameters"] == sum(
        one.bytes or 0 for one in device.study.snapshot.recorded.tensors if one.category == "parameter"
    )


@pytest.mark.parametrize(
    ("path", "within"),
    [
        ("main: a.b.c.d.e … .<partial>[0]['batch'][0]", True),  # one step further than the holder
        ("main: a.b.c.d.e … ['batch'].data.x.y", True),
        ("main: a.b.c.d.e … .<partial>[0]['target'][0]", False),
        ("main: a.b.c.d.e … .x.y.z.w", False),  # none of its steps is left
        ("main: a.b.c.d.f … .<partial>[0]['batch'][0]", False),
        ("main: a.b.c.d.e._step.<partial>", False),
    ],
)
def test_a_long_way_is_within_its_holder_though_another_part_was_left_out(path: str, within: bool) -> None:
    assert is_within(path, "main: a.b.c.d.e … ._step.<partial>[0]['batch']") is within


def test_a_long_way_is_within_a_holder_told_in_full() -> None:
    assert is_within("main: a.b.c.d … .f.items[0].x", "main: a.b.c.d.e.f")
    assert not is_within("main: a.b.c.d … .g.items[0].x", "main: a.b.c.d.e.f")
    assert not is_within("main: a.b.x.d … .f.items[0].x", "main: a.b.c.d.e.f")
