"""The ledger of remedies as text, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from oomscope.analysis.ledger.records import Ledger, RemedyRow
from oomscope.rendering.common.tables import Table
from oomscope.rendering.json_plain import plain
from oomscope.rendering.markdown import escaped, prose, table_text
from oomscope.rendering.text import terminal
from oomscope.rendering.text.fitted_table import FittedTable
from oomscope.wording import say
from oomscope.wording.ledger import (
    HEADINGS,
    NOTHING,
    TITLE,
    enough_text,
    explained,
    opening_text,
    pairs_text,
    peak_text,
    saves_text,
    says_enough,
    skipped_text,
    words_of,
)


def rows_as_dicts(ledger: Ledger) -> list[dict[str, Any]]:
    """The rows of the JSON documents' ``remedies``."""
    return [_row(row) for row in ledger.rows]


def pairs_as_dicts(ledger: Ledger) -> list[dict[str, Any]]:
    """The JSON documents' ``remedy_pairs``."""
    return [
        {
            "slugs": [pair.first.slug, pair.second.slug],
            "values": [pair.first.value, pair.second.value],
            "peak_allocated": plain(pair.peak_allocated),
            "saves_bytes": pair.saves_bytes,
        }
        for pair in ledger.pairs
    ]


def _row(row: RemedyRow) -> dict[str, Any]:
    words = words_of(row)
    return {
        "slug": row.slug,
        "value": row.value,
        "peak_allocated": plain(row.peak_allocated),
        "saves_bytes": row.saves_bytes,
        "enough": row.enough,
        "price": words.price,
        "how": words.how,
        "basis": row.basis,
    }


def shown(ledger: Ledger) -> RenderableType:
    """The ledger for a rich console."""
    return Group(*_shown(ledger))


def _shown(ledger: Ledger) -> Iterator[RenderableType]:
    yield Text(TITLE, style="bold")
    yield from (Text(opening_text(ledger)), Text())
    if ledger.rows:
        yield FittedTable(figures(ledger), terminal.grid_of)
        yield Text()
        for row in ledger.rows:
            words = words_of(row)
            price = f" Price: {words.price}." if words.price else ""
            yield Text(f"- {words.name}: {words.how}.{price}")
        yield Text()
    else:
        yield from (Text(NOTHING), Text())
    for line in (
        *pairs_text(ledger),
        skipped_text(ledger),
        *(f"{say(one)}." for one in ledger.notes),
        explained(ledger),
    ):
        if line:
            yield Padding(Text(line), (0, 0, 0, 0))


def figures(ledger: Ledger) -> Table:
    """The table of figures; how and at which price stand below it, for they are sentences."""
    some_failed = says_enough(ledger)
    headings = HEADINGS[:4] if some_failed else HEADINGS[:3]
    rows = tuple(
        (words_of(row).name, peak_text(row), saves_text(row), *([enough_text(row)] if some_failed else []))
        for row in ledger.rows
    )
    return Table(TITLE, headings, rows, frozenset(range(1, len(headings))))


def to_markdown(ledger: Ledger) -> str:
    """The ledger as GitHub-flavoured Markdown."""
    parts = [f"### {TITLE}", escaped(opening_text(ledger))]
    if ledger.rows:
        parts.append(table_text(figures(ledger)))
        parts.append("\n".join(_item(row) for row in ledger.rows))
    else:
        parts.append(NOTHING)
    parts += [
        "\n".join(escaped(line) for line in pairs_text(ledger)),
        escaped(skipped_text(ledger)),
        *(escaped(f"{say(one)}.") for one in ledger.notes),
        escaped(explained(ledger)),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _item(row: RemedyRow) -> str:
    words = words_of(row)
    price = f" Price: {words.price}." if words.price else ""
    return f"- {escaped(words.name)}: {prose(f'{words.how}.{price}')}"
