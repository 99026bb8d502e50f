"""Names of tensors and who holds them, where the recording brought them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oomscope.analysis.limits import number
from oomscope.analysis.records import CATEGORIES, NamedTensor
from oomscope.model import Snapshot


def named_tensors(snapshot: Snapshot, device: int) -> tuple[NamedTensor, ...]:
    """The named tensors of `device`, largest first. The context is a stranger's data: what is malformed is left out."""
    records = (snapshot.context or {}).get("tensors")
    if not isinstance(records, (list, tuple)):
        return ()
    named = [_named(record) for record in records if isinstance(record, Mapping) and record.get("device") == device]
    return tuple(sorted((name for name in named if name is not None), key=lambda name: -name.bytes))


def _named(record: Mapping[str, Any]) -> NamedTensor | None:
    size, name, category = number(record, "bytes"), record.get("name"), record.get("category")
    if size is None:
        return None
    shape, holders = record.get("shape"), record.get("holders")
    sides = shape if isinstance(shape, (list, tuple)) and all(isinstance(side, int) for side in shape) else None
    return NamedTensor(
        name=name if isinstance(name, str) else "",
        category=category if category in CATEGORIES else "unknown",
        bytes=size,
        dtype=str(record["dtype"]) if record.get("dtype") is not None else None,
        shape=None if sides is None else tuple(sides),
        holders=tuple(str(holder) for holder in holders) if isinstance(holders, (list, tuple)) else (),
    )
