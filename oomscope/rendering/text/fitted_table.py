"""A table that stays legible in a terminal narrower than its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text

from oomscope.rendering.common.tables import Table

_ANY_WIDTH = 10_000


class FittedTable:
    """A table; where it is too wide, its first column stands on lines of their own above the rest of each row.

    Where even the rest is too wide, each figure stands behind its heading, for a figure cut short is a wrong one.

    Args:
        table: the table.
        grid: makes what rich shows of it.
    """

    def __init__(self, table: Table, grid: Callable[[Table], Grid]) -> None:
        self._table, self._grid = table, grid

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Called by rich."""

        def fits(shown: RenderableType) -> bool:
            unbound = options.update(width=_ANY_WIDTH)
            return console.measure(shown, options=unbound).maximum <= options.max_width

        table = self._table
        whole, rest = self._grid(table), Padding(self._grid(_without_first(table)), (0, 0, 0, 2), expand=False)
        if fits(whole):
            yield whole
        elif fits(rest):
            names = [Text(table.headings[0], style="dim"), *(Text(row[0], style="bold") for row in table.rows)]
            for name, line in zip(names, console.render_lines(rest, options, pad=False), strict=True):
                name.overflow = "fold"
                yield name
                yield from line
                yield Segment.line()
        else:
            yield from _listed(table)


def _without_first(table: Table) -> Table:
    return replace(
        table,
        headings=table.headings[1:],
        rows=tuple(row[1:] for row in table.rows),
        right=frozenset(column - 1 for column in table.right),
    )


def _listed(table: Table) -> Iterator[RenderableType]:
    for name, *cells in table.rows:
        yield Text(name, style="bold", overflow="fold")
        figures = (f"{heading} {cell}" for heading, cell in zip(table.headings[1:], cells, strict=True))
        yield Padding(Text("; ".join(figures)), (0, 0, 0, 2))
