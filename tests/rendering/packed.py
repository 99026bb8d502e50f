"""Reads what a page packs for its script, in another way than the script does."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One instant: its entry, microseconds, and bytes; `live` by the number of the band."""

    entry: int
    time_us: int
    allocated: int
    pending: int
    reserved: int
    live: tuple[int, ...]


def unpacked(spec: dict[str, Any]) -> list[Row]:
    """All instants of a timeline."""
    numbers = _numbers(base64.b64decode(spec["packed"]))
    live, rows = [0] * len(spec["kinds"]), []
    entry, time, pending, reserved = 0, spec["start"], 0, 0
    for _ in range(spec["count"]):
        entry += next(numbers)
        time += next(numbers) if spec["timed"] else 0
        for _ in range(next(numbers)):
            live[next(numbers)] += _signed(next(numbers)) * spec["unit"]
        pending += _signed(next(numbers)) * spec["unit"]
        reserved += _signed(next(numbers)) * spec["unit"]
        rows.append(Row(entry, time, sum(live), pending, reserved, tuple(live)))
    assert next(numbers, None) is None
    return rows


def _numbers(content: bytes) -> Iterator[int]:
    value, shift = 0, 0
    for byte in content:
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            yield value
            value, shift = 0, 0


def _signed(value: int) -> int:
    return value >> 1 if value % 2 == 0 else -(value >> 1) - 1
