"""What ``oomscope plan`` prints: peaks at other shapes as text, Markdown, JSON or a figure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from oomscope.analysis.plan.records import Plan, Prediction
from oomscope.rendering.common import plan_tables
from oomscope.rendering.common.tables import Table
from oomscope.rendering.json_plain import dumped, plain
from oomscope.rendering.markdown import escaped, table_text
from oomscope.rendering.text import terminal
from oomscope.rendering.text.fitted_table import FittedTable
from oomscope.units import format_bytes
from oomscope.wording import say
from oomscope.wording.plan import EXPLAINED, LARGEST_TITLE, largest_sentences, least_text, shape_text

SCHEMA_VERSION = 1
_BAR = 40


def to_json(plan: Plan) -> str:
    """The document that ``oomscope plan --format json`` prints."""
    return dumped(as_document(plan)) + "\n"


def as_document(plan: Plan) -> dict[str, Any]:
    """The plan as plain containers."""
    return {
        "schema_version": SCHEMA_VERSION,
        "device": plan.device,
        "from": [
            {"file": one.name, "at": plain(shape), "steps": one.steps, "ends_early": one.ends_early}
            for one in plan.sources
            for shape in one.shapes
        ],
        "predictions": [_prediction(row) for row in plan.predictions],
        "largest": [plain(one) for one in plan.largest],
        "alignment": {
            "matched": plan.alignment.matched,
            "unmatched": plan.alignment.unmatched,
            "unmatched_bytes": plan.alignment.unmatched_bytes,
            "notes": [say(one) for one in plan.alignment.notes],
        },
        "notes": [say(one) for one in plan.notes],
        "next": ["oomscope whatif SNAPSHOT --remedies"],
    }


def _prediction(row: Prediction) -> dict[str, Any]:
    return {
        "for": plain(row.shape),
        "setting": row.setting,
        "peak_allocated": plain(row.peak_allocated),
        "peak_reserved": plain(row.peak_reserved),
        "at_peak": plain(row.at_peak),
        "phase": row.phase,
        "cards": [plain(card) for card in row.cards],
        "notes": [say(one) for one in row.notes],
    }


def to_text(plan: Plan, width: int = terminal.WIDTH) -> str:
    """The plan as plain text of at most `width` columns."""
    return terminal.plain(Group(*_shown(plan)), width)


def shown(plan: Plan) -> RenderableType:
    """The plan for a rich console."""
    return Group(*_shown(plan))


def _shown(plan: Plan) -> Iterator[RenderableType]:
    yield from (Text(plan_tables.rests_on(plan)), Text(plan_tables.alignment(plan)), Text())
    yield from _section(plan_tables.predictions(plan))
    yield from _bars(plan)
    if plan.largest:
        yield Text(LARGEST_TITLE, style="bold")
        yield from (Text(f"- {largest_sentences(found)}") for found in plan.largest)
        yield Text()
    yield from (Text(f"- {remark}") for remark in plan_tables.remarks(plan))
    yield from (Text(), Text(EXPLAINED))


def _section(table: Table) -> Iterator[RenderableType]:
    yield Text(table.title, style="bold")
    yield FittedTable(table, terminal.grid_of)
    yield Text()


def _bars(plan: Plan) -> Iterator[RenderableType]:
    """The peak at each shape as a bar, with a mark for each card within the scale.

    Of reserved memory; of allocated memory where the peaks are lower bounds.
    """
    if len(plan.predictions) < 2:
        return
    cards = {card.gpu: card.capacity for row in plan.predictions for card in row.cards}
    if plan.at_least:
        sizes = [row.peak_allocated.low for row in plan.predictions]
        texts, peak = [least_text(row.peak_allocated) for row in plan.predictions], max(sizes)
    else:
        sizes = [row.peak_reserved.bytes for row in plan.predictions]
        texts, peak = [*map(format_bytes, sizes)], max(row.peak_reserved.high for row in plan.predictions)
    near = [size for size in cards.values() if size <= 1.5 * peak]
    top = max([peak, *near])
    names = [shape_text(row.shape) for row in plan.predictions]
    longest = max(map(len, names))
    for name, size, text in zip(names, sizes, texts, strict=True):
        bar = list("█" * max(round(_BAR * size / top), 1))
        line = bar + [" "] * (_BAR + 1 - len(bar))
        for mark in near:
            line[min(round(_BAR * mark / top), _BAR)] = "|"
        yield Padding(Text(f"{name:<{longest}}  {''.join(line)} {text}"), (0, 0, 0, 2))
    told = {name: format_bytes(size) for name, size in cards.items() if size in near}
    marks = ", ".join(name if size in name else f"{name} {size}" for name, size in told.items())
    if marks:
        yield Padding(Text(f"| {marks}", style="dim"), (0, 0, 0, 2))
    yield Text()


def to_markdown(plan: Plan) -> str:
    """The plan as GitHub-flavoured Markdown."""
    parts = ["### What fits", escaped(plan_tables.rests_on(plan)), escaped(plan_tables.alignment(plan))]
    predictions = plan_tables.predictions(plan)
    parts += [f"{escaped(predictions.title)}:", table_text(predictions)]
    if plan.largest:
        parts.append(table_text(plan_tables.largest(plan)))
    parts.append("\n".join(f"- {escaped(remark)}" for remark in plan_tables.remarks(plan)))
    parts.append(escaped(EXPLAINED))
    return "\n\n".join(filter(None, parts)) + "\n"
