"""Names of tensors and who holds them, where the recording brought them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oomscope.analysis.context import number
from oomscope.analysis.records import CATEGORIES, Holder, NamedTensor
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


BELONGINGS = frozenset({"parameter", "buffer", "gradient", "optimizer_state"})
"""Kinds of holders that every training has; what they hold is seldom what went wrong."""


def holders(snapshot: Snapshot, device: int) -> tuple[Holder, ...]:
    """Who keeps the memory of `device` alive, by the bytes that each alone retains; most first."""
    records = (snapshot.context or {}).get("holders")
    if not isinstance(records, (list, tuple)):
        return ()
    found = [
        Holder(
            holder=str(record.get("holder", "")),
            kind=str(record.get("kind", "")),
            bytes=number(record, "bytes") or 0,
            retained=number(record, "retained") or 0,
            tensors=number(record, "tensors") or 0,
        )
        for record in records
        if isinstance(record, Mapping) and record.get("device") == device
    ]
    return tuple(sorted(found, key=lambda one: -one.retained))


def suspect(found: tuple[Holder, ...]) -> str | None:
    """The holder that retains most, leaving out what belongs to every model; None where none is known."""
    return next((one.holder for one in found if one.kind not in BELONGINGS and one.holder), None)
