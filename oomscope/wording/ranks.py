"""What is said of the ranks of a job, and of many dumps."""

from __future__ import annotations

from oomscope.analysis.compare.digest import Digest
from oomscope.analysis.compare.ranks import Outlier, OutlierSite, Ranks, SiteSpread, number
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


def rank_list(ranks: tuple[int, ...]) -> str:
    """``ranks 0, 1 and 4``; beyond a dozen by number alone."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) > _MOST:
        return f"{len(ranks):,} ranks"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


def ranks_headline(found: Ranks) -> str:
    """What happened, in a sentence or two."""
    said = []
    if found.first is not None:
        text = f"Rank {found.first} ran out of memory first"
        said.append(f"{text}; {rank_list(found.followed)} followed." if found.followed else f"{text}.")
    if found.outliers:
        said.append(outlier_text(found.outliers[0]))
        if more := len(found.outliers) - 1:
            said.append(f"{plural(more, 'more rank')} {'departs' if more == 1 else 'depart'} from the others.")
    elif len(found.ranks) > 1:
        said.append("All ranks hold about the same at their peaks.")
    return " ".join(said) or "One rank."


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
    text = REASON_WORDS.get(one.reason or "", clean(one.reason, 40) if one.reason else "no OOM")
    if one.cause is not None:
        text = f"{REASON_WORDS['oom']}: {label(one.cause, CAUSE_LABELS)}"
    return f"{text} ({clean(one.file, 80)})" if one.rank_source == "order" else text


def rank_words(one: Digest) -> str:
    """The number of a rank, with a mark where nothing but the order of the files tells it."""
    return f"{number(one)}{'?' if one.rank_source == 'order' else ''}"


def group_words(one: TriageGroup) -> str:
    """What a group is about."""
    if one.cause is None:
        return "no request failed"
    return clean(one.headline, 900) if one.headline else label(one.cause, CAUSE_LABELS)
