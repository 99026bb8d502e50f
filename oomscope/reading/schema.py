"""Which releases of torch write a layout. No snapshot says its version; each release left its own marks."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from oomscope.frozen import frozen

PROFILE = "torch.profiler, not a snapshot"


@frozen
class Marks:
    """The keys that were met at each level; empty where there was nothing to look at."""

    is_list: bool
    top: AbstractSet[Any]
    settings: AbstractSet[Any]
    segments: AbstractSet[Any]
    blocks: AbstractSet[Any]
    entries: AbstractSet[Any]


def schema_of(marks: Marks) -> str:
    """The releases, such as ``2.10-2.11``; ``unknown`` where nothing tells.

    An empty trace hides the marks that its entries would bear: the range is then as wide as the rest allows.
    """
    if marks.is_list:
        return _schema_of_list(marks)
    if marks.segments and "allocated_size" not in marks.segments:
        return PROFILE
    if "history" in marks.blocks or (marks.blocks and "address" not in marks.blocks):
        return "2.0"
    for found, releases in (
        ("internal_metadata" in marks.entries, "2.15"),
        ("host_traces" in marks.top, "2.14-2.15"),
        ("pool_id" in marks.entries, "2.12-2.13"),
        ("user_metadata" in marks.entries, "2.10-2.11"),
    ):
        if found:
            return releases
    return _schema_before_2_10(marks)


def _schema_before_2_10(marks: Marks) -> str:
    # Without entries, nothing tells a later release from one of these.
    traced = bool(marks.entries)
    if "graph_capture_record_stream_reuse" in marks.settings:
        return "2.9" if traced else "2.9-2.13"
    if "compile_context" in marks.entries:
        return "2.8"
    if "external_annotations" in marks.top:
        return "2.5-2.7" if traced else "2.5-2.8"
    if "allocator_settings" in marks.top:
        return "2.3-2.4"
    if "time_us" in marks.entries:
        return "2.2"
    if marks.segments or marks.entries:
        return "2.1" if traced else "2.1-2.2"
    return "unknown"


def _schema_of_list(marks: Marks) -> str:
    """`torch.cuda.memory_snapshot()`, or `_snapshot()` of 1.13: the list of segments alone."""
    if "address" in marks.blocks or "segment_pool_id" in marks.segments:
        return "2.1+, segments only"
    if "requested_size" in marks.blocks:
        return "2.0, segments only"
    return "1.13 or older" if marks.segments else "unknown"
