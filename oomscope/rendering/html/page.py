"""The report as one HTML file: no network, complete without JavaScript, bounded in size."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from oomscope import resources
from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.analysis.memory.records import Pin
from oomscope.analysis.passes.records import Growth
from oomscope.analysis.whatif.records import WhatIf
from oomscope.rendering.common.sources import Sources
from oomscope.rendering.common.whatif_table import split_rows, view
from oomscope.rendering.html import palette
from oomscope.rendering.html.figures import lifetimes_figure, steps_figure
from oomscope.rendering.html.first_screen import FirstScreen, Fix, first_screen, fixes, quoted
from oomscope.rendering.html.flame import ROW, THIN, Flame, flame
from oomscope.rendering.html.holder_rows import HolderLine, holder_rows
from oomscope.rendering.html.lifetime_keys import keys_of
from oomscope.rendering.html.memory_bars import Part, category_parts, phase_parts
from oomscope.rendering.html.name_rows import NameRow, name_rows
from oomscope.rendering.html.notable_pins import notable_pins
from oomscope.rendering.html.other_devices import DeviceView, other_devices
from oomscope.rendering.html.page_size import MOST_BYTES, PAGE_CAPS, PageCaps, trimmed
from oomscope.rendering.html.percent import share
from oomscope.rendering.html.segment_map import SegmentMap, segment_map
from oomscope.rendering.html.site_rows import SMALL, SiteRow, place_of, site_rows, without_small
from oomscope.rendering.html.surroundings import context_rows, settings_rows
from oomscope.rendering.html.svg import StyleSheet
from oomscope.rendering.html.timelines import Timelines, draw_timelines
from oomscope.units import format_bytes, format_count, format_duration, plural
from oomscope.version import __version__
from oomscope.wording import labels
from oomscope.wording.certainty import certainty
from oomscope.wording.clean import clean
from oomscope.wording.growth import no_growth
from oomscope.wording.instants import before_oom, elsewhere, instant, moment_words
from oomscope.wording.limits import limit_text
from oomscope.wording.opening import occasion, replay_text
from oomscope.wording.paths import Shorten, shortener
from oomscope.wording.verdict_text import advice_text, evidence_text

_SCRIPTS = ("base", "timeline", "tables", "flame", "start")
"""The files of templates/script, in the order in which they are put together."""
MOST_GROWING = 8
HOLES_MATTER = 20
"""Free memory below one in so many reserved bytes has nothing to show: where it lies is folded."""
_EARLY = 'document.documentElement.classList.add("js")'
"""Runs before the first paint, so that what needs the script has its room from the start."""


@dataclass(frozen=True, slots=True)
class Page:
    """Everything the template of the page reads, beside the findings."""

    findings: Findings
    device: DeviceFindings | None
    title: str
    first: FirstScreen
    fixes: tuple[Fix, ...]
    replay: str | None
    certainty: list[str]
    shortened: bool
    context: list[tuple[str, str]]
    settings: list[tuple[str, str]]
    main: MainView | None
    whatif: WhatIf | None
    version: str


@dataclass(frozen=True, slots=True)
class MainView:
    """What is drawn and listed about the device that the report begins with."""

    instant: str
    zero: str
    timelines: Timelines
    categories: tuple[Part, ...]
    phases: tuple[Part, ...]
    sites: tuple[SiteRow, ...]
    small_sites: tuple[int, int]
    holders: tuple[HolderLine, ...]
    growth: tuple[Growth, ...]
    pins: tuple[Pin, ...]
    holes_matter: bool
    flame: Flame | None
    flame_all: Flame | None
    segments: SegmentMap | None
    steps_figure: Markup | None
    lifetimes_figure: Markup | None
    no_growth: str
    others: tuple[DeviceView, ...]
    names: tuple[NameRow, ...]


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
    environment = _environment(caps.text)
    light, dark = palette.css_variables()
    rules = environment.get_template("report.css").render(light=_ours(light), dark=_ours(dark), palette=palette)
    style = rules + sheet.css()
    script = f'"use strict";\n(() => {{\n{"".join(_source(f"script/{name}.js") for name in _SCRIPTS)}}})();\n'
    answer = view(page.whatif) if page.whatif is not None else None
    changed, rest = split_rows(page.whatif, answer) if page.whatif is not None and answer is not None else ((), ())
    data = _data(page.main) if page.main is not None else {}
    return environment.get_template("report.html").render(
        page=page,
        style=_ours(style),
        script=_ours(script),
        early=_ours(_EARLY),
        policy=_ours(_policy(style, script)),
        data=_embedded(data),
        labels=labels,
        limit_text=limit_text,
        elsewhere=elsewhere,
        palette=palette,
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
    if main.timelines.whole is not None:
        figures[main.timelines.whole.name] = main.timelines.data
    return {"thin": THIN, "row": ROW, "figures": figures}


def _page(
    findings: Findings, title: str | None, shorten: Shorten, sheet: StyleSheet, caps: PageCaps, sources: Sources
) -> Page:
    device = findings.main
    line = occasion(findings, shorten)
    answer = next((one for one in findings.whatif if device is not None and one.device == device.device), None)
    return Page(
        findings=findings,
        device=device,
        title=clean(title, 200) if title else clean(line, 200),
        first=first_screen(findings, shorten, sources, sheet),
        fixes=fixes(device) if device is not None else (),
        replay=replay_text(findings),
        certainty=[_whole(item) for item in certainty(findings)],
        shortened=not caps.is_usual,
        context=context_rows(findings),
        settings=settings_rows(findings),
        main=_main(findings, device, shorten, sheet, caps, sources) if device is not None else None,
        whatif=answer,
        version=__version__,
    )


def _main(
    findings: Findings, device: DeviceFindings, shorten: Shorten, sheet: StyleSheet, caps: PageCaps, sources: Sources
) -> MainView:
    stacks = findings.snapshot.stacks
    keys = keys_of(device)
    rows = site_rows(device, stacks, keys, shorten, sources)
    sites, small = without_small(rows, device.at.allocated)
    every = flame(device, stacks, keys, shorten)
    own = flame(device, stacks, keys, shorten, framework=False)
    labels = [clean(" ".join(filter(None, (row.place.text, row.place.function))), caps.text) for row in rows]
    return MainView(
        instant=instant(findings.at, device.history.recorded),
        zero=moment_words(findings),
        timelines=draw_timelines(findings, device, keys, labels, sheet),
        categories=category_parts(device),
        phases=phase_parts(device),
        sites=sites,
        small_sites=small,
        holders=holder_rows(device),
        growth=tuple(row for row in device.growth if row.live_bytes * SMALL >= device.at.allocated)[:MOST_GROWING],
        pins=notable_pins(device),
        holes_matter=device.fragmentation.inactive * HOLES_MATTER >= device.at.reserved,
        flame=own or every,
        flame_all=every if own is not None and every != own else None,
        segments=segment_map(device, keys, findings.snapshot.pools),
        steps_figure=steps_figure(device, sheet),
        lifetimes_figure=lifetimes_figure(device, sheet),
        no_growth=no_growth(device.steps),
        others=other_devices(findings, shorten, sheet),
        names=name_rows(device),
    )


@cache
def _environment(longest: int) -> Environment:
    def finalize(value: Any) -> Any:
        """Every text on its way into the page is a stranger's until shown otherwise."""
        if value is None:
            return ""
        if isinstance(value, str) and not hasattr(value, "__html__"):
            return clean(value, longest)
        return value

    environment = Environment(
        loader=FileSystemLoader(resources.folder("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        bytes=_bytes, count=format_count, duration=format_duration, plural=plural, label=labels.label,
        size=format_bytes, share=share, quoted_text=lambda text: quoted(clean(text, longest)),
    )  # fmt: skip
    return environment


def _ours(text: str) -> Markup:
    """Text of our own, which goes into the page as it is."""
    return Markup(text)  # noqa: S704


def _whole(sentence: str) -> Markup:
    """A sentence of ours, which quotes foreign names only within its own bounds: it is never cut."""
    return escape(sentence)


def _bytes(value: int | None) -> Markup:
    """Bytes in three digits, exact on hover."""
    if value is None:
        return Markup('<span class="none" title="not known">–</span>')
    return Markup('<span class="b" title="{}">{}</span>').format(f"{value:,} bytes", format_bytes(value))


def _embedded(data: dict[str, Any]) -> Markup:
    """JSON for a script element: nothing in it can close the element or open a comment."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return _ours(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}' '{_hash(_EARLY)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _source(name: str) -> str:
    return (resources.folder("templates") / name).read_text(encoding="utf-8")
