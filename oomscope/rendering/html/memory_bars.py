"""Memory as bars of parts: where the card's memory is, and what is allocated by category and by phase."""

from __future__ import annotations

from collections.abc import Sequence

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.records import CATEGORIES, PHASES
from oomscope.frozen import frozen
from oomscope.rendering.html.percent import percent, share
from oomscope.wording.labels import CATEGORY_LABELS, PHASE_LABELS, label

CAPPED = 0.7
"""A limit below this share of the card is drawn as the end of the bar."""


@frozen
class Part:
    """A part of a bar: `key` names its colour."""

    key: str
    label: str
    bytes: int
    x: str
    width: str
    share: str


@frozen
class MemoryBar:
    """The card's memory, or what this process may have of it, in parts.

    Attributes:
        parts: they sum to the card, or to the limit where that is far below the card.
        reserved: bytes that PyTorch holds.
        limit: what may be reserved, None: not known.
        asked: the size of the failed request.
        beyond: bytes that the device has free, where the bar ends before them: at the limit, or at what is reserved.
    """

    parts: tuple[Part, ...]
    reserved: int
    limit: int | None
    asked: int | None
    beyond: int | None


def memory_bar(device: DeviceFindings) -> MemoryBar:
    """Outside + allocated + pending + inactive + what the device has free."""
    oom, at = device.oom, device.at
    if oom is not None and oom.entry == device.at_entry:
        at = oom.totals
    known_free = oom.device_free if oom is not None and oom.entry == device.at_entry else None
    outside = device.outside
    free = known_free
    if free is None and device.device_total is not None and outside is not None:
        free = max(0, device.device_total - outside - at.reserved)
    values = [
        ("allocated", "allocated", at.allocated),
        ("pending", "pending free", at.active - at.allocated),
        ("inactive", "free inside PyTorch’s segments", at.reserved - at.active),
        ("outside", "outside this allocator", outside or 0),
        ("devicefree", "free on the device", free or 0),
    ]
    total = sum(max(0, count) for _, _, count in values)
    limit = oom.limit.low if oom is not None and oom.entry == device.at_entry and oom.limit.low > 0 else None
    beyond = None
    if limit is not None and limit < CAPPED * total:
        # A cap far below the card: what the process may have is the picture, the rest of the card a number beside it.
        beyond = free
        total = max(limit, at.reserved)
        values = [*values[:3], ("devicefree", "left below the limit", total - at.reserved)]
    elif limit is None and at.reserved < CAPPED * total:
        # Nothing failed and the card is mostly free or others': what this process holds is the picture.
        beyond, total, values = free, at.reserved, values[:3]
    asked = oom.requested if oom is not None and oom.entry == device.at_entry else None
    return MemoryBar(parts(values, total), at.reserved, limit, asked, beyond)


def category_parts(device: DeviceFindings) -> tuple[Part, ...]:
    """Allocated bytes by category, in the fixed order."""
    found = device.categories
    return parts([(name, label(name, CATEGORY_LABELS), found.get(name, 0)) for name in CATEGORIES], sum(found.values()))


def phase_parts(device: DeviceFindings) -> tuple[Part, ...]:
    """Allocated bytes by the phase that allocated them."""
    found = device.phases
    return parts([(name, label(name, PHASE_LABELS), found.get(name, 0)) for name in PHASES], sum(found.values()))


def parts(values: Sequence[tuple[str, str, int]], total: int) -> tuple[Part, ...]:
    """Parts laid side by side; those without bytes are left out."""
    result, start = [], 0
    for key, name, count in values:
        if count > 0 and total > 0:
            result.append(Part(key, name, count, percent(start, total), percent(count, total), share(count, total)))
            start += count
    return tuple(result)
