"""Tables of what the program itself named, and of pinned host memory."""

from __future__ import annotations

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.memory.pinned_memory import PinnedMemory
from oomscope.rendering.common.tables import UNKNOWN, Table, percent_text
from oomscope.units import format_bytes, format_count
from oomscope.wording.clean import clean
from oomscope.wording.labels import HOLDER_LABELS, label
from oomscope.wording.paths import Shorten
from oomscope.wording.places import caller_text, holder_name, site_text
from oomscope.wording.said import KIND_LABELS, POOL_LABELS, pool_name

_LONGEST = 100
LEAST_PINNED = 2**20
"""Bytes of pinned host memory that are worth a table: `Tensor.item` pins a few by itself."""


def named(device: DeviceFindings, most: int) -> Table:
    """Live bytes under the names that the program gave; the most that was allocated while a range lasted."""
    uses = sorted(
        (use for use in device.named if use.bytes or use.rise), key=lambda use: (-use.bytes, -(use.rise or 0))
    )
    rows = tuple(
        (
            format_bytes(use.bytes),
            percent_text(use.bytes, device.at.allocated),
            format_count(use.blocks),
            "" if use.peak_allocated is None else format_bytes(use.peak_allocated),
            "" if use.rise is None else format_bytes(use.rise),
            label(use.kind, KIND_LABELS),
            clean(use.name, _LONGEST),
        )
        for use in uses[:most]
    )
    headings = ("live", "share", "blocks", "peak", "rise", "kind", "name")
    return Table("As the program named it", headings, rows, frozenset({0, 1, 2, 3, 4}), len(uses) - len(rows))


def private_pools(device: DeviceFindings, most: int) -> Table:
    """What each private pool holds."""
    rows = tuple(
        (
            format_bytes(one.reserved),
            format_bytes(one.active),
            format_bytes(one.inactive),
            format_bytes(one.largest_inactive),
            label(one.kind, POOL_LABELS),
            pool_name(one),
        )
        for one in device.pools[:most]
    )
    headings = ("reserved", "active", "free", "largest hole", "made by", "pool")
    return Table("Private pools", headings, rows, frozenset({0, 1, 2, 3}), len(device.pools) - len(rows))


def pinned(findings: Findings) -> Table:
    """Pinned host memory in sum."""
    found = findings.pinned
    if found is None or not _is_notable(found):
        return Table("Pinned host memory", (), ())
    rows = [
        ("Pinned", _bytes(found.held), "by torch, at the end; in use or cached"),
        ("    in use", _bytes(found.in_use), "by the program, or waiting for a copy to end"),
    ]
    if found.held is not None and found.in_use is not None:
        rows.append(("    cached", format_bytes(found.held - found.in_use), "kept by torch for the next request"))
    rows.append(("Most pinned", _bytes(found.most_held), "while it was recorded" if found.peak else "as torch counted"))
    return Table("Pinned host memory", ("", "bytes", ""), tuple(rows), frozenset({1}))


def _is_notable(found: PinnedMemory) -> bool:
    """Whether there is, or was, enough pinned memory for a table of it."""
    return max(found.held or 0, found.most_held or 0) >= LEAST_PINNED


def pinned_sites(findings: Findings, shorten: Shorten, most: int) -> Table:
    """Who holds pinned memory at the instant of the report."""
    found = findings.pinned
    sites = found.sites if found is not None and _is_notable(found) else ()
    rows = []
    for site in sites[:most]:
        caller = caller_text(site, shorten)
        text = site_text(site, shorten) + (f" ← {caller}" if caller else "")
        rows.append((format_bytes(site.bytes), format_count(site.blocks), text))
    headings = ("bytes", "blocks", "site ← caller")
    return Table("Who holds pinned memory", headings, tuple(rows), frozenset({0, 1}), len(sites) - len(rows))


def counted(findings: Findings) -> Table:
    """What torch counted on devices of which there is no history."""
    there = {device.device for device in findings.devices}
    recorded = findings.snapshot.recorded
    rows = tuple(
        (
            f"{recorded.device_type or 'device'}:{one.index}",
            _bytes(one.allocated),
            _bytes(one.reserved),
            _bytes(one.free),
            _bytes(one.total),
        )
        for one in recorded.devices
        if one.index not in there
    )
    headings = ("device", "allocated", "reserved", "free", "total")
    return Table("Memory, as torch counted it", headings, rows, frozenset({1, 2, 3, 4}))


def counted_holders(findings: Findings, most: int) -> Table:
    """Who keeps tensors of such devices alive; bytes are those of tensors, for no block is known."""
    there = {device.device for device in findings.devices}
    found = [one for one in findings.snapshot.recorded.holders if one.device not in there and one.retained]
    found.sort(key=lambda one: -(one.retained or 0))
    rows = tuple(
        (
            _bytes(one.retained),
            label(one.kind or "unknown", HOLDER_LABELS),
            clean(holder_name(one.holder or ""), _LONGEST),
        )
        for one in found[:most]
    )
    return Table("Holders", ("retains", "as", "held by"), rows, frozenset({0}), len(found) - len(rows))


def _bytes(count: int | None) -> str:
    return UNKNOWN if count is None else format_bytes(count)
