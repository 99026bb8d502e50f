"""The report as one HTML file: no network, complete without JavaScript, bounded in size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from markupsafe import Markup

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.memory.records import Pin
from oomscope.analysis.passes.records import Growth
from oomscope.analysis.whatif.records import WhatIf
from oomscope.frozen import frozen
from oomscope.rendering.common.sources import Sources
from oomscope.rendering.common.tables import Table
from oomscope.rendering.common.whatif_table import left_every_pass, split_rows, view
from oomscope.rendering.html.figures import lifetimes_figure, steps_figure
from oomscope.rendering.html.first_screen import FirstScreen, Fix, first_screen, fixes
from oomscope.rendering.html.flame import MOST_LATER, ROW, THIN, WIDE, Flame, flames, for_script
from oomscope.rendering.html.holder_rows import HolderLine, beyond_holders, holder_rows
from oomscope.rendering.html.memory_bars import Part, category_parts, phase_parts
from oomscope.rendering.html.name_rows import NameRow, name_rows
from oomscope.rendering.html.notable_pins import notable_pins
from oomscope.rendering.html.one_file import framed, page_environment, whole
from oomscope.rendering.html.other_devices import DeviceView, other_devices
from oomscope.rendering.html.page_size import MOST_BYTES, PAGE_CAPS, PageCaps, trimmed
from oomscope.rendering.html.part_rows import ShareRow, made_of, share_rows
from oomscope.rendering.html.said_view import SaidView, said_view, without_devices
from oomscope.rendering.html.segment_map import SegmentMap, segment_map
from oomscope.rendering.html.series_view import SeriesView, series_view
from oomscope.rendering.html.site_rows import SMALL, SiteRow, later_rows, place_of, site_rows, without_small
from oomscope.rendering.html.surroundings import context_rows, settings_rows
from oomscope.rendering.html.svg import StyleSheet
from oomscope.rendering.html.timelines import Timelines, draw_timelines, told_of
from oomscope.version import __version__
from oomscope.wording import labels
from oomscope.wording.cause_labels import cause_label
from oomscope.wording.certainty import certainty
from oomscope.wording.clean import clean
from oomscope.wording.growth import no_growth
from oomscope.wording.instants import before_oom, elsewhere, failures_text, instant_of, moment_words
from oomscope.wording.limits import limit_text
from oomscope.wording.loops import pass_word, which_is_which
from oomscope.wording.opening import occasion, replay_text
from oomscope.wording.page import ENOUGH_SO_FAR, SO_FAR_EXPLAINED, bill_note
from oomscope.wording.paths import Shorten, shortener
from oomscope.wording.verdict_text import advice_text, evidence_text

_SCRIPTS = ("base", "unpack", "timeline", "selection", "tables", "stacks", "flame", "start")
"""The files of templates/script, in the order in which they are put together."""
MOST_GROWING = 8
_OF_FREE_MEMORY = ("fragmentation", "private_pools", "other_stream")
HOLES_MATTER = 20
"""Free memory below one in so many reserved bytes has nothing to show: where it lies is folded."""


@frozen
class Page:
    """Everything the template of the page reads, beside the findings."""

    findings: Findings
    device: DeviceFindings | None
    title: str
    first: FirstScreen
    fixes: tuple[Fix, ...]
    so_far: str
    replay: str | None
    certainty: list[str]
    shortened: bool
    context: list[tuple[str, str]]
    settings: list[tuple[str, str]]
    main: MainView | None
    counted: tuple[Table, ...]
    whatif: WhatIf | None
    version: str


@frozen
class MainView:
    """What is drawn and listed about the device that the report begins with."""

    instant: str
    zero: str
    timelines: Timelines
    parts: tuple[ShareRow, ...]
    categories: tuple[Part, ...]
    made_of: Mapping[str, str]
    phases: tuple[Part, ...]
    sites: tuple[SiteRow, ...]
    small_sites: tuple[int, int]
    later_sites: tuple[SiteRow, ...]
    told_sites: int
    holders: tuple[HolderLine, ...]
    beyond_holders: int
    failures: str
    bill_note: str
    growth: tuple[Growth, ...]
    pins: tuple[Pin, ...]
    holes_matter: bool
    flame: Flame | None
    flame_all: Flame | None
    segments: SegmentMap | None
    steps_figure: Markup | None
    lifetimes_figure: Markup | None
    series: SeriesView | None
    no_growth: str
    loops: str
    each: str
    others: tuple[DeviceView, ...]
    names: tuple[NameRow, ...]
    said: SaidView


def _holes_matter(device: DeviceFindings) -> bool:
    """Whether much is free inside PyTorch's segments, and nothing else made the request fail."""
    of_holes = device.oom is None or device.oom.verdict.cause in _OF_FREE_MEMORY
    return of_holes and device.fragmentation.inactive * HOLES_MATTER >= device.at.reserved


def render_html(findings: Findings, *, title: str | None = None, sources: Sources | None = None) -> str:
    """The whole report as HTML text, of at most `page_size.MOST_BYTES` in UTF-8 whatever the snapshot holds.

    Args:
        findings: what `oomscope.analyze` returned.
        title: the title of the page; None: made from the verdict.
        sources: where lines of source are looked up; None: in the dump alone.
    """
    sources = sources if sources is not None else Sources(findings.snapshot)
    for caps in PAGE_CAPS:
        text = _rendered(findings, title, caps, sources)
        if len(text) <= MOST_BYTES and len(text.encode("utf-8", "backslashreplace")) <= MOST_BYTES:
            break
    return text


