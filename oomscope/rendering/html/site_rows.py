"""The table of sites: each with its caller, its category and its largest stacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from oomscope.analysis.attribution.records import SiteUse
from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.memory.records import Pin
from oomscope.analysis.passes.records import Growth
from oomscope.analysis.records import Location
from oomscope.analysis.verdict.records import Oom
from oomscope.frozen import frozen
from oomscope.model import StackTable
from oomscope.rendering.common.sources import Sources
from oomscope.rendering.html.flame import is_framework
from oomscope.rendering.html.lifetime_keys import LifetimeKeys, Rows
from oomscope.rendering.html.percent import share
from oomscope.wording.clean import clean
from oomscope.wording.page import OTHER_LINES
from oomscope.wording.paths import Shorten
from oomscope.wording.places import backward_text, no_site_text

MOST_STACKS = 3
MOST_FRAMES = 24
SMALL = 1000
"""One in so many allocated bytes is worth a row; smaller sites are told together."""
_LONGEST_LINE = 160
STACK_BUDGET = 60_000
"""Characters of stacks in all; below the largest sites they are left out once this is spent."""


@frozen
class Place:
    """A site with its caller, in words."""

    text: str
    function: str
    full: str
    caller: str
    caller_full: str


@frozen
class FrameRow:
    """A frame: its place, its function, its line of source, and whether it is PyTorch's or Python's.

    `full` is the whole path of the program's own files; those of others say enough without the folder they are in.
    """

    place: str
    function: str
    full: str
    source: str
    framework: bool


@frozen
class Frames:
    """One stack of a site: its bytes, its blocks, its frames, and how many are cut."""

    bytes: int
    blocks: int
    frames: tuple[FrameRow, ...]
    cut: int


@frozen
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
    source: str
    repeats: bool = False
    """Whether the row above shows the same line of source."""


def place_of(item: SiteUse | Pin | Growth | Oom, shorten: Shorten) -> Place:
    """Site and caller of `item`, or the reason why it has none."""
    site, caller = item.site, item.caller
    differs = caller is not None and caller != site
    return Place(
        text=f"{shorten(site.file)}:{site.line}" if site else no_site_text(item),
        function=clean(site.function, 80) + backward_text(item) if site else "",
        full=f"{clean(site.file, 400)}:{site.line}" if site else "",
        caller=f"{shorten(caller.file)}:{caller.line} {clean(caller.function, 80)}" if caller and differs else "",
        caller_full=f"{clean(caller.file, 400)}:{caller.line}" if caller and differs else "",
    )


def site_rows(
    device: DeviceFindings, stacks: StackTable, keys: LifetimeKeys, shorten: Shorten, sources: Sources | None = None
) -> tuple[SiteRow, ...]:
    """The sites table, with the stacks that most of each row's bytes share."""
    sources = sources if sources is not None else Sources()
    # Nearly every site shares a segment with some free bytes; only what keeps much of it is worth a word here.
    much = max(device.fragmentation.stranded // 10, device.at.reserved // 33, 1)
    pins = {(pin.site, pin.caller, pin.label) for pin in device.pins if pin.stranded_bytes >= much}
    growing = {(growth.site, growth.caller, growth.label) for growth in device.growth}
    rows, spent = [], 0
    for number, use in enumerate(device.sites):
        shown: list[Frames] = []
        for stack, count, blocks in use.stacks[:MOST_STACKS]:
            if spent < STACK_BUDGET:
                shown.append(_frames(stacks, stack, count, blocks, shorten, sources))
                spent += sum(
                    60 + len(frame.place) + len(frame.function) + len(frame.full) + len(frame.source)
                    for frame in shown[-1].frames
                )
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
                source=source_text(use.caller or use.site, sources),
                repeats=number > 0 and use.caller is not None and use.caller == device.sites[number - 1].caller,
            )
        )
    return tuple(rows)


def later_rows(
    rows: Sequence[SiteRow], shown: Sequence[SiteRow], told: Rows, shorten: Shorten, sources: Sources
) -> tuple[SiteRow, ...]:
    """Rows that the script shows where another instant is chosen: what is small or gone at this one, and the rest."""
    small = tuple(replace(row, stacks=()) for row in rows[: told.told] if row not in shown)
    gone = tuple(
        _later(number, place_of(use, shorten), use.category, source_text(use.caller or use.site, sources))
        for number, use in enumerate(told.earlier, told.told)
    )
    return (*small, *gone, _later(told.count, Place(OTHER_LINES, "", "", "", ""), "unknown", ""))


def _later(number: int, where: Place, category: str, source: str) -> SiteRow:
    return SiteRow(number, where, 0, share(0, 0), 0, category, "s-other", (), False, False, source)


def source_text(where: Location | None, sources: Sources) -> str:
    """The line of source at `where`; empty where it is not known."""
    excerpt = sources.around(where.file, where.line, 0) if where is not None else None
    return clean(excerpt.text, _LONGEST_LINE) if excerpt is not None else ""


def without_small(rows: tuple[SiteRow, ...], allocated: int) -> tuple[tuple[SiteRow, ...], tuple[int, int]]:
    """The rows that are worth a line, and how many others there are with how many bytes."""
    least = allocated // SMALL
    small = [row for row in rows[1:] if row.bytes < least]
    return tuple(row for row in rows if row not in small), (len(small), sum(row.bytes for row in small))


def _frames(stacks: StackTable, stack: int, count: int, blocks: int, shorten: Shorten, sources: Sources) -> Frames:
    frames = [frame for frame in stacks[stack] if frame.filename not in ("", "??") or frame.line]
    shown = frames[:MOST_FRAMES]
    rows = tuple(
        FrameRow(
            f"{shorten(f.filename)}:{f.line}",
            clean(f.name, 80),
            "" if hidden else clean(f.filename, 160),
            source_text(Location(f.filename, f.line, f.name), sources),
            hidden,
        )
        for f, hidden in zip(shown, map(is_framework, (one.filename for one in shown)), strict=True)
    )
    return Frames(count, blocks, rows, len(frames) - len(shown))
