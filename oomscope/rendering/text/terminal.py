"""The findings as text for a terminal, with or without colour; 80 columns are enough."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.verdict.records import Advice, Oom
from oomscope.analysis.whatif.records import WhatIf
from oomscope.rendering.common import said_tables, tables
from oomscope.rendering.common.sources import Sources
from oomscope.rendering.common.tables import Table
from oomscope.rendering.common.whatif_table import WhatIfView, changing, left_every_pass, view
from oomscope.rendering.text.fitted_table import FittedTable
from oomscope.rendering.text.lines import source_line
from oomscope.rendering.text.sparkline import marks, sparkline
from oomscope.units import format_bytes, format_duration, plural
from oomscope.wording.certainty import certainty
from oomscope.wording.clean import clean
from oomscope.wording.growth import no_growth
from oomscope.wording.instants import elsewhere, instant_of
from oomscope.wording.opening import occasion, replay_text, verdict_text
from oomscope.wording.page import effect_text
from oomscope.wording.paths import Shorten, shortener
from oomscope.wording.said import said_text
from oomscope.wording.verdict_text import advice_text
from oomscope.wording.whatif_table import EXPLAINED_BY, NOTHING_CHANGES, TITLE, unchanged_text
from oomscope.wording.window import shown_part

WIDTH = 80
WIDEST = 120
_TOP = 8


def render_text(
    findings: Findings, *, title: str | None = None, width: int = WIDTH, sources: Sources | None = None
) -> str:
    """The findings as plain text of at most `width` columns, without colour."""
    return plain(summary(findings, title=title, width=width, sources=sources), width)


def plain(shown: RenderableType, width: int = WIDTH) -> str:
    """What a console of `width` columns shows, without colour."""
    sink = io.StringIO()
    console = Console(
        file=sink, width=width, color_system=None, force_terminal=False, legacy_windows=False, emoji=False, markup=False
    )
    console.print(shown)
    # Padding to the full width is of no use in a file, and a nuisance in a diff.
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines()) + "\n"


def summary(
    findings: Findings, *, title: str | None = None, width: int = WIDTH, sources: Sources | None = None
) -> RenderableType:
    """The findings for a rich console of `width` columns."""
    shorten = shortener(findings.snapshot.stacks)
    parts: list[RenderableType] = []
    if title:
        parts += [Text(clean(title, 200), style="bold"), Text()]
    parts += [
        Text(occasion(findings, shorten), style="bold"),
        *map(Text, filter(None, [shown_part(findings)])),
        Text(),
        Text(verdict_text(findings)),
        Text(),
    ]
    if findings.main is not None:
        line = source_line(findings.main, sources or Sources(findings.snapshot), shorten, width)
        parts += [*line, Text()] if line else []
    if replay := replay_text(findings):
        parts += [Text(replay), Text()]
    if findings.main is not None:
        parts += _device(findings, findings.main, shorten, width)
    else:
        parts += [*section(said_tables.counted(findings)), *section(said_tables.counted_holders(findings, _TOP))]
    parts += _list("How sure this is", map(Text, certainty(findings)))
    return Group(*parts)


def _device(findings: Findings, device: DeviceFindings, shorten: Shorten, width: int) -> Iterator[RenderableType]:
    when = instant_of(findings.at, device)
    yield from section(tables.evidence(device, 10), headings=False)
    if note := elsewhere(findings.at, device):
        yield from (Text(note), Text())
    if device.oom is not None and (said := said_text(device.oom.said)):
        yield from (Text(said), Text())
    yield from section(tables.memory(device), f"Memory, {when}", headings=False)
    yield from _timeline(device, width)
    if device.oom is not None:
        oom = device.oom
        yield from _list("What to do", (_advice(item, oom) for item in oom.verdict.advice))
    answers = [answer for answer in findings.whatif if answer.device == device.device]
    yield from chain.from_iterable(
        changed_by_settings(answer, left_every_pass(device)) for answer in answers if answer.rows
    )
    yield from section(tables.categories(device), headings=False)
    yield from section(tables.sites(device, shorten, _TOP), f"Who holds the memory, {when}")
    yield from section(said_tables.named(device, 5))
    yield from section(tables.holders(device, _TOP))
    if not device.holders:
        yield from section(tables.names(device, _TOP))
    if device.growth:
        yield from section(tables.growth(device, shorten, _TOP))
    elif device.history.moves:
        yield from (Text(no_growth(device)), Text())
    yield from section(tables.pins(device, shorten, 5))
    yield from section(said_tables.private_pools(device, 5))
    yield from section(said_tables.pinned(findings), headings=False)
    yield from section(said_tables.pinned_sites(findings, shorten, 5))
    if len(device.ooms) > 1:
        yield from section(tables.ooms(device, shorten, 5))
    yield from section(tables.bill(device))
    yield from section(tables.other_devices(findings))


def whatif(answer: WhatIf) -> RenderableType:
    """What-if answers alone, for a rich console."""
    title = Text(f"What if, device {answer.device}", style="bold")
    shown = view(answer)
    said = (Text(shown.common), Text(), Text(shown.explained), Text(), Text(shown.conditions))
    return Group(title, Text(), *_table(shown), *said)


def changed_by_settings(answer: WhatIf, per_pass: int | None) -> Iterator[RenderableType]:
    """What-if answers within a report: what changes the outcome as a table, the rest by name."""
    changed, unchanged = changing(answer)
    shown = view(changed, per_pass)
    yield Text(TITLE, style="bold")
    if len(changed.rows) > 1 or not answer.self_check.exact:
        yield from _table(shown)
    else:
        yield from (Text(NOTHING_CHANGES), Text())
    yield from (Text(" ".join(filter(None, (shown.common, unchanged_text(unchanged))))), Text(EXPLAINED_BY), Text())


def _table(answer: WhatIfView) -> Iterator[RenderableType]:
    """Whether the replay can be trusted, the table under the other settings, and its notes."""
    yield from (Text(answer.check), Text())
    yield FittedTable(answer.table, grid_of)
    yield Text()
    yield from map(Text, answer.numbered)
    yield from (Text() for _ in answer.numbered[:1])


def section(table: Table, title: str | None = None, *, headings: bool = True) -> Iterator[RenderableType]:
    """A table under its title; nothing where it has no rows."""
    if not table.rows:
        return
    yield Text(title or table.title, style="bold")
    yield Padding(grid_of(table, headings=headings), (0, 0, 0, 2))
    if table.more > 0:
        yield Text(f"  and {plural(table.more, 'more row')}", style="dim")
    yield Text()


def grid_of(table: Table, *, headings: bool = True) -> Grid:
    """What rich shows of a table."""
    grid = Grid(box=None, padding=(0, 2, 0, 0), show_header=headings, header_style="dim", pad_edge=False)
    last = len(table.headings) - 1
    for column, heading in enumerate(table.headings):
        right = column in table.right
        # Only the last column may wrap: numbers and labels that break across lines cannot be read.
        grid.add_column(
            Text(heading), justify="right" if right else "left", no_wrap=right or column != last, overflow="fold"
        )
    for row in table.rows:
        grid.add_row(*(Text(cell) for cell in row))
    return grid


def _list(title: str, items: Iterable[Text]) -> Iterator[RenderableType]:
    """Sentences under a title, each hanging from a dash; nothing where there are none."""
    shown = list(items)
    if not shown:
        return
    grid = Grid.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=1)
    grid.add_column(overflow="fold")
    for item in shown:
        grid.add_row("-", item)
    yield Text(title, style="bold")
    yield Padding(grid, (0, 0, 0, 2))
    yield Text()


def _advice(advice: Advice, oom: Oom) -> Text:
    text = Text()
    if advice.refuted:
        text.append("Would not have helped: ", style="dim")
    words = advice_text(advice)
    text.append(clean(words.action, 400).rstrip("."), style="" if advice.refuted else "bold")
    if not advice.refuted and (effect := effect_text(advice, oom)):
        text.append(f" ({effect})")
    text.append(f". {clean(words.why, 600)}" if words.why else ".")
    if words.price:
        text.append(f" Price: {clean(words.price, 300)}.")
    return text


def _timeline(device: DeviceFindings, width: int) -> Iterator[RenderableType]:
    """Allocated and reserved bytes over the entries of the trace, each to the scale of the most that was reserved."""
    curves, entries = device.history.curves, device.history.entries
    if entries < 2:
        return
    across = min(width, WIDEST) - 24
    top = int(curves.reserved.max())
    yield Text(f"Timeline ({_span(device)})", style="bold")
    for name, curve in (("allocated", curves.allocated), ("reserved", curves.reserved)):
        line = sparkline(curve, top, across)
        yield Text.assemble(f"  {name:<10}", (line, "cyan"), f" {format_bytes(int(curve.max()))}")
    failed = np.asarray([oom.entry + 1 for oom in device.ooms], dtype=np.int64)
    if len(failed):
        yield Text(f"  {'OOM':<10}{marks(failed, entries + 1, across, '^')}")
    yield Text()


def _span(device: DeviceFindings) -> str:
    trace = device.history.trace
    count = plural(len(trace), "entry", "entries")
    if not trace.timed:
        return f"{count}, left to right"
    return f"{count} in {format_duration(int(trace.time_us[-1]) - int(trace.time_us[0]))}, left to right"
