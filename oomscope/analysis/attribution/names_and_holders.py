"""Names of tensors and who holds them, where the recording brought them."""

from __future__ import annotations

from collections.abc import Sequence

from oomscope.analysis.attribution.held_blocks import BELONGINGS, holders_in_blocks, is_within, kept_within
from oomscope.analysis.attribution.records import Holder, NamedTensor
from oomscope.analysis.records import CATEGORIES
from oomscope.analysis.study import DeviceStudy
from oomscope.model import IntArray, Snapshot


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


def holders(study: DeviceStudy, unread: Sequence[tuple[Holder, IntArray]] = ()) -> tuple[Holder, ...]:
    """Who keeps the memory of a device alive, by the bytes that each alone retains; most first.

    Args:
        study: of the device.
        unread: variables that are not read again, with the lifetimes that each keeps: those count for the variable, and
            not for an object within it.
    """
    found = [one for one, _ in unread]
    for one in holders_in_blocks(study):
        name = one.holder or ""
        outer = next((pair for pair in unread if _is_of(name, pair[0].holder)), None)
        retained = one.retained or 0
        if outer is not None:
            retained = 0 if name == outer[0].holder else max(retained - kept_within(study, one, outer[1]), 0)
        if retained or outer is None:
            found.append(Holder(name, one.kind or "", one.bytes or 0, retained, one.tensors or 0))
    return tuple(sorted(found, key=lambda one: -one.retained))


def _is_of(name: str, variable: str) -> bool:
    """Whether an object is reached through a variable; a model is named without the call that it is in."""
    return is_within(name, variable) or is_within(name, variable.rpartition(": ")[2])


def suspect(found: tuple[Holder, ...]) -> str | None:
    """The holder that retains most, leaving out what belongs to every model; None where none is known."""
    return next((one.holder for one in found if one.kind not in BELONGINGS and one.holder), None)
