"""What the page shows, made for its templates: small records of words and numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.records import CATEGORIES, PHASES, Growth, Oom, Pin, SiteUse
from oomscope.model import StackTable
from oomscope.rendering.common.table_rows import Keys
from oomscope.wording.clean import clean
from oomscope.wording.paths import Shorten
from oomscope.wording.words import CATEGORY_LABELS, PHASE_LABELS, UNLABELLED, words

MOST_STACKS = 3
MOST_FRAMES = 24
MOST_NAMES = 100
_ELEMENT = re.compile(r"\[\d+\]")
CAPPED = 0.7
"""A limit below this share of the card is drawn as the end of the bar."""

STACK_BUDGET = 160_000
"""Characters of stacks in all; below the largest sites they are left out once this is spent."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a bar: `key` names its colour."""

    key: str
    label: str
    bytes: int
    x: str
    width: str
    share: str


@dataclass(frozen=True, slots=True)
class Equation:
    """The card's memory, or what this process may have of it, in parts.

    Attributes:
        parts: they sum to the card, or to the limit where that is far below the card.
        reserved: bytes that PyTorch holds.
        limit: what may be reserved, None: not known.
        asked: the size of the failed request.
        beyond: bytes that the device has free and the limit keeps from this process, where the bar ends at the limit.
    """

    parts: tuple[Part, ...]
    reserved: int
    limit: int | None
    asked: int | None
    beyond: int | None


@dataclass(frozen=True, slots=True)
class Place:
    """A site with its caller, in words."""

    text: str
    function: str
    full: str
    caller: str
    caller_full: str


@dataclass(frozen=True, slots=True)
class Frames:
    """One stack of a site: its bytes, its blocks, its frames as (place, function, full path), and how many are cut."""

    bytes: int
    blocks: int
    frames: tuple[tuple[str, str, str], ...]
    cut: int


@dataclass(frozen=True, slots=True)
class SiteRow:
    """A row of the sites table."""

    number: int
    place: Place
    bytes: int
    share: str
    blocks: int
    category: str
    colour: str
    stacks: tuple[Frames, ...]
    is_pin: bool
    grows: bool


@dataclass(frozen=True, slots=True)
class NameRow:
    """Tensors that the recording describes in the same words; `bytes` is their sum."""

    name: str
    category: str
    kind: str
    holders: tuple[str, ...]
    tensors: int
    bytes: int


def name_rows(device: DeviceFindings) -> tuple[NameRow, ...]:
    """The tensors that the recording knows, most bytes first; those that read the same are one row."""
    groups: dict[tuple[str, str, str, tuple[str, ...]], tuple[int, int]] = {}
    for tensor in device.names:
        shape = "" if tensor.shape is None else f" [{', '.join(map(str, tensor.shape))}]"
        # Elements of one list differ by their place in it only.
        holders = tuple(dict.fromkeys(_ELEMENT.sub("[…]", holder) for holder in tensor.holders))[:3]
        key = tensor.name, tensor.category, f"{tensor.dtype or ''}{shape}", holders
        tensors, count = groups.get(key, (0, 0))
        groups[key] = tensors + 1, count + tensor.bytes
    rows = [NameRow(*key, tensors, count) for key, (tensors, count) in groups.items()]
    return tuple(sorted(rows, key=lambda row: -row.bytes)[:MOST_NAMES])


def parts(values: Sequence[tuple[str, str, int]], total: int) -> tuple[Part, ...]:
    """Parts laid side by side; those without bytes are left out."""
    result, start = [], 0
    for key, label, count in values:
        if count > 0 and total > 0:
            result.append(Part(key, label, count, percent(start, total), percent(count, total), share(count, total)))
            start += count
    return tuple(result)


def percent(part: int, whole: int) -> str:
    """A share as an attribute of SVG takes it, without its sign."""
    return f"{100 * part / whole:.3f}".rstrip("0").rstrip(".") if whole else "0"


def share(part: int, whole: int) -> str:
    """A share for reading: ``12.3 %``, ``< 0.1 %``."""
    if not whole or not part:
        return "0 %"
    value = 100 * part / whole
    return "< 0.1 %" if 0 < value < 0.1 else f"{value:.1f} %" if value < 99.95 else f"{value:.0f} %"


def equation(device: DeviceFindings) -> Equation:
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
        values = [*values[:3], ("devicefree", "room left below the limit", total - at.reserved)]
    asked = oom.alloc_size if oom is not None and oom.entry == device.at_entry else None
    return Equation(parts(values, total), at.reserved, limit, asked, beyond)


def categories(device: DeviceFindings) -> tuple[Part, ...]:
    """Allocated bytes by category, in the fixed order."""
    found = device.categories
    return parts([(name, words(name, CATEGORY_LABELS), found.get(name, 0)) for name in CATEGORIES], sum(found.values()))


def phases(device: DeviceFindings) -> tuple[Part, ...]:
    """Allocated bytes by the phase that allocated them."""
    found = device.phases
    return parts([(name, words(name, PHASE_LABELS), found.get(name, 0)) for name in PHASES], sum(found.values()))


def place_of(item: SiteUse | Pin | Growth | Oom, shorten: Shorten) -> Place:
    """Site and caller of `item`, or the reason why it has none."""
    site, caller = item.site, item.caller
    label = getattr(item, "label", None) or UNLABELLED
    differs = caller is not None and caller != site
    return Place(
        text=f"{shorten(site.file)}:{site.line}" if site else clean(label),
        function=clean(site.function, 80) if site else "",
        full=f"{clean(site.file, 400)}:{site.line}" if site else "",
        caller=f"{shorten(caller.file)}:{caller.line} {clean(caller.function, 80)}" if caller and differs else "",
        caller_full=f"{clean(caller.file, 400)}:{caller.line}" if caller and differs else "",
    )


