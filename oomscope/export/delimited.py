"""Tables as CSV (RFC 4180): UTF-8, a line of names, nulls as empty cells."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from oomscope.export.tables import Column, ExportTable

_RUN_BY_SPREADSHEETS = ("=", "+", "-", "@")


def to_csv(table: ExportTable) -> Iterator[bytes]:
    """The rows of `table`, some thousand at a time.

    A text that a spreadsheet would run as a formula has an apostrophe before it, as they write it themselves.
    """
    begun = False
    for part in table.parts():
        sink = io.StringIO(newline="")
        writer = csv.writer(sink, lineterminator="\r\n")
        if not begun:
            writer.writerow(part)
            begun = True
        writer.writerows(zip(*(_harmless(column).listed() for column in part.values()), strict=True))
        yield sink.getvalue().encode("utf-8", "backslashreplace")


def _harmless(column: Column) -> Column:
    if column.texts is None:
        return column
    texts = tuple(f"'{text}" if text.startswith(_RUN_BY_SPREADSHEETS) else text for text in column.texts)
    return Column(column.values, column.known, texts)
