"""The figure of a comparison: from what was allocated before, one bar a site, to what is allocated after.

No name of a snapshot enters it: the bars are numbered, and the rows beside the figure have the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from oomscope.frozen import frozen
from oomscope.rendering.html import palette
from oomscope.rendering.html.charts import bytes_axis, canvas
from oomscope.rendering.html.svg import StyleSheet, inline_svg, settings
from oomscope.units import format_bytes

WIDTH, HEIGHT = 560.0, 300.0
RISE, FALL, ENDS = palette.ALARM, palette.CATEGORY_COLOURS["optimizer_state"], palette.SOFT_BAR
_FOOT, _HEAD, _LEFT = 26.0, 12.0, 58.0


@frozen
class Bar:
    """One step: what stands below it, and its change in bytes."""

    label: str
    change: int


def waterfall(before: int, bars: Sequence[Bar], after: int, sheet: StyleSheet) -> Markup:
    """The figure; the changes of `bars` sum to ``after - before``."""
    description = f"From {format_bytes(before)} before to {format_bytes(after)} after: " + "; ".join(
        f"{bar.label} {format_bytes(bar.change)}" for bar in bars
    )
    with settings("fig-change"):
        figure, axes = canvas(WIDTH, HEIGHT)
        axes.set_position(
            (_LEFT / WIDTH, _FOOT / HEIGHT, (WIDTH - _LEFT - 8) / WIDTH, (HEIGHT - _FOOT - _HEAD) / HEIGHT)
        )
        level, levels = before, [before, after]
        axes.bar([0], [before], width=0.72, color=ENDS.light, linewidth=0)
        for at, bar in enumerate(bars, 1):
            colour = RISE if bar.change > 0 else FALL
            axes.bar([at], [bar.change], bottom=[level], width=0.72, color=colour.light, linewidth=0)
            axes.plot([at - 0.64, at + 0.36], [level, level], color=palette.QUIET.light, linewidth=0.7)
            level += bar.change
            levels.append(level)
        axes.bar([len(bars) + 1], [after], width=0.72, color=ENDS.light, linewidth=0)
        highest = max(*levels, 1)
        axes.set_xlim(-0.6, len(bars) + 1.6)
        axes.set_ylim(0, highest * 1.06)
        bytes_axis(axes.yaxis, highest, 5)
        axes.set_xticks(range(len(bars) + 2), ["before", *(bar.label for bar in bars), "after"])
        return inline_svg(figure, "fig-change", "What rose and what fell", description, sheet)
