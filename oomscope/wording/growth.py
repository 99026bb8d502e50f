"""Memory growth in words."""

from __future__ import annotations

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.passes.records import Growth
from oomscope.units import format_bytes
from oomscope.wording.instants import before_oom
from oomscope.wording.loops import pass_word

STEADY = 0.05
"""High-water marks that differ by more are not called steady."""
LEAST_SPREAD = 0.001
"""A smaller difference is said to be this large: "within 0.0 %" would claim more than is known."""


def growth_text(growth: Growth, device: DeviceFindings) -> str:
    """How a site grows: ``+20.0 MiB a pass, 33 alive, since 2.31 s before the OOM``."""
    each = "an entry" if growth.kind == "time" else "a pass"
    alive = f", {growth.generations} alive" if growth.kind == "generations" else ""
    return f"+{format_bytes(growth.bytes_per_step)} {each}{alive}, since {before_oom(device, growth.since_entry)}"


def no_growth(device: DeviceFindings) -> str:
    """The one line of a report without growth."""
    steps, (one, several) = device.rounds, pass_word(device)
    if device.oom is not None and device.oom.verdict.cause == "growth":
        return f"No single line leaves the same behind in every {one}. What keeps the memory that grows is told above."
    peaks = [step.peak_allocated for step in steps.steps[1:]]
    if len(steps.steps) < 2:
        return f"No {one} was seen to repeat, so whether memory grows from one to the next cannot be told."
    if len(peaks) < 2:
        return f"Two {several} are too few to tell whether memory grows from one to the next."
    spread = (max(peaks) - min(peaks)) / max(max(peaks), 1)
    if spread > STEADY:
        later = f"later peaks lie between {format_bytes(min(peaks))} and {format_bytes(max(peaks))}"
        return f"No line leaves more behind in every {one} to the end; {later}."
    if len(device.ooms) > 1:
        return f"No line leaves more behind from one {one} to the next: several {several} ran into the limit."
    spread = max(spread, LEAST_SPREAD)
    return f"No growth: after the first, all {steps.count} {several} peak within {spread:.1%} of each other."
