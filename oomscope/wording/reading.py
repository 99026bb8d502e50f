"""What was odd about a snapshot's file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oomscope.units import format_bytes, plural
from oomscope.wording.template import Sentence, fill

_FOLLOWED = {
    "total_size": "reserved memory is taken from the segments, everything else from the blocks",
    "allocated_size": "allocated memory is taken from the blocks",
    "active_size": "active memory is taken from the blocks",
    "requested_size": "requested memory is taken from the blocks",
}


def _device(values: Mapping[str, Any]) -> str:
    return "the host" if values["device"] is None else f"device {values['device']}"


def _trace(values: Mapping[str, Any]) -> str:
    return "The host's trace" if values["device"] is None else f"The trace of device {values['device']}"


def _some(values: Mapping[str, Any], noun: str) -> str:
    count, total = values["count"], values["total"]
    return f"the only {noun}" if count == total == 1 else f"{count:,} of {plural(total, noun)}"


def _capitalized(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def _sums_differ(values: Mapping[str, Any]) -> str:
    declared, found = format_bytes(values["declared"]), format_bytes(values["found"])
    if declared == found:
        declared, found = f"{values['declared']:,} bytes", f"{values['found']:,}"
    return _capitalized(
        f"{_some(values, 'segment')} of {_device(values)}: {values['key']} contradicts the blocks ("
        f"{declared} declared, {found} found); {_FOLLOWED[values['key']]}."
    )


def _blocks_apart(values: Mapping[str, Any]) -> str:
    verb = "does" if values["count"] == 1 else "do"
    return _capitalized(
        f"{_some(values, 'block')} of {_device(values)} {verb} not begin where the previous block ends."
    )


def _segments_overlap(values: Mapping[str, Any]) -> str:
    verb = "begins" if values["count"] == 1 else "begin"
    return f"{plural(values['count'], 'segment')} of {_device(values)} {verb} inside another segment."


def _devices(values: Mapping[str, Any]) -> str:
    return ", ".join(map(str, values["devices"]))


def _devices_without_trace(values: Mapping[str, Any]) -> str:
    return f"There are segments of device {_devices(values)}, but traces only of devices 0 to {values['last_traced']}."


def _host_segments_elsewhere(values: Mapping[str, Any]) -> str:
    return f"The host's segments name device {_devices(values)} instead of -1 alone."


def _times_missing(values: Mapping[str, Any]) -> str:
    missing = fill("{count:n entry/entries} without a time", values)
    return f"{_trace(values)} has {missing}; none of its times are used."


def _streams_missing(values: Mapping[str, Any]) -> str:
    missing = fill("{count:n entry/entries} without a stream", values)
    return f"{_trace(values)} has {missing}; stream 0 is assumed."


def _requests_clamped(values: Mapping[str, Any]) -> str:
    failed = fill("{count:n failed request} of more than {bytes:bytes}", values)
    return f"{_trace(values)} has {failed}; taken as {format_bytes(values['bytes'])}."


def _cut(values: Mapping[str, Any]) -> str:
    read = f"{plural(values['segments'], 'segment')} and {plural(values['entries'], 'trace entry', 'trace entries')}"
    begin = f"The file is cut off after {values['size']:,} bytes; {read} are before the cut."
    if not values["segments_whole"]:
        return f"{begin} {_cut_before_segments_end(values)}"
    if not values["traces_whole"]:
        trace = "" if values["device"] is None else f" of device {values['device']} and of those after it"
        return (
            f"{begin} The rest of the trace{trace} is missing. The segments are whole and show the memory at the end, "
            "which came later than the last entry; before that, bytes are lower bounds, peaks too."
        )
    return (
        f"{begin} Segments and traces are whole. What stands behind them in the file is missing, which may be the "
        "allocator's settings, annotations, and what oomscope recorded."
    )


def _cut_before_segments_end(values: Mapping[str, Any]) -> str:
    missing = "the other segments" if values["traces_whole"] else "the other segments and the traces"
    if not values["segments"]:
        missing = "the segments" if values["traces_whole"] else "the segments and the traces"
    return f"What is missing: {missing}. All sums of memory are lower bounds."


READING: dict[str, Sentence] = {
    "reading.unknown_top_level_key": "Unknown top-level key '{name}' ({count:n time}); ignored.",
    "reading.unknown_trace_key": "Unknown key '{name}' in trace entries ({count:n time}); ignored.",
    "reading.unknown_segment_key": "Unknown key '{name}' in segments ({count:n time}); ignored.",
    "reading.unknown_block_key": "Unknown key '{name}' in blocks ({count:n time}); ignored.",
    "reading.unknown_annotation_key": "Unknown key '{name}' in annotations ({count:n time}); ignored.",
    "reading.annotations_incomplete": "{count:n annotation} without a name or a stage; ignored.",
    "reading.unknown_action": "Unknown action '{name}' in the trace ({count:n time}); ignored.",
    "reading.unknown_segment_type": "Unknown segment_type '{name}' ({count:n time}); taken as large.",
    "reading.unknown_block_state": "Unknown block state '{name}' ({count:n time}); taken as neither active nor free.",
    "reading.segment_types_missing": "{count:n segment} without segment_type; those above 2 MiB are taken as large.",
    "reading.sums_differ": _sums_differ,
    "reading.blocks_apart": _blocks_apart,
    "reading.segments_overlap": _segments_overlap,
    "reading.devices_without_trace": _devices_without_trace,
    "reading.host_segments_elsewhere": _host_segments_elsewhere,
    "reading.requests_clamped": _requests_clamped,
    "reading.times_missing": _times_missing,
    "reading.streams_missing": _streams_missing,
    "reading.context_no_dict": "The key 'oomscope' holds {kind} instead of a dict; ignored.",
    "reading.context_not_plain": "The key 'oomscope' holds more than plain containers; ignored.",
    "reading.cut": _cut,
    "reading.from_pt_snap": (
        "A database of pt-snap: segments and blocks are rebuilt from its trace. It keeps no times, settings, or free "
        "memory of the card, no stacks of what is older than the trace, and no pools: with CUDA graphs or MemPools, "
        "the cause and what is said of free memory may be wrong. The pickle that it was made from has all this."
    ),
    "reading.from_profile": (
        "Made from a profile, not recorded by the allocator: each device's memory is one made-up segment, and the last "
        "device is the CPU."
    ),
}
