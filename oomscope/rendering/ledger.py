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
    SETTINGS_HEADINGS,
    TITLE,
    enough_text,
    explained,
    is_setting,
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
        for table in tables(ledger):
            yield from (FittedTable(table, terminal.grid_of), Text())
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


def tables(ledger: Ledger) -> list[Table]:
    """The figures, those of settings by themselves; how and at which price stand below, for they are sentences."""
    columns = len(HEADINGS) if says_enough(ledger) else len(HEADINGS) - 1
    kinds = (
        (HEADINGS, [row for row in ledger.rows if not is_setting(row)]),
        (SETTINGS_HEADINGS, [row for row in ledger.rows if is_setting(row)]),
    )
    return [
        Table(TITLE, headings[:columns], tuple(_cells(row)[:columns] for row in rows), frozenset(range(1, columns)))
        for headings, rows in kinds
        if rows
    ]


def _cells(row: RemedyRow) -> tuple[str, ...]:
    return words_of(row).name, peak_text(row), saves_text(row), enough_text(row)


def to_markdown(ledger: Ledger) -> str:
    """The ledger as GitHub-flavoured Markdown."""
    parts = [f"### {TITLE}", escaped(opening_text(ledger))]
    if ledger.rows:
        parts += [table_text(table) for table in tables(ledger)]
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
