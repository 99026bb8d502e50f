"""What a report says of a timeline by category."""

from __future__ import annotations

from oomscope.analysis.timelines import TimelineFindings
from oomscope.model.category_timeline import MOSAIC, PROFILER, PROFILER_RAW
from oomscope.units import format_bytes, format_duration, plural
from oomscope.wording.clean import clean
from oomscope.wording.labels import CATEGORY_LABELS

_MADE_BY = {
    PROFILER: "exported by torch.profiler (`export_memory_timeline`, JSON)",
    PROFILER_RAW: "exported by torch.profiler (`export_memory_timeline`, raw events)",
    MOSAIC: "the page of mosaic's `get_memory_profile`",
}
OF_PROFILER = {**CATEGORY_LABELS, "autograd_detail": "autograd detail"}
_MISSING = (
    "lines of code, tensors and Python objects",
    "reserved memory, free memory and its fragmentation",
    "whether a request failed, and the limit",
)
NEXT = "oomscope run PROGRAM"
MISSING_TITLE = "What it does not hold"
TITLE = "Memory by category"
HEADINGS = ("category", "at the peak", "share", "own highest", "first", "last")


def made_by(found: TimelineFindings) -> str:
    """What wrote the timeline."""
    return _MADE_BY[found.timeline.source]


def category_name(found: TimelineFindings, name: str) -> str:
    """What a category is called: torch's as in every report, mosaic's as in its file."""
    return clean(name, 60) if found.timeline.source == MOSAIC else OF_PROFILER[name]


def moment(found: TimelineFindings, at: int) -> str:
    """When the point `at` was: ``1.20 s after the first``, or its number."""
    times = found.timeline.time_us
    if times is None:
        return f"point {at + 1:,} of {len(found.timeline):,}"
    return f"{format_duration(int(times[at]))} after the first"


def timeline_headline(found: TimelineFindings) -> str:
    """The peak and what it was made of, in a sentence."""
    about = "about " if found.timeline.off_by else ""
    largest = [course for course in found.courses if course.at_peak > 0][:2]
    parts = [f"{format_bytes(one.at_peak)} of {category_name(found, one.category)}" for one in largest]
    if sum(course.at_peak > 0 for course in found.courses) > len(largest):
        parts.append("others")
    made_of = f": {', '.join(parts[:-1])}{' and ' if len(parts) > 1 else ''}{parts[-1]}" if parts else ""
    return f"Memory in use peaked at {about}{format_bytes(found.peak)}, {moment(found, found.peak_at)}{made_of}."


def timeline_lead(found: TimelineFindings) -> list[str]:
    """What kind of file it is, and what makes its figures uncertain."""
    said = [
        f"This is a timeline by category, not a snapshot: {made_by(found)}, {plural(len(found.timeline), 'point')}."
    ]
    if found.timeline.source == MOSAIC:
        off_by = format_bytes(found.timeline.off_by)
        said.append(
            f"mosaic rounds to thousandths of a GiB, so each category may be off by {off_by}; it starts at zero, "
            "without what was there before the recording, and guesses categories from names."
        )
    else:
        said.append("It has the tensors that the profiler saw, in its own categories.")
    if found.lowest < 0:
        said.append(
            f"It falls to {format_bytes(found.lowest)}: memory from before the recording was freed in it, so all "
            f"figures are at least {format_bytes(-found.lowest)} too low."
        )
    if found.timeline.time_us is None and found.timeline.source != MOSAIC:
        said.append("Its times are of no clock that can be told, so points are numbered.")
    return said


def missing_lines() -> tuple[str, ...]:
    """What no such file holds."""
    return _MISSING


def what_next() -> str:
    """What would tell the rest."""
    return f"A snapshot has all of this: `{NEXT}` records one, or `torch.cuda.memory._record_memory_history()`."
