"""The page of a job's ranks: one file, bounded in size, in the look of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from oomscope.analysis.compare.ranks import Ranks
from oomscope.frozen import frozen
from oomscope.rendering.html.one_file import framed, page_environment
from oomscope.rendering.html.page_size import PageCaps
from oomscope.rendering.html.rank_figure import MOST_BARS, rank_figure
from oomscope.rendering.html.rank_tables import Bytes, Grid, Section, apart_in_short, sections
from oomscope.rendering.html.svg import StyleSheet
from oomscope.version import __version__
from oomscope.wording import ranks as words
from oomscope.wording.clean import clean

MOST_BYTES = 400_000
"""No page is larger, of however many ranks."""
_CAPS = (PageCaps(600, 60), PageCaps(200, 30), PageCaps(80, 10))
_SCRIPTS = ("base", "tables", "start_diff")


@frozen
class Fact:
    """A line of the first screen: what, on which ranks, and bytes where it has some."""

    what: str
    ranks: str
    bytes: Bytes | None = None


@frozen
class RanksPage:
    """Everything that the template reads."""

    title: str
    occasion: str
    headline: str
    lead: tuple[str, ...]
    facts: tuple[Fact, ...]
    apart: Grid | None
    figure: Markup | None
    reading: str
    sections: tuple[Section, ...]
    version: str


def ranks_to_html(found: Ranks, bad: Sequence[Mapping[str, str]]) -> str:
    """The whole page as HTML text, of at most `MOST_BYTES` in UTF-8 whatever the files hold.

    Args:
        found: the ranks.
        bad: the files that could not be read, each with `file` and `error`.
    """
    for caps in _CAPS:
        text = _rendered(found, bad, caps)
        if len(text.encode("utf-8", "backslashreplace")) <= MOST_BYTES:
            break
    return text


def _rendered(found: Ranks, bad: Sequence[Mapping[str, str]], caps: PageCaps) -> str:
    sheet = StyleSheet()
    environment = page_environment(caps.text)
    page = _page(found, bad, caps.rows or 0, sheet)
    return environment.get_template("ranks.html").render(**framed(environment, sheet, _SCRIPTS, {}), page=page)


def _page(found: Ranks, bad: Sequence[Mapping[str, str]], most: int, sheet: StyleSheet) -> RanksPage:
    headline, *lead = words.ranks_said(found)
    known = sum(one.peak_allocated is not None for one in found.ranks)
    return RanksPage(
        title=clean(headline, 200),
        occasion=words.occasion(found, len(bad)),
        headline=headline,
        lead=tuple(lead),
        facts=_facts(found),
        apart=apart_in_short(found),
        figure=rank_figure(found, found.peaks, sheet) if found.peaks is not None and known > 1 else None,
        reading=words.BARS_READING if known <= MOST_BARS else words.DISTRIBUTION_READING,
        sections=sections(found, bad, most),
        version=__version__,
    )


def _facts(found: Ranks) -> tuple[Fact, ...]:
    facts = []
    if found.first is not None:
        facts.append(Fact("Out of memory first", f"rank {found.first}"))
    if found.followed:
        facts.append(Fact("Followed", words.ranks_named(found.followed)))
    if (peaks := found.peaks) is not None:
        facts += [
            Fact("Highest peak", f"rank {peaks.max_rank}", Bytes(peaks.max)),
            Fact("Median peak", "", Bytes(peaks.median)),
            Fact("Lowest peak", f"rank {peaks.min_rank}", Bytes(peaks.min)),
        ]
    if found.outliers:
        facts.append(Fact("Apart from the others", words.ranks_named(tuple(sorted(o.rank for o in found.outliers)))))
    if found.missing:
        facts.append(Fact("No file of", words.ranks_named(found.missing)))
    return tuple(facts)
