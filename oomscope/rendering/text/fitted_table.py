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
    """A table; where it is too wide, its columns of text stand on a line of their own above the figures of each row.

    Where even the figures are too wide, each stands behind its heading, for a figure cut short is a wrong one.

    Args:
        table: the table, its columns of figures behind those of text.
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
        whole, figures = self._grid(table), Padding(self._grid(_figures(table)), (0, 0, 0, 2), expand=False)
        if fits(whole):
            yield whole
        elif fits(figures):
            titles = [Text(_title(table, table.headings), style="dim")]
            titles += [Text(_title(table, row), style="bold") for row in table.rows]
            for title, line in zip(titles, console.render_lines(figures, options, pad=False), strict=True):
                title.overflow = "fold"
                yield title
                yield from line
                yield Segment.line()
        else:
            yield from _listed(table)


def _texts(table: Table) -> int:
    """How many columns of text stand before those of figures."""
    return min(table.right, default=len(table.headings))


def _title(table: Table, row: tuple[str, ...]) -> str:
    return " – ".join(row[: _texts(table)])


def _figures(table: Table) -> Table:
    texts = _texts(table)
    return replace(
        table,
        headings=table.headings[texts:],
        rows=tuple(row[texts:] for row in table.rows),
        right=frozenset(column - texts for column in table.right),
    )


def _listed(table: Table) -> Iterator[RenderableType]:
    for name, *cells in table.rows:
        yield Text(name, style="bold", overflow="fold")
        figures = (f"{heading} {cell}" for heading, cell in zip(table.headings[1:], cells, strict=True))
        yield Padding(Text("; ".join(figures)), (0, 0, 0, 2))
