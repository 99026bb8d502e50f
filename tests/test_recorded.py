"""The dump's own key: typed, checked once, and never a reason to fail, whatever a stranger wrote into it."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from typing import Any

import pytest

from oomscope.model import Frame, RecordedContext
from oomscope.model.recorded_parsing import parse_context
from tests.builders import loaded
from tests.rendering.hostile import hostile_snapshot

FRAME = {"filename": "train.py", "line": 7, "name": "serve"}
WHOLE: dict[str, Any] = {
    "schema_version": 1,
    "torch": "2.11.0",
    "exception": {"type": "OutOfMemoryError", "message": "CUDA out of memory."},
    "request": {"device": 0, "alloc_size": 5, "limit_or_total": 9, "device_free": 4},
    "devices": [
        {
            "device": 1,
            "name": "NVIDIA H200",
            "total": 100,
            "free": 5,
            "cap": None,
            "memory_stats": {"num_ooms": 1},
            "processes": [{"pid": 8, "bytes": 3, "name": "other", "this": None}],
        }
    ],
    "allocator": {"backend": "native", "conf": None},
    "process": {"host": "h", "pid": 3, "argv": ["a", "b"], "rank": 0, "environment": {"A": "1"}},
    "stacks": {"failing": [FRAME], "main": [], "threads": [{"name": "T", "frames": [FRAME], "failing": True}]},
    "autograd": {"node": "MmBackward0", "gradients_of": ["model.weight"], "forward": [FRAME]},
    "recording": {"started_us": 4, "max_entries": 1000, "stacks": "python", "joined": False, "ooms": 2},
    "steps": [{"name": "0", "begin_us": 5, "end_us": 6, "peak_allocated": [None, 7], "shape": {"batch": 8}}],
    "marks": [{"name": "eval", "time_us": 6}],
    "metadata": {"who": "me"},
    "tensors": [{"device": 1, "address": 4096, "bytes": 512, "dtype": "float32", "shape": [1, 128], "holders": ["x"]}],
    "holders": [
        {"holder": "train: x", "kind": "list", "device": 1, "retained": 512, "path": ["x[0]"], "length": 3, "at": FRAME}
    ],
    "walk": {"seconds": 0.5, "complete": True, "notes": ["n"], "left_out": {"tensors": 3, "bytes": 30}},
    "sources": [{"filename": "train.py", "line": 7, "first": 6, "text": ["a", "b", "c"]}],
    "failures": ["nvml: no"],
}


def test_every_part_is_a_record() -> None:
    found = parse_context(WHOLE)
    place = Frame("train.py", 7, "serve")
    assert (found.is_there, found.malformed) == (True, 0)
    assert found.exception_type == "OutOfMemoryError"
    assert found.request.device_free == 4
    assert found.device(1).processes[0].this is None
    assert found.device(1).memory_stats == {"num_ooms": 1}
    assert found.process.argv == ("a", "b")
    assert found.stacks.failing == (place,)
    assert (found.stacks.threads[0].failing, found.stacks.threads[0].main) == (True, False)
    assert found.autograd.forward == (place,)
    assert (found.recording.max_entries, found.recording.joined) == (1000, False)
    assert found.steps[0].peak_allocated == (None, 7)
    assert found.marks[0].time_us == 6
    assert found.tensors_on(1)[0].shape == (1, 128)
    assert (found.holders_on(1)[0].at, found.holders_on(1)[0].length) == (place, 3)
    assert (found.walk.left_out_bytes, found.walk.notes) == (30, ("n",))
    assert found.sources[0].first == 6
    assert found.failures == ("nvml: no",)


def test_what_was_not_recorded_is_an_empty_record() -> None:
    snapshot = loaded()
    assert snapshot.recorded == RecordedContext()
    assert not snapshot.recorded.is_there
    assert (snapshot.recorded.device(3).total, snapshot.recorded.tensors_on(0)) == (None, ())


def test_a_snapshot_with_another_context_has_another_record() -> None:
    snapshot = hostile_snapshot()
    assert snapshot.recorded is snapshot.recorded
    assert snapshot.recorded.torch == "2.11.0"
    assert replace(snapshot, context={"torch": "2.5.0"}).recorded.torch == "2.5.0"


@pytest.mark.parametrize(("value", "known"), [(0, 0), ((1 << 63) - 1, (1 << 63) - 1), (1 << 63, None), (-1, None)])
def test_a_number_fits_in_a_column_and_is_not_negative(value: int, known: int | None) -> None:
    found = parse_context({"devices": [{"device": 0, "total": value}]})
    assert found.device(0).total == known
    assert found.malformed == (known is None)


@pytest.mark.parametrize("value", [True, "5", 1.5, [5], {"a": 5}])
def test_what_is_no_number_is_unknown_and_counted(value: Any) -> None:
    found = parse_context({"devices": [{"device": 0, "total": value}]})
    assert (found.device(0).total, found.malformed) == (None, 1)


def test_an_unknown_value_is_not_malformed() -> None:
    assert parse_context({"devices": [{"device": 0, "total": None, "processes": None}], "request": None}).malformed == 0


def test_a_shape_is_whole_or_unknown() -> None:
    rows = [{"device": 0, "shape": shape} for shape in ([2, 3], [], [2, "3"], [2, -3], "23", None)]
    found = parse_context({"tensors": rows}).tensors
    assert [tensor.shape for tensor in found] == [(2, 3), (), None, None, None, None]


def test_a_step_without_a_beginning_and_a_mark_without_a_name_are_left_out() -> None:
    found = parse_context({"steps": [{"begin_us": 3}, {"name": "x"}, 7], "marks": [{"time_us": 3}]})
    assert [(step.name, step.begin_us) for step in found.steps] == [("0", 3)]
    assert (found.marks, found.malformed) == ((), 3)


def test_lines_of_source_hold_the_line_they_are_about() -> None:
    def text(**changes: Any) -> Any:
        source = {"filename": "a.py", "line": 7, "text": ["six", "seven", "eight"], **changes}
        return parse_context({"sources": [source]}).sources

    assert text()[0].first == 6
    assert text(line=1)[0].first == 1
    assert text(first=5)[0].text[2] == "eight"
    assert text(first=4) == text(first=8) == text(text=[]) == text(line=None) == ()


def test_nothing_that_a_stranger_writes_raises() -> None:
    chance = random.Random(7)
    odd: list[Any] = [None, True, -1, 1 << 70, 1.5, float("nan"), float("inf"), "text", [], [None], {}, {"a": 1}, [[1]]]

    def damaged(value: Any) -> Any:
        if chance.random() < 0.15:
            return chance.choice(odd)
        if isinstance(value, dict):
            return {key: damaged(item) for key, item in value.items()}
        return [damaged(item) for item in value] if isinstance(value, list) else value

    counted = 0
    for _ in range(500):
        found = parse_context(damaged(WHOLE))
        assert all(hasattr(found, one.name) for one in fields(found))
        counted += found.malformed > 0
    assert counted > 300
    for odd_context in odd:
        assert parse_context(odd_context).malformed == 0