def _rendered(findings: Findings, title: str | None, caps: PageCaps, sources: Sources | None = None) -> str:
    sources = sources if sources is not None else Sources(findings.snapshot)
    sheet = StyleSheet()
    full = shortener(findings.snapshot.stacks)

    def shorten(path: str) -> str:
        return clean(full(path), caps.text)

    page = _page(trimmed(findings, caps), title, shorten, sheet, caps, sources)
    environment = page_environment(caps.text)
    answer = view(page.whatif, left_every_pass(page.device)) if page.whatif is not None else None
    changed, rest = split_rows(page.whatif, answer) if page.whatif is not None and answer is not None else ((), ())
    data = _data(page.main) if page.main is not None else {}
    return environment.get_template("report.html").render(
        **framed(environment, sheet, _SCRIPTS, data),
        page=page,
        labels=labels,
        cause_label=cause_label,
        limit_text=limit_text,
        elsewhere=elsewhere,
        shorten=shorten,
        advice_text=advice_text,
        evidence_text=evidence_text,
        place_of=lambda item: place_of(item, shorten),
        since=lambda entry: before_oom(page.device, entry) if page.device else "",
        whatif=answer,
        whatif_changed=changed,
        whatif_rest=rest,
        sources=sources,
    )


def _data(main: MainView) -> dict[str, Any]:
    """What the script reads: the timelines of the main device, and those of the others beside them."""
    figures = {name: points for one in main.others for name, points in one.data.items()}
    if main.timelines.whole is None:
        return {"thin": THIN, "row": ROW, "wide": WIDE, "figures": figures}
    figures[main.timelines.whole.name] = main.timelines.data
    return {
        "thin": THIN,
        "row": ROW,
        "wide": WIDE,
        "figures": figures,
        "flames": for_script(_known((main.flame, main.flame_all))),
    }


def _known(found: Iterable[Flame | None]) -> list[Flame]:
    return [one for one in found if one is not None]


def _page(
    findings: Findings, title: str | None, shorten: Shorten, sheet: StyleSheet, caps: PageCaps, sources: Sources
) -> Page:
    device = findings.main
    line = occasion(findings, shorten)
    proposed = fixes(device, sources) if device is not None else ()
    answer = next((one for one in findings.whatif if device is not None and one.device == device.device), None)
    return Page(
        findings=findings,
        device=device,
        title=clean(title, 200) if title else clean(line, 200),
        first=first_screen(findings, shorten, sources, sheet),
        fixes=proposed,
        so_far=SO_FAR_EXPLAINED if any(one.effect.endswith(ENOUGH_SO_FAR) for one in proposed) else "",
        replay=replay_text(findings),
        certainty=[whole(item) for item in certainty(findings)],
        shortened=not caps.is_usual,
        context=context_rows(findings),
        settings=settings_rows(findings),
        main=_main(findings, device, shorten, sheet, caps, sources) if device is not None else None,
        counted=without_devices(findings) if device is None else (),
        whatif=answer,
        version=__version__,
    )


def _main(
    findings: Findings, device: DeviceFindings, shorten: Shorten, sheet: StyleSheet, caps: PageCaps, sources: Sources
) -> MainView:
    stacks = findings.snapshot.stacks
    told = told_of(device, shorten, longest=caps.text)
    keys = told.keys
    rows = site_rows(device, stacks, keys, shorten, sources)
    sites, small = without_small(rows, device.at.allocated)
    holders = holder_rows(device, told.live, sources)
    drawn = flames(device, stacks, keys, shorten, MOST_LATER if caps.is_usual else 0)
    return MainView(
        instant=instant_of(findings.at, device),
        zero=moment_words(findings),
        timelines=draw_timelines(findings, device, told, sheet, _known(drawn)),
        parts=share_rows(device, told.live),
        categories=category_parts(device),
        made_of=made_of(device, told.live),
        phases=phase_parts(device),
        sites=sites,
        small_sites=small,
        later_sites=later_rows(rows, sites, told.rows, shorten, sources),
        holders=holders,
        bill_note=bill_note(device),
        beyond_holders=beyond_holders(device, holders),
        failures=failures_text(device),
        told_sites=told.rows.told,
        growth=tuple(row for row in device.growth if row.live_bytes * SMALL >= device.at.allocated)[:MOST_GROWING],
        pins=notable_pins(device),
        holes_matter=_holes_matter(device),
        flame=drawn[0],
        flame_all=drawn[1],
        segments=segment_map(device, keys, findings.snapshot.pools),
        steps_figure=steps_figure(device, sheet),
        lifetimes_figure=lifetimes_figure(device, sheet),
        series=series_view(findings, device, sheet),
        no_growth=no_growth(device),
        loops=which_is_which(device),
        each=pass_word(device)[0],
        others=other_devices(findings, shorten, sheet),
        names=name_rows(device),
        said=said_view(findings, device, shorten),
    )
