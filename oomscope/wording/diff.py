"""What is said of two recordings side by side."""

from __future__ import annotations

from collections.abc import Mapping

from oomscope.analysis.compare.matching import MOVED, RENAMED
from oomscope.analysis.compare.records import (
    BLOCKS,
    GONE,
    INSTANT,
    NEW,
    RATIO,
    ROUNDING,
    SIZES,
    UNCHANGED,
    Diff,
    Scaling,
    SiteChange,
)
from oomscope.units import format_bytes, plural
from oomscope.wording.clean import clean
from oomscope.wording.labels import CATEGORY_LABELS, SITE_LABELS, label
from oomscope.wording.paths import Shorten
from oomscope.wording.places import place

NOTHING_CHANGED = "Nothing changed."
REASON_LABELS: Mapping[str, str] = {
    NEW: "new",
    GONE: "gone",
    SIZES: "other sizes",
    ROUNDING: "rounded otherwise",
    INSTANT: "",
    UNCHANGED: "",
}
WHAT_CHANGED = "What changed"
INSTANT_TITLE = "Only because the instants lie at other points of a pass"
ROUNDING_TITLE = "The same requests, in blocks of another size"
_INSTANTS = {"oom": "at the OOM", "peak": "at the peak", "end": "at the end", "entry": "at one entry"}
_NEGLIGIBLE = 1000
"""One in so many bytes is not worth a sentence."""


def signed_bytes(count: int) -> str:
    """A change for reading: ``+1.75 GiB``, ``−20.0 MiB``, ``0 B``."""
    return f"+{format_bytes(count)}" if count > 0 else format_bytes(count).replace("-", "−")


def times(factor: float) -> str:
    """``× 1.5``."""
    return f"× {factor:.4g}"


def instant_of(diff: Diff) -> str:
    """Which instants are compared: ``at the peak``."""
    kinds = [_INSTANTS.get(side.kind, side.kind) for side in (diff.before, diff.after)]
    if kinds[0] == kinds[1]:
        return kinds[0]
    return f"{kinds[1]} of AFTER, against {kinds[0].removeprefix('at ')} of BEFORE"


def diff_headline(diff: Diff) -> str:
    """The total in one sentence."""
    if diff.nothing_changed:
        return NOTHING_CHANGED
    was, now = diff.before.totals.allocated, diff.after.totals.allocated
    if was == now:
        return f"As much is allocated {instant_of(diff)}: {format_bytes(now)}."
    share = f" ({(now - was) / was:+.0%})".replace("-", "−") if was else ""
    spelled = f"{format_bytes(was)} → {format_bytes(now)}"
    return f"{signed_bytes(now - was)} allocated {instant_of(diff)}: {spelled}{share}."


def diff_lead(diff: Diff, shorten: Shorten) -> list[str]:
    """What explains it, in a few sentences."""
    if diff.nothing_changed:
        return []
    sentences = [] if diff.scaling is None else scaling_text(diff.scaling)
    return sentences + _instants(diff) + _rounding(diff) + _program(diff, shorten)


def scaling_text(scaling: Scaling) -> list[str]:
    """The one factor, with all that it explains."""
    names = _listed([label(name, CATEGORY_LABELS) for name in scaling.category]) or "the blocks of some sites"
    text = f"One factor: {names} {times(scaling.factor)}, as another batch or length makes them"
    said = [f"{text}; {signed_bytes(scaling.explained)} at {plural(scaling.sites, 'site')}."]
    if scaling.squared:
        said.append(
            f"{signed_bytes(scaling.squared)} of it is {times(scaling.factor**2)}, the square, "
            "as attention scores grow with the length."
        )
    return said


def _program(diff: Diff, shorten: Shorten) -> list[str]:
    """What changed beyond one factor: the largest site in words, and how much there is in all."""
    least = max(diff.before.totals.allocated, diff.after.totals.allocated) // _NEGLIGIBLE
    rows = [row for row in diff.sites if row.is_of_program and abs(row.rest) > least]
    if not rows:
        return ["Beyond that no line holds more or less."]
    first = rows[0]
    text = f"{'Beyond that: ' if diff.scaling else 'Most of it: '}{site_words(first, shorten)}, {change_words(first)}."
    if len(rows) > 1:
        rest = sum(row.rest for row in rows[1:])
        text += f" {plural(len(rows) - 1, 'more line')}: {signed_bytes(rest)} in all."
    return [text]


def _instants(diff: Diff) -> list[str]:
    rows = [row for row in diff.sites if row.reason in (INSTANT, RATIO) and row.rest]
    rest = sum(row.rest for row in rows)
    least = max(diff.before.totals.allocated, diff.after.totals.allocated) // _NEGLIGIBLE
    if sum(abs(row.rest) for row in rows) <= least:
        return []
    return [
        f"{signed_bytes(rest)} at {plural(len(rows), 'site')} only because the two instants fall at other points of a "
        "pass: both recordings hold as many of these blocks at some time."
    ]


def _rounding(diff: Diff) -> list[str]:
    total = sum(row.by_rounding for row in diff.sites)
    least = max(diff.before.totals.allocated, diff.after.totals.allocated) // _NEGLIGIBLE
    if abs(total) <= least:
        return []
    return [f"{signed_bytes(total)} because the allocator made blocks of other sizes for the same requests."]


def change_words(row: SiteChange) -> str:
    """The change of one site, for a sentence: ``+32.0 MiB, 8 → 12 blocks``."""
    return ", ".join(filter(None, (signed_bytes(row.rest), why(row))))


def why(row: SiteChange) -> str:
    """Why a site changed: ``8 → 12 blocks``, ``× 1.5``, ``new, 4 blocks``."""
    blocks = f"{row.before_blocks:,} → {row.after_blocks:,} blocks" if row.before_blocks != row.after_blocks else ""
    parts = [times(row.factor) if row.factor is not None else "", REASON_LABELS.get(row.reason, ""), blocks]
    if row.reason == BLOCKS and not blocks:
        parts.append("other blocks")
    return ", ".join(filter(None, parts))


def site_words(row: SiteChange, shorten: Shorten) -> str:
    """The site of a row, or why it has none."""
    return place(row.site, shorten) if row.site else label(row.label or "only_torch", SITE_LABELS)


def place_words(row: SiteChange, shorten: Shorten, shorten_old: Shorten) -> str:
    """Site, caller, and what the site was before: ``loss (a.py:9) ← main (t.py:1); was loss (b.py:7)``."""
    text = site_words(row, shorten)
    if row.caller and row.caller != row.site:
        text += f" ← {place(row.caller, shorten)}"
    old = row.old_site
    if old is not None and row.matched in (MOVED, RENAMED):
        text += f"; was {place(old, shorten_old)}"
    return text


def file_words(name: str) -> str:
    """The file of one side, fit to be shown."""
    return clean(name, 200)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""
