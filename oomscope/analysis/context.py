"""What a recording by oomscope wrote about a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oomscope.model import Snapshot


def device_context(snapshot: Snapshot, device: int) -> Mapping[str, Any]:
    """What the recording by oomscope wrote about `device`; empty where there is nothing."""
    for record in _list((snapshot.context or {}).get("devices")):
        if isinstance(record, Mapping) and record.get("device") == device:
            return record
    return {}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def number(record: Mapping[str, Any], key: str) -> int | None:
    """The integer at `key` of a foreign record, None for anything else."""
    value = record.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
