"""What ``oomscope explain`` prints: messages about memory as text, Markdown or JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from oomscope.messages.records import FIGURES, Log, OomMessage
from oomscope.rendering.common.message_groups import MessageGroup, grouped
from oomscope.rendering.json_plain import dumped, plain
from oomscope.units import format_count, plural
from oomscope.wording import say
from oomscope.wording.clean import clean
from oomscope.wording.messages import NOTHING, UNREAD, headline, next_commands_after

SCHEMA = Path(__file__).with_name("explain.schema.json")
SCHEMA_VERSION = 2
WIDTH = 80
_NO_QUESTION = ("message_gaps.too_old", "message_gaps.comfyui", "message_gaps.other_snapshots")
"""What is to be known of what comes next."""
_MOST_GROUPS = 5
_MOST_PROOFS = 3
_LABEL = 8
_SHOWN = 300


def to_json(log: Log) -> str:
    """The document that ``oomscope explain --format json`` prints."""
    return dumped(as_document(log)) + "\n"


def as_document(log: Log) -> dict[str, Any]:
    """The messages as plain containers; a figure that is not printed is null."""
    return {
        "schema_version": SCHEMA_VERSION,
        "read": {"bytes": log.size, "lines": log.lines, "not_read": log.unread},
        "messages": [_as_dict(message) for message in log.messages],
        "next": list(dict.fromkeys(chain.from_iterable(map(next_commands_after, log.messages)))),
    }


def _as_dict(message: OomMessage) -> dict[str, Any]:
    figures = {name: message.figure(name) for name in FIGURES}
    return {
        "kind": message.kind,
        "refused_by": message.refused_by,
        "line": message.line,
        "text": clean(message.text, len(message.text) + 1),
        "rank": message.rank,
        "device": message.reading.device,
        **{name: None if figure is None else figure.value for name, figure in figures.items()},
        "off_by": {name: figure.off_by for name, figure in figures.items() if figure is not None and figure.off_by},
        "times": message.times,
        "during": message.during,
        "proves": [say(note) for note in message.proves],
        "advice": [say(note) for note in message.advice],
        "cannot_tell": [say(note) for note in message.cannot_tell],
        "next": next_commands_after(message),
        "note_codes": [
            {"code": note.code, "values": plain(note.values)}
            for note in (*message.proves, *message.advice, *message.cannot_tell)
        ],
    }


def to_text(log: Log, width: int = WIDTH) -> str:
    """The messages as plain text of at most `width` columns, those that say the same only once."""
    parts = []
    if len(log.messages) != 1:
        parts.append("\n".join(textwrap.wrap(_opening(log), width)))
    groups = grouped(log.messages)
    told: set[str] = set()
    parts += ["\n".join(_group_lines(group, width, told)) for group in groups[:_MOST_GROUPS]]
    parts += [textwrap.fill(line, width) for line in _closing(log, len(groups))]
    return "\n\n".join(parts) + "\n"


def to_markdown(log: Log) -> str:
    """The messages as GitHub-flavoured Markdown."""
    from oomscope.rendering.markdown import escaped

    groups = grouped(log.messages)
    parts = [f"### Messages about memory\n\n{escaped(_opening(log))}"]
    parts += ["\n".join(_markdown_lines(group, escaped)) for group in groups[:_MOST_GROUPS]]
    parts += list(_closing(log, len(groups)))
    return "\n\n".join(parts) + "\n"


def _opening(log: Log) -> str:
    lines = plural(log.lines, "line")
    if not log.messages:
        return NOTHING.format(lines=lines)
    first = log.messages[0]
    rank = "" if first.rank is None else f", from rank {first.rank}"
    count = plural(len(log.messages), "message")
    return f"{count} about memory in {lines}, repeats not counted; the first in line {format_count(first.line)}{rank}."


def _closing(log: Log, groups: int) -> Iterator[str]:
    if groups > _MOST_GROUPS:
        yield f"{plural(groups - _MOST_GROUPS, 'further kind')} of messages: -f json has them all."
    if log.unread:
        yield UNREAD.format(count=format_count(log.unread))


def _rows(group: MessageGroup) -> Iterator[tuple[str, str]]:
    first = group.first
    yield from (("Proven", say(note)) for note in first.proves[:_MOST_PROOFS])
    yield from (("Advice", say(note)) for note in first.advice)
    gaps = [note for note in first.cannot_tell if note.code not in _NO_QUESTION]
    if gaps:
        yield "Open", "; ".join(map(say, gaps)) + "."
    yield from (("Note", f"{say(note)}.") for note in first.cannot_tell if note.code in _NO_QUESTION)


def _group_lines(group: MessageGroup, width: int, told: set[str]) -> Iterator[str]:
    yield from textwrap.wrap(f"{headline(group.first)} ({group.where})", width)
    last = ""
    for label, sentence in _rows(group):
        yield from _hanging("" if label == last else label, clean(sentence, 600), width)
        last = label
    for command in next_commands_after(group.first):
        if command not in told:
            yield f"  {'Next':<{_LABEL}}{command}"
            told.add(command)


def _hanging(label: str, sentence: str, width: int) -> list[str]:
    indent = " " * (_LABEL + 2)
    return textwrap.wrap(
        sentence, width, initial_indent=f"  {label:<{_LABEL}}", subsequent_indent=indent, break_on_hyphens=False
    )


def _markdown_lines(group: MessageGroup, escaped: Callable[[str], str]) -> Iterator[str]:
    yield f"**{escaped(headline(group.first))}** ({group.where})"
    yield ""
    fence = "```"
    yield f"{fence}text\n{clean(group.first.text, _SHOWN).replace('`', chr(39))}\n{fence}"
    yield ""
    for label, sentence in _rows(group):
        yield f"- {label}: {escaped(clean(sentence, 600))}"
    for command in next_commands_after(group.first):
        yield f"- Next: `{command}`"
