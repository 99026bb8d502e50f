"""The other figures of the page: steps and lifetimes."""

from __future__ import annotations

from markupsafe import Markup

from oomscope.analysis.findings import DeviceFindings
from oomscope.rendering.html import charts
from oomscope.rendering.html.lifespans import lifespans
from oomscope.rendering.html.svg import StyleSheet, inline_svg, plain_name, settings
from oomscope.units import format_bytes, plural
from oomscope.wording.loops import pass_word


def steps_figure(device: DeviceFindings, sheet: StyleSheet) -> Markup | None:
    """Peak memory per step; None where there are fewer than two."""
    steps = device.rounds.steps
    if len(steps) < 2:
        return None
    one, several = pass_word(device)
    peaks, ends = [step.peak_allocated for step in steps], [step.end_allocated for step in steps]
    description = (
        f"{plural(len(steps), one, several)}. Peak memory runs from {format_bytes(peaks[0])} in the first to "
        f"{format_bytes(peaks[-1])} in the last; memory left at the end of each {one} from {format_bytes(ends[0])} to "
        f"{format_bytes(ends[-1])}."
    )
    with settings("fig-steps"):
        figure = charts.steps(peaks, ends, [plain_name(step.name) for step in steps], one)
        return inline_svg(figure, "fig-steps", f"Peak memory of each {one}", description, sheet)


def lifetimes_figure(device: DeviceFindings, sheet: StyleSheet) -> Markup | None:
    """Bytes by how long they lived; None where the recording has no times."""
    lives = lifespans(device)
    if lives is None:
        return None
    classes = zip(lives.names, (lives.freed + lives.live).tolist(), strict=True)
    description = "; ".join(f"{name}: {format_bytes(count)}" for name, count in classes)
    with settings("fig-lives"):
        figure = charts.lifetimes(lives.names, lives.freed, lives.live)
        return inline_svg(figure, "fig-lives", "Bytes allocated, by how long they lived", description, sheet)
