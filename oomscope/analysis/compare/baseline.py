"""A baseline: the figures of a recording as plain containers, small enough to commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oomscope.analysis.compare.code_places import Surroundings
from oomscope.analysis.compare.figures import Figures, SiteFigure, kept
from oomscope.analysis.compare.files import below, root_of
from oomscope.analysis.records import Location
from oomscope.errors import RequestError
from oomscope.model import package_path

BASELINE_VERSION = 1
KIND = "oomscope baseline"
_FIGURES = ("peak_allocated", "peak_reserved", "fragmentation", "growth_per_pass")
_MOST_NAMES = 12
"""Of functions around a line; a few tell it."""


def as_baseline(found: Figures) -> dict[str, Any]:
    """The document of a baseline, its files named from the program's folder; `read_baseline` gives the figures back."""
    small = kept(found)
    numbers = {where: number for number, where in enumerate(small.around)}
    root = root_of(where.file for where in found.around)
    return {
        "schema_version": BASELINE_VERSION,
        "kind": KIND,
        **{name: getattr(small, name) for name in _FIGURES},
        "categories": dict(sorted(small.categories.items())),
        "sites": [
            {
                "bytes": one.bytes,
                "category": one.category,
                "line": None if one.site is None else numbers[one.site],
                "caller": None if one.caller is None else numbers[one.caller],
                "label": one.label,
            }
            for one in small.sites
        ],
        "lines": [
            {
                "file": package_path(where.file) or below(where.file, root) or where.file,
                "line": where.line,
                "function": where.function,
                "callers": sorted(around.callers)[:_MOST_NAMES],
                "called": sorted(around.called)[:_MOST_NAMES],
            }
            for where, around in small.around.items()
        ],
    }


def read_baseline(document: Any) -> Figures:
    """The figures of a baseline's `document`.

    Raises:
        RequestError: it is none, or of a version that is not known.
    """
    if not isinstance(document, Mapping) or document.get("kind") != KIND:
        raise RequestError("this is no baseline; make one with --save-baseline")
    if document.get("schema_version") != BASELINE_VERSION:
        raise RequestError(f"this baseline is of version {document.get('schema_version')!r}; make it anew")
    try:
        return _figures(document)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise RequestError(f"this baseline is damaged ({type(error).__name__}: {error}); make it anew") from error


def _figures(document: Mapping[str, Any]) -> Figures:
    around = {}
    for row in document["lines"]:
        where = Location(str(row["file"]), _count(row["line"]), str(row["function"]))
        around[where] = Surroundings(frozenset(map(str, row["callers"])), frozenset(map(str, row["called"])))
    lines = list(around)

    def line(number: int | None) -> Location | None:
        return None if number is None else lines[_count(number)]

    sites = tuple(
        SiteFigure(line(row["line"]), line(row["caller"]), row["label"], _count(row["bytes"]), str(row["category"]))
        for row in document["sites"]
    )
    peak, reserved, stranded, growth = (None if document[one] is None else _count(document[one]) for one in _FIGURES)
    categories = {str(name): _count(count) for name, count in document["categories"].items()}
    return Figures(peak, reserved, stranded, growth, categories, sites, around=around)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value
