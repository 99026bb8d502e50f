"""Reads what a page packs for its script, in another way than the script does."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
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
    numbers, count, unit = _numbers(zlib.decompress(base64.b64decode(spec["packed"]))), spec["count"], spec["unit"]
    entry = list(accumulate(next(numbers) for _ in range(count)))
    time = [
        spec["start"] + spec["tick"] * at
        for at in accumulate(next(numbers) for _ in range(count if spec["timed"] else 0))
    ]
    changes = [next(numbers) for _ in range(count)]
    bands = [next(numbers) for _ in range(sum(changes))]
    bytes_ = [_signed(next(numbers)) * unit for _ in bands]
    pending, reserved = (list(accumulate(_signed(next(numbers)) * unit for _ in range(count))) for _ in range(2))
    assert next(numbers, None) is None
    live, rows, changed = [0] * len(spec["kinds"]), [], iter(zip(bands, bytes_, strict=True))
    for row in range(count):
        for _ in range(changes[row]):
            band, change = next(changed)
            live[band] += change
        rows.append(Row(entry[row], time[row] if time else 0, sum(live), pending[row], reserved[row], tuple(live)))
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
