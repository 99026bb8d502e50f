"""Exports that hold bytes by category over time: those of torch.profiler, and the page of mosaic.

``torch.profiler.profile.export_memory_timeline`` (torch 2.0 and later) writes ``[times, sizes]`` with times in µs and a
row of nine sizes a point (the first always 0), or, as ``.raw.json.gz``, ``[time, action, bytes, category]`` an event.
Its HTML is a picture. mosaic's page carries its points as JSON, in GiB rounded to three digits, and leaves out zeros.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from oomscope.errors import SnapshotError
from oomscope.model.arrays import IntArray
from oomscope.model.category_timeline import MOSAIC, PROFILER, PROFILER_RAW, CategoryTimeline
from oomscope.reading.printable import printable

PROFILER_CATEGORIES = (
    "parameter", "optimizer_state", "input", "temporary", "activation", "gradient", "autograd_detail", "unknown",
)  # fmt: skip
"""In the order of ``_CATEGORY_TO_INDEX`` in torch/profiler/_memory_profiler.py."""
PICTURE = b"<title>GPU Memory Timeline HTML</title>"
_ROW = len(PROFILER_CATEGORIES) + 1
_FIELDS, _ACTIONS = 4, 4
_SPEC = re.compile(rb"var spec = (?=\{)")
_GIB = 1 << 30
_ROUNDED = _GIB // 2000
"""mosaic rounds to thousandths of a GiB."""
_MOST_CATEGORIES, _LONGEST_NAME = 200, 120
_LARGEST = 1 << 50
# Since 1970; what is neither is counted by another clock, of which the file does not say the unit.
_IN_US, _IN_NS = (10**14, 10**17), (10**17, 10**20)


class TimelineFoundError(SnapshotError):
    """The file is no snapshot, but a timeline that a report can show.

    Attributes:
        timeline: what it holds.
    """

    def __init__(self, timeline: CategoryTimeline, name: str = "the file") -> None:
        self.timeline = timeline
        maker = "mosaic" if timeline.source == MOSAIC else "torch.profiler"
        super().__init__(
            f"{name}: this is a memory timeline by {maker}, which has no blocks and no stacks; only `oomscope report` "
            "shows it, and for anything else a snapshot is needed."
        )


def of_json(document: Any) -> CategoryTimeline | None:
    """The timeline in `document`; None where it is something else.

    Raises:
        SnapshotError: it looks like one and is damaged.
    """
    if not (isinstance(document, list) and document and isinstance(document[0], list)):
        return None
    if len(document) == 2 and isinstance(document[1], list) and all(isinstance(row, list) for row in document[1][:1]):
        return _of_points(document[0], document[1])
    return _of_events(document) if len(document[0]) == _FIELDS else None


def of_page(page: bytes) -> CategoryTimeline | None:
    """The timeline that the page of mosaic carries; None where it is another page.

    Raises:
        SnapshotError: it is the profiler's picture, or a damaged page of mosaic.
    """
    if PICTURE in page[:1000]:
        raise SnapshotError(
            "this is the HTML of torch.profiler's export_memory_timeline, which holds a picture and no figures; "
            "export it as .json.gz, or record a snapshot."
        )
    match = _SPEC.search(page)
    if match is None or b'"datasets"' not in page:
        return None
    try:
        spec, _ = json.JSONDecoder().raw_decode(page[match.end() :].decode("utf-8", "replace"))
        rows = next(iter(spec["datasets"].values()))
        return _of_rows(rows) if rows and {"event_idx", "sum", "cat"} <= rows[0].keys() else None
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration, OverflowError) as error:
        raise SnapshotError(f"the page's chart is damaged ({printable(str(error), 120)}).") from error


def _of_points(times: list[Any], sizes: list[Any]) -> CategoryTimeline:
    if len(times) != len(sizes) or any(not isinstance(row, list) or len(row) != _ROW for row in sizes):
        raise SnapshotError(f"the memory timeline is damaged: each time needs a row of {_ROW} sizes.")
    found = _integers(sizes, "sizes").reshape(len(sizes), _ROW)
    if found[:, 0].any():
        raise SnapshotError("the memory timeline is damaged: the first size of a row is always 0.")
    return CategoryTimeline(PROFILER, PROFILER_CATEGORIES, found[:, 1:], _from_first(_integers(times, "times")))


def _of_events(events: list[Any]) -> CategoryTimeline:
    if any(not isinstance(row, list) or len(row) != _FIELDS for row in events):
        raise SnapshotError(f"the memory timeline is damaged: an event has {_FIELDS} numbers.")
    found = _integers(events, "events").reshape(len(events), _FIELDS)
    action, category = found[:, 1], found[:, 3]
    if (action < 1).any() or (action > _ACTIONS).any() or (category < 0).any() or (category >= _ROW - 1).any():
        raise SnapshotError("the memory timeline has an action or a category that is not known.")
    change = np.zeros((len(found), len(PROFILER_CATEGORIES)), np.int64)
    change[np.arange(len(found)), category] = found[:, 2]
    # What was there before has no time, and a change of category is two events: neither is an instant of its own.
    ends = np.append(found[1:, 0] != found[:-1, 0], True)
    return CategoryTimeline(
        PROFILER_RAW, PROFILER_CATEGORIES, np.cumsum(change, axis=0)[ends], _from_first(found[ends, 0])
    )


def _of_rows(rows: list[dict[str, Any]]) -> CategoryTimeline:
    """Rows of a chart: an event's number, GiB, and a category's name."""
    names = list(dict.fromkeys(str(row["cat"])[:_LONGEST_NAME] for row in rows))
    if len(names) > _MOST_CATEGORIES:
        raise SnapshotError(f"the page has {len(names):,} categories, more than can be shown.")
    columns = {name: number for number, name in enumerate(names)}
    points = {at: number for number, at in enumerate(sorted({float(row["event_idx"]) for row in rows}))}
    found = np.zeros((len(points), len(names)), np.int64)
    for row in rows:
        size = float(row["sum"]) * _GIB
        if not abs(size) < _LARGEST:
            raise ValueError(f"{row['sum']} GiB")
        found[points[float(row["event_idx"])], columns[str(row["cat"])[:_LONGEST_NAME]]] = round(size)
    return CategoryTimeline(MOSAIC, tuple(names), found, None, _ROUNDED)


def _integers(values: list[Any], name: str) -> IntArray:
    """`values` as int64.

    Raises:
        SnapshotError: one is no whole number, or beyond what memory can hold.
    """
    try:
        found = np.array(values)
    except (ValueError, OverflowError):
        found = np.array(None)
    if found.dtype.kind != "i" or (name == "sizes" and (np.abs(found) > _LARGEST).any()):
        raise SnapshotError(f"the memory timeline is damaged: its {name} are not whole numbers within reason.")
    return found.astype(np.int64)


def _from_first(times: IntArray) -> IntArray | None:
    """`times` in µs from the first; None where they are out of order or of no unit that can be told.

    What was there before the profiler began has the time -1, which is taken for the first.
    """
    known = times[times > 0]
    if not len(known):
        return None
    times = np.where(times > 0, times, known.min())
    first, last = int(times[0]), int(times[-1])
    if (np.diff(times) < 0).any():
        return None
    if _IN_US[0] <= first <= last < _IN_US[1]:
        return times - first
    return (times - first) // 1000 if _IN_NS[0] <= first <= last < _IN_NS[1] else None
