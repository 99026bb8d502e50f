"""The figure of a plan: peak against one parameter, with its range, and one line for each card."""

from __future__ import annotations

import io
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from oomscope.analysis.plan.records import Plan, Prediction
from oomscope.rendering.html import palette
from oomscope.rendering.html.svg import plain_name
from oomscope.units import GIB

_SIZE = (8.4, 4.6)
_STYLES = ("solid", "dashed", "dashdot", "dotted")
"""Of lines that differ in more than the parameter that is drawn."""
_SETTINGS: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "plan", "text.parse_math": False, "font.size": 10}


def to_svg(plan: Plan) -> str:
    """The figure as a file of SVG: reserved and allocated memory against the parameter with most values."""
    axis = varied(plan)
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.subplots()
        for number, group in enumerate(_groups(plan, axis)):
            _draw(axes, group, axis, _STYLES[number % len(_STYLES)], at_least=plan.at_least)
        for name, size in {card.gpu: card.capacity for row in plan.predictions for card in row.cards}.items():
            axes.axhline(size / GIB, color=palette.LIMIT.light, linewidth=1, linestyle="--")
            axes.annotate(
                plain_name(name), (1, size / GIB), xycoords=("axes fraction", "data"), ha="right", va="bottom"
            )
        axes.set_xlabel(plain_name(axis))
        axes.set_ylabel("GiB")
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(loc="upper left", frameon=False)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        FigureCanvasSVG(figure)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return stream.getvalue()


def varied(plan: Plan) -> str:
    """The parameter with the most values among the predictions."""
    return max(plan.parameters, key=lambda name: len({row.shape[name] for row in plan.predictions}))


def _groups(plan: Plan, axis: str) -> list[list[Prediction]]:
    """Predictions that differ in one parameter only, in its order."""
    found: dict[tuple[object, ...], list[Prediction]] = {}
    for row in plan.predictions:
        others = tuple((name, value) for name, value in row.shape.items() if name != axis)
        found.setdefault((others, row.setting), []).append(row)
    return [sorted(rows, key=lambda row: row.shape[axis]) for rows in found.values()]


def _draw(axes: Axes, rows: list[Prediction], axis: str, style: str, *, at_least: bool) -> None:
    others = ", ".join(plain_name(f"{name}={value}") for name, value in rows[0].shape.items() if name != axis)
    at = [row.shape[axis] for row in rows]
    if at_least:  # what would have been reserved is not known then
        lows = [row.peak_allocated.low / GIB for row in rows]
        name = "allocated, at least"
        axes.plot(at, lows, color=palette.BAR.light, marker="^", markersize=4, linestyle=style,
                  label=f"{name}, {others}" if others else name)  # fmt: skip
        return
    for name, colour in (("reserved", palette.RESERVED), ("allocated", palette.BAR)):
        peaks = [getattr(row, f"peak_{name}") for row in rows]
        axes.plot(at, [one.bytes / GIB for one in peaks], color=colour.light, marker="o", markersize=3, linestyle=style,
                  label=f"{name}, {others}" if others else name)  # fmt: skip
        axes.fill_between(
            at, [one.low / GIB for one in peaks], [one.high / GIB for one in peaks], color=colour.light, alpha=0.15,
            linewidth=0,
        )  # fmt: skip
