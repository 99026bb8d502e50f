"""What is said of the ranks of a job, and of many dumps."""

from __future__ import annotations

from oomscope.analysis.compare.digest import Digest
from oomscope.analysis.compare.ranks import Outlier, OutlierSite, Ranks, SameEnd, SiteSpread, number
from oomscope.analysis.compare.triage import TriageGroup
from oomscope.units import format_bytes, plural
from oomscope.wording.clean import clean
from oomscope.wording.diff import signed_bytes
from oomscope.wording.labels import CAUSE_LABELS, SITE_LABELS, label
from oomscope.wording.places import place

REASON_WORDS = {
    "oom": "out of memory",
    "peers": "ended with the job",
    "exception": "exception",
    "exit": "ended",
    "request": "asked for",
    "signal": "asked for",
}
_MOST = 12
BARS_READING = (
    "The peak of each rank. Dashed: the median; shaded: what still counts as like the others; outliers have a colour "
    "of their own."
)
DISTRIBUTION_READING = (
    "How many ranks have which peak; above two the axis is logarithmic, so that single ranks are seen. Dashed: the "
    "median; shaded: what still counts as like the others; outliers have a colour of their own."
)
ORDER_LEAD = "A question mark: nothing but the order of the files tells the rank."


def rank_list(ranks: tuple[int, ...]) -> str:
    """``ranks 0, 1 and 4``; beyond a dozen by number alone."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) > _MOST:
        return f"{len(ranks):,} ranks"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


def rank_ranges(ranks: tuple[int, ...]) -> str:
    """``0–3, 5``: ascending `ranks` in short; beyond a dozen ranges how many ranks are left out."""
    ranges: list[list[int]] = []
    for rank in ranks:
        if ranges and rank == ranges[-1][1] + 1:
            ranges[-1][1] = rank
        else:
            ranges.append([rank, rank])
    shown = [str(low) if low == high else f"{low}–{high}" for low, high in ranges[:_MOST]]
    if more := sum(high - low + 1 for low, high in ranges[_MOST:]):
        shown.append(f"and {more:,} more")
    return ", ".join(shown)


def ranks_named(ranks: tuple[int, ...]) -> str:
    """``ranks 0–3, 5``."""
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {rank_ranges(ranks)}"


def missing_ranges(missing: tuple[int, ...]) -> str:
    """Of which ranks there is no file, with their numbers; empty where there is one of each."""
    return f"There is no file of {plural(len(missing), 'rank')}: {rank_ranges(missing)}." if missing else ""


def occasion(found: Ranks, bad: int) -> str:
    """How many ranks there are, on how many hosts, and how many files could not be read."""
    hosts = len({one.host for one in found.ranks if one.host})
    parts = [plural(len(found.ranks), "rank"), plural(hosts, "host") if hosts else ""]
    parts.append(f"{plural(bad, 'file')} could not be read" if bad else "")
    return " · ".join(filter(None, parts))


def apart_lead(found: Ranks) -> str:
    """What makes a rank an outlier here."""
    if found.peaks is None:
        return ""
    return (
        f"The peak departs from the median, {format_bytes(found.peaks.median)}, by more than "
        f"{format_bytes(found.peaks.apart)}. Each site has a median of its own, so sites need not add up to the whole."
    )


def spread_lead(found: Ranks) -> str:
    """At which instant the ranks are compared, and what is not counted."""
    unknown = sum(one.peak_allocated is None for one in found.ranks)
    small = "Lines below a thousandth of a rank's peak are not in its digest, and count as 0 here."
    if found.peaks is None:
        return f"As the file of each rank ends: no peak is known. {small}"
    without = f" {plural(unknown, 'rank')} without a known peak left out." if unknown else ""
    return f"At the peak of each rank. {small}{without}"


def same_end_words(one: SameEnd) -> str:
    """How ranks ended that ended alike; for a failure the verdict on the first of them."""
    if one.cause is None:
        return _reason_words(one.reason)
    cause = f"{REASON_WORDS['oom']}: {label(one.cause, CAUSE_LABELS)}"
    return f"{cause}. On rank {one.ranks[0]}: {clean(one.headline, 500)}" if one.headline else cause


def ranks_headline(found: Ranks) -> str:
    """What happened, in a sentence or two."""
    return " ".join(ranks_said(found))


def ranks_said(found: Ranks) -> tuple[str, ...]:
    """What happened: the sentences of the headline."""
    said = []
    if found.first is not None:
        text = f"Rank {found.first} ran out of memory first"
        said.append(f"{text}; {rank_list(found.followed)} followed." if found.followed else f"{text}.")
    if found.outliers:
        said.append(outlier_text(found.outliers[0]))
        if more := len(found.outliers) - 1:
            said.append(f"{plural(more, 'more rank')} {'departs' if more == 1 else 'depart'} from the others.")
    elif len(found.ranks) > 1:
        said.append(_no_outlier_text(found))
    return tuple(said) or ("One rank.",)


def _no_outlier_text(found: Ranks) -> str:
    peaks, known = found.peaks, sum(one.peak_allocated is not None for one in found.ranks)
    if peaks is None or known < 2:
        which = f"Of {len(found.ranks):,} ranks the peak of one is known" if known else "No peak is known"
        return f"{which}: nothing to compare."
    if not peaks.alike:
        least, most = format_bytes(peaks.min), format_bytes(peaks.max)
        return (
            f"Peaks lie between {least} (rank {peaks.min_rank}) and {most} (rank {peaks.max_rank}); no rank departs by "
            "much more than they differ anyway."
        )
    every = "All ranks" if known == len(found.ranks) else f"The {known:,} ranks with a known peak"
    return f"{every} hold about the same at their peaks."


def outlier_text(one: Outlier) -> str:
    """By how much a rank departs, and where most of it is."""
    held = "more" if one.bytes > 0 else "less"
    text = f"Rank {one.rank} holds {format_bytes(abs(one.bytes))} {held} than the median at its peak"
    if not one.sites:
        return f"{text}."
    first = one.sites[0]
    return f"{text}, most of it at {line_words(first)}: {signed_bytes(first.bytes - first.median)}."


def line_words(row: OutlierSite | SiteSpread) -> str:
    """A line with its caller; files are named from the program's folder already."""
    if row.site is None:
        return label(row.label or "only_torch", SITE_LABELS)
    text = place(row.site, _as_it_is)
    return f"{text} ← {place(row.caller, _as_it_is)}" if row.caller and row.caller != row.site else text


def _as_it_is(path: str) -> str:
    return clean(path, 160)


def missing_text(found: Ranks) -> str:
    """Of which ranks there is no file; empty where there is one of each."""
    return f"No file of {rank_list(found.missing)}." if found.missing else ""


def end_words(one: Digest) -> str:
    """How a rank ended; of which file that is, where nothing but the order of the files tells the rank."""
    text = _reason_words(one.reason)
    if one.cause is not None:
        text = f"{REASON_WORDS['oom']}: {label(one.cause, CAUSE_LABELS)}"
    return f"{text} ({clean(one.file, 80)})" if one.rank_source == "order" else text


def _reason_words(reason: str | None) -> str:
    return REASON_WORDS.get(reason or "", clean(reason, 40) if reason else "no OOM")


def rank_words(one: Digest) -> str:
    """The number of a rank, with a mark where nothing but the order of the files tells it."""
    return f"{number(one)}{'?' if one.rank_source == 'order' else ''}"


def group_words(one: TriageGroup) -> str:
    """What a group is about."""
    if one.cause is None:
        return "no request failed"
    return clean(one.headline, 900) if one.headline else label(one.cause, CAUSE_LABELS)
