"""The other figures of the page: steps, lifetimes, and memory under other settings."""

from __future__ import annotations

from markupsafe import Markup

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.whatif.records import WhatIf, WhatIfRow
from oomscope.rendering.html import charts
from oomscope.rendering.html.lifespans import lifespans
from oomscope.rendering.html.svg import StyleSheet, inline_svg, plain_name, settings
from oomscope.units import format_bytes, format_limit, plural
from oomscope.wording.clean import clean

_LONGEST_LABEL = 34


def steps_figure(device: DeviceFindings, sheet: StyleSheet) -> Markup | None:
    """Peak memory per step; None where there are fewer than two."""
    steps = device.steps.steps
    if len(steps) < 2:
        return None
    peaks, ends = [step.peak_allocated for step in steps], [step.end_allocated for step in steps]
    description = (
        f"{plural(len(steps), 'step')}. Peak memory runs from {format_bytes(peaks[0])} in the first to "
        f"{format_bytes(peaks[-1])} in the last; memory left at the end of a step from {format_bytes(ends[0])} to "
        f"{format_bytes(ends[-1])}."
    )
    with settings("fig-steps"):
        figure = charts.steps(peaks, ends, [plain_name(step.name) for step in steps])
        return inline_svg(figure, "fig-steps", "Peak memory per step", description, sheet)


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


def whatif_figure(answer: WhatIf, sheet: StyleSheet) -> Markup | None:
    """Peak reserved memory under each setting; None where there is nothing to compare."""
    bars = [_bar(number, row) for number, row in enumerate(answer.rows, 1) if row.peak_reserved is not None]
    if len(bars) < 2:
        return None
    limit = next((row.limit for row in answer.rows if row.limit is not None), None)
    description = "; ".join(f"{row.setting}: {_note(row)}" for row in answer.rows if row.peak_reserved is not None)
    with settings("fig-whatif"):
        figure = charts.whatif(bars, limit, f"limit {format_bytes(limit)}" if limit is not None else "")
        return inline_svg(
            figure, "fig-whatif", "Peak reserved memory under each setting", clean(description, 1200), sheet
        )


def _bar(number: int, row: WhatIfRow) -> charts.PeakBar:
    peak = row.peak_reserved or 0
    low, high = row.range.get("peak_reserved", (peak, peak))
    # A setting may carry names of the snapshot; what is not plain is left to the table.
    plain = row.setting.isascii() and row.setting.isprintable() and len(row.setting) <= _LONGEST_LABEL
    label = row.setting if plain else f"row {number}"
    return charts.PeakBar(label, peak, low, high, row.oom is not False, row.least_memory, _note(row))


def _note(row: WhatIfRow) -> str:
    outcome = {True: ", fails", False: "", None: ", not certain"}[row.oom]
    least = f"; needs {format_limit(row.least_memory)}" if row.least_memory is not None else ""
    return format_bytes(row.peak_reserved or 0) + outcome + least
