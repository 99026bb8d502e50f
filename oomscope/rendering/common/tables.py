"""The tables of the plain formats: the terminal and Markdown show the same rows."""

from __future__ import annotations

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.frozen import frozen
from oomscope.units import format_bytes, format_count, plural
from oomscope.wording.cause_labels import cause_label
from oomscope.wording.clean import clean
from oomscope.wording.growth import growth_text
from oomscope.wording.labels import (
    BILL_LABELS,
    CATEGORIES_SOURCE_LABELS,
    CATEGORY_LABELS,
    HOLDER_LABELS,
    LIMIT_LABELS,
    PHASE_LABELS,
    label,
)
from oomscope.wording.limits import limit_amount
from oomscope.wording.loops import pass_word
from oomscope.wording.page import bill_note
from oomscope.wording.paths import Shorten
from oomscope.wording.places import caller_or_site_text, caller_text, holder_name, site_text
from oomscope.wording.verdict_text import evidence_text

UNKNOWN = "unknown"
MOST_IN_A_LINE = 6
"""Numbers in one line; more of them nobody reads."""


@frozen
class Table:
    """Rows of text under headings.

    Attributes:
        title: what the table answers.
        headings: one a column.
        rows: one text a column; cells are clean, but not escaped for any format.
        right: columns that are aligned to the right.
        more: how many rows were left out.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int] = frozenset()
    more: int = 0


def memory(device: DeviceFindings) -> Table:
    """The memory equation at the instant: reserved = allocated + pending + inactive, and what is around it."""
    at, free = device.at, device.fragmentation
    rows = [
        ("Reserved by PyTorch", at.reserved, "= allocated + pending free + inactive"),
        ("  allocated", at.allocated, "in use by the program"),
        ("  pending free", at.active - at.allocated, "freed, but another stream may still use it"),
        ("  inactive", at.reserved - at.active, _holes(device)),
        ("    releasable", free.releasable, "whole segments or pages that could be returned to the device"),
        ("    walled", free.walled, "inside a live private pool"),
        ("    stranded", free.stranded, "beside live blocks that prevent its release"),
    ]
    rows = [row for row in rows if row[1] or (not row[0].startswith("    ") and "pending" not in row[0])]
    if device.outside is not None:
        rows.append(("Outside the allocator", device.outside, "other processes, CUDA itself, other libraries"))
    table = [(name, format_bytes(count), note) for name, count, note in rows]
    return Table("Memory", ("", "bytes", ""), tuple(table + _around(device)), frozenset({1}))


def evidence(device: DeviceFindings, most: int) -> Table:
    """The numbers that prove the verdict."""
    items = device.oom.verdict.evidence[:most] if device.oom else ()
    rows = tuple(
        ("" if item.bytes is None else format_bytes(item.bytes), clean(evidence_text(item), 300)) for item in items
    )
    return Table("The numbers", ("bytes", "what"), rows, frozenset({0}))


def evidence_line(device: DeviceFindings) -> str:
    """The same numbers in one line; empty where no request failed."""
    rows = evidence(device, MOST_IN_A_LINE).rows
    return "; ".join(f"{what[:1].lower()}{what[1:]} {count}".strip() for count, what in rows)


def _holes(device: DeviceFindings) -> str:
    free = device.fragmentation
    if not free.holes:
        return "nothing is free"
    return f"in {plural(free.holes, 'hole')}, the largest {format_bytes(free.largest_inactive)}"


def _around(device: DeviceFindings) -> list[tuple[str, str, str]]:
    rows = []
    oom = device.oom
    if oom is not None and oom.entry == device.at_entry:
        rows.append(("Requested", format_bytes(oom.requested), f"{format_bytes(oom.alloc_size)} from the device"))
        rows.append(("Limit", limit_amount(oom.limit), label(oom.limit.source, LIMIT_LABELS)))
        rows.append(("Free on the device", _bytes(oom.device_free), "at the OOM"))
    if device.device_total is not None:
        rows.append(("Device", format_bytes(device.device_total), "total"))
    return rows


def categories(device: DeviceFindings) -> Table:
    """What is live, by what it is."""
    shares = sorted(((count, name) for name, count in device.categories.items() if count), reverse=True)
    rows = tuple(
        (label(name, CATEGORY_LABELS), format_bytes(count), percent_text(count, device.at.allocated))
        for count, name in shares
    )
    source = label(device.categories_source, CATEGORIES_SOURCE_LABELS)
    return Table(f"By category ({source})", ("category", "bytes", "share"), rows, frozenset({1, 2}))


def phases(device: DeviceFindings) -> Table:
    """What is live, by the phase that allocated it."""
    shares = sorted(((count, name) for name, count in device.phases.items() if count), reverse=True)
    rows = tuple(
        (label(name, PHASE_LABELS), format_bytes(count), percent_text(count, device.at.allocated))
        for count, name in shares
    )
    return Table("By phase", ("phase", "bytes", "share"), rows, frozenset({1, 2}))


def sites(device: DeviceFindings, shorten: Shorten, most: int) -> Table:
    """Who holds the memory: sites, largest first, with their callers."""
    rows = []
    for site in device.sites[:most]:
        caller = caller_text(site, shorten)
        text = site_text(site, shorten) + (f" ← {caller}" if caller else "")
        category = label(site.category, CATEGORY_LABELS)
        share = percent_text(site.bytes, device.at.allocated)
        rows.append((format_bytes(site.bytes), share, format_count(site.blocks), category, text))
    headings = ("bytes", "share", "blocks", "mostly", "site ← caller")
    return Table("Who holds the memory", headings, tuple(rows), frozenset({0, 1, 2}), len(device.sites) - len(rows))


def names(device: DeviceFindings, most: int) -> Table:
    """The tensors that the recording could name, largest first, with what keeps them alive."""
    rows = [
        (
            format_bytes(tensor.bytes),
            label(tensor.category, CATEGORY_LABELS),
            clean(tensor.name, 100),
            clean(", ".join(map(holder_name, tensor.holders[:3])), 160),
        )
        for tensor in device.names[:most]
    ]
    more = len(device.names) - len(rows)
    return Table("Tensors by name", ("bytes", "what", "name", "held by"), tuple(rows), frozenset({0}), more)


def holders(device: DeviceFindings, most: int) -> Table:
    """Which Python objects keep memory alive, by what each alone retains."""
    rows = [
        (
            format_bytes(one.retained),
            format_bytes(one.bytes),
            format_count(one.tensors),
            label(one.kind, HOLDER_LABELS),
            clean(holder_name(one.holder), 160),
        )
        for one in device.holders[:most]
    ]
    headings = ("retains", "reaches", "tensors", "as", "held by")
    return Table("Holders", headings, tuple(rows), frozenset({0, 1, 2}), len(device.holders) - len(rows))


def growth(device: DeviceFindings, shorten: Shorten, most: int) -> Table:
    """What rises and does not come back."""
    rows = [
        (format_bytes(item.live_bytes), growth_text(item, device), site_text(item, shorten))
        for item in device.growth[:most]
    ]
    more = len(device.growth) - len(rows)
    return Table("Memory growth", ("live", "how", "site"), tuple(rows), frozenset({0}), more)


def pins(device: DeviceFindings, shorten: Shorten, most: int) -> Table:
    """Whose blocks keep free bytes from being released."""
    rows = [
        (
            format_bytes(pin.stranded_bytes),
            format_count(pin.blocks),
            format_bytes(pin.live_bytes),
            format_count(pin.segments),
            site_text(pin, shorten),
        )
        for pin in device.pins[:most]
    ]
    headings = ("free beside", "blocks", "live", "segments", "site")
    more = len(device.pins) - len(rows)
    title = "What keeps free memory from being released"
    if len(device.pins) > 1:
        title += " (sites that share a segment both count it)"
    return Table(title, headings, tuple(rows), frozenset({0, 1, 2, 3}), more)


def pools(device: DeviceFindings, most: int) -> Table:
    """Reserved bytes by pool, stream and size class."""
    uses = sorted(device.fragmentation.by_pool, key=lambda use: -use.reserved)
    rows = [
        (
            "default" if use.pool == (0, 0) else f"{use.pool[0]}, {use.pool[1]}",
            "default" if use.stream == 0 else f"0x{use.stream & (1 << 64) - 1:x}",
            use.segment_type + (", expandable" if use.is_expandable else ""),
            format_bytes(use.reserved),
            format_bytes(use.active),
            format_bytes(use.inactive),
            format_bytes(use.largest_inactive),
        )
        for use in uses[:most]
    ]
    headings = ("pool", "stream", "segments", "reserved", "active", "inactive", "largest hole")
    return Table("Pools", headings, tuple(rows), frozenset({3, 4, 5, 6}), len(uses) - len(rows))


def ooms(device: DeviceFindings, shorten: Shorten, most: int) -> Table:
    """Every request that failed, the last ones first."""
    rows = [
        (
            format_count(oom.entry + device.first_entry),
            format_bytes(oom.requested),
            "yes" if oom.recovered else "no",
            cause_label(oom.verdict),
            caller_or_site_text(oom, shorten),
        )
        for oom in device.ooms[::-1][:most]
    ]
    headings = ("entry", "requested", "recovered", "cause", "where")
    return Table("Failed requests", headings, tuple(rows), frozenset({0, 1}), device.failures - len(rows))


def steps(device: DeviceFindings, most: int) -> Table:
    """The high-water mark of each of the last steps."""
    shown = device.rounds.steps[-most:]
    rows = tuple(
        (clean(step.name, 60), format_bytes(step.peak_allocated), format_bytes(step.end_allocated)) for step in shown
    )
    one, several = pass_word(device)
    headings = (one, "peak allocated", "allocated at its end")
    return Table(several.capitalize(), headings, rows, frozenset({1, 2}), len(device.rounds.steps) - len(rows))


def bill(device: DeviceFindings) -> Table:
    """What the model must cost, against what is there."""
    rows = device.bill.rows if device.bill else ()
    return Table(
        "Expected memory of the model" + (", with what is left over" if bill_note(device) else ""),
        ("", "expected", "actual"),
        tuple((label(what, BILL_LABELS), _bytes(expected), format_bytes(there)) for what, expected, there in rows),
        frozenset({1, 2}),
    )


def other_devices(findings: Findings) -> Table:
    """The devices that the report does not begin with, at the same instant."""
    rows = tuple(
        (device.name, format_bytes(device.at.allocated), format_bytes(device.at.reserved))
        for device in findings.devices
        if device.device != findings.at.device
    )
    return Table("Other devices", ("device", "allocated", "reserved"), rows, frozenset({1, 2}))


def percent_text(part: int, whole: int) -> str:
    """``34%``, or ``< 1%`` for what is little but not nothing."""
    if whole <= 0:
        return ""
    return "< 1%" if 0 < part < whole * 0.005 else f"{part / whole:.0%}"


def _bytes(count: int | None) -> str:
    return UNKNOWN if count is None else format_bytes(count)