def site_rows(device: DeviceFindings, stacks: StackTable, keys: Keys, shorten: Shorten) -> tuple[SiteRow, ...]:
    """The sites table, with the stacks that most of each row's bytes share."""
    # Nearly every site shares a segment with some free bytes; only what keeps much of it is worth a word here.
    much = max(device.fragmentation.stranded // 10, device.at.reserved // 33, 1)
    pins = {(pin.site, pin.caller, pin.label) for pin in device.pins if pin.stranded_bytes >= much}
    growing = {(growth.site, growth.caller, growth.label) for growth in device.growth}
    rows, spent = [], 0
    for number, use in enumerate(device.sites):
        shown: list[Frames] = []
        for stack, count, blocks in use.stacks[:MOST_STACKS]:
            if spent < STACK_BUDGET:
                shown.append(_frames(stacks, stack, count, blocks, shorten))
                spent += sum(40 + len(place) + len(name) + len(full) for place, name, full in shown[-1].frames)
        identity = (use.site, use.caller, use.label)
        rows.append(
            SiteRow(
                number=number,
                place=place_of(use, shorten),
                bytes=use.bytes,
                share=share(use.bytes, device.at.allocated),
                blocks=use.blocks,
                category=use.category,
                colour=f"s-{number}" if number < keys.top else "s-other",
                stacks=tuple(shown),
                is_pin=identity in pins,
                grows=identity in growing,
            )
        )
    return tuple(rows)


def _frames(stacks: StackTable, stack: int, count: int, blocks: int, shorten: Shorten) -> Frames:
    frames = [frame for frame in stacks[stack] if frame.filename not in ("", "??") or frame.line]
    shown = frames[:MOST_FRAMES]
    texts = tuple((f"{shorten(f.filename)}:{f.line}", clean(f.name, 80), clean(f.filename, 160)) for f in shown)
    return Frames(count, blocks, texts, len(frames) - len(shown))


@dataclass(frozen=True, slots=True, eq=False)
class Lives:
    """Allocations by how long they lived: names of the classes, bytes freed and bytes still live in each."""

    names: tuple[str, ...]
    freed: np.ndarray[tuple[int], np.dtype[np.int64]]
    live: np.ndarray[tuple[int], np.dtype[np.int64]]


_CLASSES = (
    (1e3, "< 1 ms"), (1e4, "1–10 ms"), (1e5, "10–100 ms"), (1e6, "0.1–1 s"), (1e7, "1–10 s"), (6e7, "10–60 s"),
    (np.inf, "> 1 min"),
)  # fmt: skip


def lives(device: DeviceFindings) -> Lives | None:
    """How long allocations of the recording lived up to the instant of attribution; None without times."""
    history = device.history
    trace, table = history.trace, history.lifetimes
    if not trace.timed or len(trace) < 2:
        return None
    at = min(device.at_entry, len(trace) - 1)
    rows = np.flatnonzero((table.born >= 0) & (table.born <= at))
    if not len(rows):
        return None
    still = table.freed[rows] > at
    end = trace.time_us[np.minimum(table.freed[rows], at)]
    length = np.maximum(end - trace.time_us[table.born[rows]], 0)
    number = np.searchsorted([bound for bound, _ in _CLASSES], length, side="right")
    size = history.size[rows].astype(np.float64)
    freed = np.bincount(number[~still], weights=size[~still], minlength=len(_CLASSES)).astype(np.int64)
    live = np.bincount(number[still], weights=size[still], minlength=len(_CLASSES)).astype(np.int64)
    # Classes beyond the longest life, and beyond what a reader needs to see the rest in proportion, say nothing.
    shown = max(4, int(np.flatnonzero(freed + live).max(initial=0)) + 1)
    return Lives(tuple(name for _, name in _CLASSES[:shown]), freed[:shown], live[:shown])


def context_rows(findings: Findings) -> list[tuple[str, str]]:
    """Versions and surroundings that the recording wrote down, as pairs of words."""
    recorded = findings.snapshot.recorded
    process = recorded.process
    rows: list[tuple[str, str | int | None]] = [
        ("snapshot layout", f"torch {findings.snapshot.schema}"),
        ("torch", recorded.torch),
        ("cuda", recorded.cuda),
        ("driver", recorded.driver),
        ("python", recorded.python),
        ("platform", recorded.platform),
        ("created", recorded.created),
        ("reason", recorded.reason),
        *((f"cuda:{'?' if one.index is None else one.index}", one.name) for one in recorded.devices[:8]),
        ("host", process.host),
        ("pid", process.pid),
        ("rank", process.rank),
        ("world size", process.world_size),
        ("command", " ".join(process.argv[:20]) or None),
    ]
    return [(clean(key, 60), clean(str(value), 400)) for key, value in rows if value is not None]


def settings_rows(findings: Findings) -> list[tuple[str, str]]:
    """The allocator's settings as the snapshot has them."""
    settings = findings.snapshot.settings or {}
    return [(clean(str(key), 80), clean(_short(value), 200)) for key, value in list(settings.items())[:60]]


def _short(value: object) -> str:
    if value in ("", None):
        return "not set"
    if isinstance(value, dict) and len(set(map(str, value.values()))) == 1:
        return f"{next(iter(value.values()))} for every size"
    return str(value) if isinstance(value, (str, int, float)) else repr(value)[:200]
