"""What a report opens with where the file was cut off: nothing that it does not show is denied."""

from __future__ import annotations

from oomscope.analysis.findings import DeviceFindings, Findings
from oomscope.units import format_bytes


def is_cut(findings: Findings) -> bool:
    """Whether the file ends before all that torch recorded: segments or traces are missing."""
    cut = findings.snapshot.cut
    return cut is not None and not (cut.segments_whole and cut.traces_whole)


def what_happened(findings: Findings) -> str:
    """What happened, as far as the file says."""
    recorded = findings.snapshot.recorded
    if recorded.reason != "oom":
        return "The file is cut off; no failed request before that"
    size = recorded.request.alloc_size
    asked = f", {format_bytes(size)} requested" if size else ""
    return f"Out of memory{asked}; the file is cut off before it"


def verdict(findings: Findings, device: DeviceFindings) -> str:
    """The verdict on a device without a failed request before the cut."""
    cut, usage = findings.snapshot.cut, device.usage
    at_least = "" if cut is not None and cut.segments_whole and device.part is None else "at least "
    when = "When the snapshot was taken" if device.part is None else "At the last entry shown"
    if device.peak is None:
        return (
            "The file was cut off before the trace, so it is not known why a request failed, or whether one did: when "
            f"the snapshot was taken, {at_least}{format_bytes(usage.allocated)} was allocated of "
            f"{at_least}{format_bytes(usage.reserved)} reserved."
        )
    peak = device.peak
    return (
        f"The file was cut off before the end of the trace: allocated memory reached at least "
        f"{format_bytes(peak.allocated)}, reserved memory at least {format_bytes(peak.reserved)}; what followed is "
        f"missing. {when}, {at_least}{format_bytes(usage.allocated)} was allocated."
    )
