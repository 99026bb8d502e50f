"""Memory growth in words."""

from __future__ import annotations

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.passes.records import Growth, Steps
from oomscope.units import format_bytes, plural
from oomscope.wording.instants import before_oom

STEADY = 0.05
"""High-water marks that differ by more are not called steady."""
LEAST_SPREAD = 0.001
"""A smaller difference is said to be this large: "within 0.0 %" would claim more than is known."""


def growth_text(growth: Growth, device: DeviceFindings) -> str:
    """How a site grows: ``+20.0 MiB per step, 33 alive, since 2.31 s before the OOM``."""
    step = "per entry" if growth.kind == "time" else "per step"
    alive = f", {growth.generations} alive" if growth.kind == "generations" else ""
    return f"+{format_bytes(growth.bytes_per_step)} {step}{alive}, since {before_oom(device, growth.since_entry)}"


def no_growth(steps: Steps) -> str:
    """The one line of a report without growth."""
    if len(steps.steps) < 2:
        return "No growth found. The recording has fewer than two steps, so only growth over time was looked for."
    peaks = [step.peak_allocated for step in steps.steps[1:]]
    if len(peaks) < 2:
        return f"No growth found in {plural(steps.count, 'step')}."
    spread = (max(peaks) - min(peaks)) / max(max(peaks), 1)
    if spread > STEADY:
        return f"No site grows from step to step; the peaks of the {steps.count} steps differ by up to {spread:.0%}."
    spread = max(spread, LEAST_SPREAD)
    return f"No growth: after the first, all {steps.count} steps peak within {spread:.1%} of each other."
