"""A table that stays legible where the terminal is narrower than its rows."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text

_ANY_WIDTH = 10_000


class Stacked:
    """A table; where it is too wide, its first column stands on lines of their own above the rest of each row.

    Args:
        whole: the table.
        names: its first column, the heading first.
        rest: its other columns; no cell of them may break across lines.
    """

    def __init__(self, whole: Grid, names: Sequence[str], rest: Grid) -> None:
        self._whole, self._names, self._rest = whole, names, rest

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Called by rich."""
        if console.measure(self._whole, options=options.update(width=_ANY_WIDTH)).maximum <= options.max_width:
            yield self._whole
            return
        lines = console.render_lines(Padding(self._rest, (0, 0, 0, 2)), options)
        for number, (name, line) in enumerate(zip(self._names, lines, strict=True)):
            yield Text(name, style="bold" if number else "dim", overflow="fold")
            yield from line
            yield Segment.line()
