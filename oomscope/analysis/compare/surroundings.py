"""What differs beside the blocks: settings, versions, names, holders, what grows, and how memory lies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from oomscope.analysis.attribution.records import Holder, NamedTensor
from oomscope.analysis.compare.matching import LineMatches
from oomscope.analysis.compare.records import GrowthChange, NamedChange, ValueChange
from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.passes.records import Growth
from oomscope.analysis.records import Location
from oomscope.model import Snapshot

_FREE = ("inactive", "releasable", "walled", "stranded", "largest_inactive", "rounding", "unsplit", "holes")


def change_settings(before: Snapshot, after: Snapshot) -> tuple[ValueChange, ...]:
    """The allocator's settings that differ, those of groups by dotted names."""
    return _differing(dict(_flat(before.settings or {})), dict(_flat(after.settings or {})))


def change_versions(before: Snapshot, after: Snapshot) -> tuple[ValueChange, ...]:
    """The versions of software and the cards that differ."""
    return _differing(_versions(before), _versions(after))


def _versions(snapshot: Snapshot) -> dict[str, str | None]:
    recorded = snapshot.recorded
    card = next((device.name for device in recorded.devices if device.name), None)
    return {
        "torch": recorded.torch,
        "snapshot layout": snapshot.schema,
        "cuda": recorded.cuda,
        "driver": recorded.driver,
        "python": recorded.python,
        "platform": recorded.platform,
        "card": card,
    }


def _flat(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value)


def _differing(before: Mapping[str, str | None], after: Mapping[str, str | None]) -> tuple[ValueChange, ...]:
    names = [*before, *(name for name in after if name not in before)]
    rows = (ValueChange(name, before.get(name), after.get(name)) for name in names)
    return tuple(row for row in rows if row.before != row.after)


def change_fragmentation(before: DeviceFindings, after: DeviceFindings) -> dict[str, int | None]:
    """The change of free bytes by what keeps them, and of holes; None where one side does not know."""
    return {name: _less(getattr(after.fragmentation, name), getattr(before.fragmentation, name)) for name in _FREE}


def change_peak(before: DeviceFindings, after: DeviceFindings) -> dict[str, int] | None:
    """The change of the most that was allocated and reserved; None where one has no timeline."""
    if before.peak is None or after.peak is None:
        return None
    return {
        "allocated": after.peak.allocated - before.peak.allocated,
        "reserved": after.peak.reserved - before.peak.reserved,
    }


def _less(after: int | None, before: int | None) -> int | None:
    return None if after is None or before is None else after - before


def change_names(before: DeviceFindings, after: DeviceFindings) -> tuple[NamedChange, ...] | None:
    """The change of each named tensor; None where not both recordings name tensors."""

    def of(tensor: NamedTensor) -> tuple[str, str, int]:
        return tensor.name, tensor.category, tensor.bytes

    return _named(before.names, after.names, of)


def change_holders(before: DeviceFindings, after: DeviceFindings) -> tuple[NamedChange, ...] | None:
    """The change of what each holder alone keeps; None where not both recordings know holders."""

    def of(holder: Holder) -> tuple[str, str, int]:
        return holder.holder, holder.kind, holder.retained

    return _named(before.holders, after.holders, of)


def _named(
    before: Iterable[NamedTensor] | Iterable[Holder],
    after: Iterable[NamedTensor] | Iterable[Holder],
    of: Callable[..., tuple[str, str, int]],
) -> tuple[NamedChange, ...] | None:
    """One row a name, with the kind that it has in AFTER; most changed first."""
    sums: list[dict[str, int]] = [{}, {}]
    kinds: dict[str, str] = {}
    for side, items in zip(sums, (before, after), strict=True):
        for item in items:
            name, kind, count = of(item)
            side[name] = side.get(name, 0) + count
            kinds[name] = kind if name else ""
    if not all(sums):
        return None
    rows = [NamedChange(name, kind, sums[0].get(name, 0), sums[1].get(name, 0)) for name, kind in kinds.items()]
    return tuple(sorted(rows, key=lambda row: (-abs(row.change), row.name)))


def change_growth(before: DeviceFindings, after: DeviceFindings, matches: LineMatches) -> tuple[GrowthChange, ...]:
    """What each line leaves behind every pass, for those that do so in either recording."""

    def key(growth: Growth, there: Callable[[Location | None], object]) -> tuple[object, object, str | None]:
        return there(growth.site), there(growth.caller), growth.label

    ours = {key(one, lambda where: matches.after_of.get(where, where) if where else None): one for one in before.growth}
    theirs = {key(one, lambda where: where): one for one in after.growth}
    rows = []
    for place in dict.fromkeys([*theirs, *ours]):
        was, now = ours.get(place), theirs.get(place)
        here = now or was
        assert here is not None
        rates = [None if one is None else one.bytes_per_step for one in (was, now)]
        rows.append(GrowthChange(here.site, here.caller, here.label, *rates))
    return tuple(sorted(rows, key=lambda row: -abs((row.after or 0) - (row.before or 0))))
