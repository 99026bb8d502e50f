"""The plain containers of a file to a Snapshot."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from oomscope.errors import SnapshotError
from oomscope.model import Annotation, Blocks, Cut, Device, Layout, Segments, Snapshot, Trace, note
from oomscope.reading.columns import columns_of, integers, kind_of
from oomscope.reading.context import context_of
from oomscope.reading.describe import describe
from oomscope.reading.salvage import TOP_KEYS
from oomscope.reading.schema import PROFILE, Marks, schema_of
from oomscope.reading.segments import SegmentReader
from oomscope.reading.tables import Tables
from oomscope.reading.traces import TraceBuilder

_ANNOTATION_KEYS = frozenset({"stage", "name", "device", "time_us"})
_HOST = -1
_MOST_STRANGERS = 8
"""So many devices are named in a note."""


def assemble(document: Any, tables: Tables, cut: Cut | None = None) -> Snapshot:
    """The snapshot in `document`.

    Args:
        document: what the file holds: a dict, or a bare list of segments. A trace in it is a list of entries, or a
            `TraceBuilder` that has taken them already.
        tables: empty, or begun by those builders.
        cut: what is missing of it, where the file was cut off.

    Raises:
        SnapshotError: `document` is no snapshot, or something in it is of another type than torch writes.
    """
    is_list = isinstance(document, list)
    top = {"segments": document} if is_list else document
    if not (_is_snapshot(top) or (cut is not None and "oomscope" in top)):
        raise SnapshotError(f"this is not a memory snapshot but {describe(document)}.")
    # Traces first: those taken off the unpickler were numbered before anything else, too.
    traces = [_trace(item, index, tables) for index, item in enumerate(_list(top, "device_traces"))]
    host_trace = _trace(_list(top, "host_traces"), None, tables)
    segments = SegmentReader(_list(top, "segments"), tables)
    host_segments = SegmentReader(_list(top, "host_segments"), tables, "host_segments")
    settings = _optional(top, "allocator_settings", dict)
    marks = Marks(
        is_list=is_list,
        top=top.keys(),
        settings=(settings or {}).keys(),
        segments=segments.keys,
        blocks=segments.block_keys,
        entries=set().union(*(trace.keys for trace in (*traces, host_trace))),
    )
    devices = _devices(segments.layouts(), traces, tables, cut)
    host = _host(host_segments.layouts(), host_trace, tables)
    annotations = _annotations(_list(top, "external_annotations"), tables)
    context = context_of(top, tables.notes)
    for key in top:
        if key not in TOP_KEYS:
            tables.notes.unknown("reading.unknown_top_level_key", key)
    if cut is not None:
        entries = sum(len(device.trace) for device in devices)
        tables.notes.add(note("reading.cut", **asdict(cut), entries=entries, segments=len(_list(top, "segments"))))
    schema = schema_of(marks)
    if schema == PROFILE:
        tables.notes.add(note("reading.from_profile"))
    return Snapshot(
        devices=devices,
        stacks=tables.stacks.table(),
        pools=tables.pools.pools(),
        settings=settings,
        annotations=annotations,
        context=context,
        schema=schema,
        notes=tables.notes.all(),
        host=host,
        ring_entries=_ring_entries(top),
        cut=cut,
    )


def _is_snapshot(top: Any) -> bool:
    if not isinstance(top, dict):
        return False
    segments = top.get("segments")
    if "segments" not in top and "device_traces" not in top:
        return False
    if not isinstance(segments, list) or not segments:
        return "device_traces" in top or segments == []
    return isinstance(segments[0], dict) and "total_size" in segments[0]


def _list(top: dict[Any, Any], key: str) -> list[Any]:
    return _optional(top, key, list) or []


def _optional(top: dict[Any, Any], key: str, kind: type) -> Any:
    value = top.get(key)
    if not (value is None or isinstance(value, kind)):
        raise SnapshotError(f"the snapshot's '{key}' is {kind_of(value)}, not {kind_of(kind())}.")
    return value


def _trace(item: Any, device: int | None, tables: Tables) -> TraceBuilder:
    """The trace in `item`: of a device, or of the host where that is None."""
    name = "the host's trace" if device is None else f"device {device}'s trace"
    if isinstance(item, TraceBuilder):
        item.name, item.device = name, device
        return item
    if not isinstance(item, list):
        raise SnapshotError(f"{name} is {kind_of(item)}, not a list of entries.")
    builder = TraceBuilder(name, tables, device)
    builder.extend_all(item)
    return builder


def _devices(
    layouts: dict[int, Layout], traces: list[TraceBuilder], tables: Tables, cut: Cut | None
) -> tuple[Device, ...]:
    finished = {index: trace.finish() for index, trace in enumerate(traces) if len(trace)}
    strangers = sorted(index for index in layouts if not 0 <= index < len(traces))
    traces_whole = cut is None or cut.traces_whole
    if traces and strangers and traces_whole:
        found = tuple(strangers[:_MOST_STRANGERS])
        tables.notes.add(note("reading.devices_without_trace", devices=found, last_traced=len(traces) - 1))
    empty = Layout(Segments.empty(), Blocks.empty())
    return tuple(
        Device(
            index,
            layouts.get(index, empty),
            finished.get(index) or Trace.empty(),
            cut=not traces_whole and index >= (cut.device or 0 if cut else 0),
        )
        for index in sorted(layouts.keys() | finished.keys())
    )


def _host(layouts: dict[int, Layout], trace: TraceBuilder, tables: Tables) -> Device | None:
    if not layouts and not len(trace):
        return None
    if layouts.keys() - {_HOST}:
        tables.notes.add(note("reading.host_segments_elsewhere", devices=tuple(sorted(layouts)[:_MOST_STRANGERS])))
    layout = layouts.get(_HOST, Layout(Segments.empty(), Blocks.empty()))
    return Device(_HOST, layout, trace.finish())


def _annotations(rows: list[Any], tables: Tables) -> tuple[Annotation, ...]:
    def where(row: int) -> str:
        return f"entry {row} of 'external_annotations'"

    columns, nothing = columns_of(rows, where), [None] * len(rows)
    tables.notes.unknown_keys("reading.unknown_annotation_key", columns, _ANNOTATION_KEYS)
    stages, names = columns.get("stage", nothing), columns.get("name", nothing)
    for row, pair in enumerate(zip(stages, names, strict=True)):
        if not all(isinstance(text, (str, type(None))) for text in pair):
            raise SnapshotError(f"{where(row)} has {kind_of(pair[0])} and {kind_of(pair[1])} as 'stage' and 'name'.")
    devices = integers(columns, "device", len(rows), where, 0).tolist()
    times = integers(columns, "time_us", len(rows), where, 0).tolist()
    found = tuple(map(Annotation, stages, names, devices, times))
    # torch writes whatever it was given to annotate: one that is no range is no reason to lose the others.
    ranges = tuple(one for one in found if one.stage is not None and one.name is not None)
    if len(ranges) < len(found):
        tables.notes.add(note("reading.annotations_incomplete", count=len(found) - len(ranges)))
    return ranges


def _ring_entries(top: dict[Any, Any]) -> int | None:
    bound = top.get("trace_alloc_max_entries")
    return bound if isinstance(bound, int) and bound > 0 else None
