"""What is said of a budget."""

from __future__ import annotations

from oomscope.analysis.compare.budget import CATEGORY, FRAGMENTATION, GROWTH, PEAK, RESERVED, SITE, Checked, CheckResult
from oomscope.analysis.compare.figures import SiteFigure
from oomscope.analysis.records import Location
from oomscope.units import format_bytes, plural
from oomscope.wording.clean import clean
from oomscope.wording.diff import signed_bytes
from oomscope.wording.labels import CATEGORY_LABELS, SITE_LABELS, label
from oomscope.wording.paths import Shorten
from oomscope.wording.places import place

BUDGET_LABELS = {
    PEAK: "peak allocated",
    RESERVED: "peak reserved",
    FRAGMENTATION: "fragmentation (stranded at the peak)",
    GROWTH: "left behind every pass",
    SITE: "site",
    CATEGORY: "category",
}
INCOMPLETE = (
    "The recording does not go back to the beginning, so a higher peak before it is not known; record from the start."
)


def budget_label(one: Checked, shorten: Shorten) -> str:
    """What is limited: ``peak allocated``, ``site model.py:31``."""
    if one.budget == CATEGORY:
        return label(one.name or "unknown", CATEGORY_LABELS)
    if one.budget == SITE:
        return clean(one.name, 120) if one.name else blamed(one.by[0], shorten)
    return BUDGET_LABELS[one.budget]


def blamed(one: SiteFigure, shorten: Shorten) -> str:
    """A line that had a part in it, with its caller."""
    if one.site is None:
        return label(one.label or "only_torch", SITE_LABELS)
    text = place(one.site, shorten)
    return f"{text} ← {place(one.caller, shorten)}" if one.caller and one.caller != one.site else text


def blame_text(checked: Checked, shorten: Shorten) -> str:
    """Who broke it: ``+32.0 MiB log_metrics (train.py:70)``; empty where that is not known, or the site itself."""
    if not checked.by or checked.budget == SITE:
        return ""
    first = checked.by[0]
    count = format_bytes(first.bytes) if checked.baseline is None else signed_bytes(first.bytes)
    return f"{count} {blamed(first, shorten)}"


def broken_text(one: Checked, shorten: Shorten) -> str:
    """One broken budget in a sentence."""
    assert one.found is not None
    limit = format_bytes(one.limit) if one.baseline is None else f"{format_bytes(one.limit)} by the baseline"
    more = f"{signed_bytes(one.found - one.limit)} over {limit}"
    by = blame_text(one, shorten)
    return f"{_first(one, shorten)}: {format_bytes(one.found)}, {more}" + (f"; most by {by}." if by else ".")


def _first(one: Checked, shorten: Shorten) -> str:
    """What is limited, to begin a sentence with; names stay as they are."""
    what = budget_label(one, shorten)
    return what if one.budget == SITE else what[:1].upper() + what[1:]


def unknown_text(one: Checked, shorten: Shorten) -> str:
    """Why a figure is not known."""
    reason = "no pass of a loop was found" if one.budget == GROWTH else "the recording has no timeline"
    return f"{_first(one, shorten)} is not known: {reason}."


def check_headline(result: CheckResult) -> str:
    """The outcome in one line."""
    count = plural(len(result.checked), "budget")
    if result.broken:
        return f"{len(result.broken)} of {count} broken."
    if result.unknown:
        return f"{len(result.unknown)} of {count} cannot be checked."
    return f"Within {'its budget' if len(result.checked) == 1 else f'all {count}'}."


def first_line(one: Checked) -> Location | None:
    """The reader's own line to look at."""
    return next((where for blame in one.by for where in (blame.caller, blame.site) if where), None)
