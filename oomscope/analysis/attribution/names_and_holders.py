"""Names of tensors and who holds them, where the recording brought them."""

from __future__ import annotations

from oomscope.analysis.attribution.held_blocks import BELONGINGS, holders_in_blocks
from oomscope.analysis.attribution.records import Holder, NamedTensor
from oomscope.analysis.records import CATEGORIES
from oomscope.analysis.study import DeviceStudy
from oomscope.model import Snapshot


def named_tensors(snapshot: Snapshot, device: int) -> tuple[NamedTensor, ...]:
    """The tensors of `device` that the recording knows, largest first."""
    named = [
        NamedTensor(
            name=tensor.name or "",
            category=tensor.category if tensor.category in CATEGORIES else "unknown",
            bytes=tensor.bytes,
            dtype=tensor.dtype,
            shape=tensor.shape,
            holders=tensor.holders,
        )
        for tensor in snapshot.recorded.tensors_on(device)
        if tensor.bytes is not None
    ]
    return tuple(sorted(named, key=lambda name: -name.bytes))


def holders(study: DeviceStudy) -> tuple[Holder, ...]:
    """Who keeps the memory of a device alive, by the bytes that each alone retains; most first."""
    found = [
        Holder(
            holder=one.holder or "",
            kind=one.kind or "",
            bytes=one.bytes or 0,
            retained=one.retained or 0,
            tensors=one.tensors or 0,
        )
        for one in holders_in_blocks(study)
    ]
    return tuple(sorted(found, key=lambda one: -one.retained))


def suspect(found: tuple[Holder, ...]) -> str | None:
    """The holder that retains most, leaving out what belongs to every model; None where none is known."""
    return next((one.holder for one in found if one.kind not in BELONGINGS and one.holder), None)
