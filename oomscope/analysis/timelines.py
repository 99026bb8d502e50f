"""What a timeline by category says: its peak, what that was made of, and how each category went."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from oomscope.frozen import frozen
from oomscope.model import IntArray
from oomscope.model.category_timeline import CategoryTimeline


@frozen
class CategoryCourse:
    """One category: bytes when the total was highest, at its own highest, at the first and the last point."""

    category: str
    at_peak: int
    highest: int
    highest_at: int
    first: int
    last: int


@frozen(eq=False)
class TimelineFindings:
    """What a report shows of a timeline.

    Attributes:
        timeline: the timeline.
        peak: bytes at the highest point.
        peak_at: its number.
        lowest: the least total; below zero where frees of what was made before the recording are in it.
        courses: a category each, what is largest at the peak first.
    """

    timeline: CategoryTimeline
    peak: int
    peak_at: int
    lowest: int
    courses: tuple[CategoryCourse, ...]


def timeline_findings(timeline: CategoryTimeline) -> TimelineFindings | None:
    """What `timeline` says; None where it has no point."""
    if not len(timeline):
        return None
    total = timeline.total
    at = int(total.argmax())
    courses = [
        CategoryCourse(name, *map(int, (column[at], column.max(), column.argmax(), column[0], column[-1])))
        for name, column in zip(timeline.categories, timeline.bytes.T, strict=True)
    ]
    courses.sort(key=lambda course: (-course.at_peak, -course.highest))
    return TimelineFindings(timeline, int(total[at]), at, int(total.min()), tuple(courses))


def thinned(timeline: CategoryTimeline, most: int) -> IntArray:
    """Numbers of at most `most` points, in order, the highest of each stretch: no peak is lost."""
    count = len(timeline)
    if count <= most:
        return np.arange(count)
    total, edges = timeline.total, np.linspace(0, count, most + 1).astype(np.int64)
    return np.array([begin + int(total[begin:end].argmax()) for begin, end in pairwise(edges)])
