"""Two snapshots compared column by column."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from oomscope.model import Snapshot, StackTable


def assert_same(one: Any, other: Any, place: str = "snapshot") -> None:
    """Fail at the first difference."""
    assert type(one) is type(other), place
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, place
        np.testing.assert_array_equal(one, other, err_msg=place)
    elif isinstance(one, StackTable):
        assert list(one) == list(other), place
    elif dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name), f"{place}.{field.name}")
    elif isinstance(one, tuple):
        assert len(one) == len(other), place
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            assert_same(left, right, f"{place}[{number}]")
    else:
        assert one == other, place


def rows(snapshot: Snapshot, device: int = 0) -> list[tuple[int, int, int, int, tuple[str, ...]]]:
    """The trace as (action, address, size, stream, names of the frames)."""
    trace = snapshot.device(device).trace
    columns = (trace.action, trace.address, trace.size, trace.stream, trace.stack)
    return [
        (action, address, size, stream, tuple(frame.name for frame in snapshot.stacks[stack]))
        for action, address, size, stream, stack in zip(*(column.tolist() for column in columns), strict=True)
    ]
