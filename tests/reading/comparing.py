"""Two snapshots compared column by column."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from oomscope.model import Snapshot, StackTable, Trace


def assert_same(one: Any, other: Any, place: str = "snapshot") -> None:
    """Fail at the first difference."""
    assert type(one) is type(other), place
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, place
        np.testing.assert_array_equal(one, other, err_msg=place)
    elif isinstance(one, StackTable):
        assert list(one) == list(other), place
    elif isinstance(one, Trace) and isinstance(other, Trace):
        # Texts are numbered as they come, batch by batch: what the numbers stand for counts.
        for name in _TEXTS:
            assert _texts(one, name) == _texts(other, name), f"{place}.{name}"
        for field in dataclasses.fields(one):
            if field.name not in (*_TEXTS, "texts"):
                assert_same(getattr(one, field.name), getattr(other, field.name), f"{place}.{field.name}")
    elif dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name), f"{place}.{field.name}")
    elif isinstance(one, tuple):
        assert len(one) == len(other), place
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            assert_same(left, right, f"{place}[{number}]")
    else:
        assert one == other, place


_TEXTS = ("compile_context", "user_metadata", "internal_metadata")


def _texts(trace: Trace, name: str) -> list[str | None] | None:
    numbers = getattr(trace, name)
    return None if numbers is None else [None if one < 0 else trace.texts[one] for one in numbers.tolist()]


def rows(snapshot: Snapshot, device: int = 0) -> list[tuple[int, int, int, int, tuple[str, ...]]]:
    """The trace as (action, address, size, stream, names of the frames)."""
    trace = snapshot.device(device).trace
    columns = (trace.action, trace.address, trace.size, trace.stream, trace.stack)
    return [
        (action, address, size, stream, tuple(frame.name for frame in snapshot.stacks[stack]))
        for action, address, size, stream, stack in zip(*(column.tolist() for column in columns), strict=True)
    ]
