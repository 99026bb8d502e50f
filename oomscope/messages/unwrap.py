"""Text of a log without colours, escapes, prefixes and line breaks: each process's own, and without blanks.

Terminals, chat windows and loggers break lines anywhere, also within words and numbers. In a text without any blanks a
wording is found wherever it was broken.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from oomscope.messages.literals import joined
from oomscope.messages.prefixes import comment_mark, names_nobody, owner_of, rank_in, split_prefix

_COLOUR = re.compile(
    r"(?:\x1b|\^\[|\\x1b|\\u001[bB]|\\033|\\e)\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)|\x1b.|\[\d{1,3}(?:;\d{1,3})*m|\[m(?![a-z_])"
)
_MAY_BE_COLOURED = re.compile(r"\x1b|\^\[\[|\\x1b|\\u001|\\033|\\e\[|\dm|\[m")
_ESCAPED_BREAK = re.compile(r"\\+[nr](?![a-z]{2,}[\\/])")
_ESCAPED_QUOTE = re.compile(r"\\+([\"'/`])")
_ENTITY = re.compile(r"&(?:#x?[0-9a-fA-F]{1,6}|quot|gt|lt|amp|apos|nbsp);")
_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\(https?://[^\s()]{1,400}\)")
"""What a browser makes of a path or an address when text is pasted as Markdown."""
_BREAK = re.compile(r"[\n\r\v\f\x85\u2028\u2029]")
ALONE = "\x1e"
"""Stands before a line of one word that says something only as a line of its own."""
SEAM = "\x7f"
"""Stands between two numbers, which would be one where blanks are left out. What reads a number ends at it."""
_SOURCE_COLUMN = re.compile(r"\s{3,}[\w-]{1,60}\.py:\d{1,6}\s*\Z")
"""Where a logger says at the right margin which line of a program spoke."""
_TWO_NUMBERS = re.compile(r"(\d\.?)(?=[ \t]{1,3}\d)")
"""More blanks may be the margin of a terminal, in the midst of a number."""
_ENDS_IN_NUMBER = re.compile(r"\d\.?\Z")
_STARTS_ANEW = re.compile(r"\d+(?:[-:/.]\d+){2,}|\d\d?:\d\d(?!\d)|\d+[^\W\d_a-zA-Z]")
"""A date, a clock, or a number that another script goes on from (``10月``) is never the rest of a number."""
_COUNTS = re.compile(r"\d+\s+(?![KMGTP]i?B|bytes?\b|B\b)\S")
"""Lines that are numbered begin so, and now and then the rest of a number."""
KILLED = ("已杀死", "已砍掉", "Getötet", "Убито", "強制終了")
"""What a shell prints of a process that signal 9 ended, in other languages."""
_RAISED = "MemoryError"
_WORDS_ALONE = frozenset({"Killed", "killed", "**Killed**", "Killed:9", _RAISED, f"{_RAISED}:", *KILLED})
_BEGINS_ALONE = re.compile(rf"{_RAISED}(?:: | (?:when|while|in|on|during|after|at)\b)")
"""A title: what stands before such a word in the midst of a line is part of another name, blanks being left out."""
LONGEST_LINE = 8 << 10
"""Characters of a line that are kept: more of it is no message."""


@dataclass(slots=True)
class Line:
    """One line of a process.

    Attributes:
        offset: where its text begins in the log, in bytes; about, where escapes stand before it.
        number: its number in the log, from 1.
        prefix: what stood before its text.
        text: the rest.
        packed: `text` without blanks.
    """

    offset: int
    number: int
    prefix: str
    text: str
    packed: str


@dataclass(slots=True)
class Strand:
    """The lines of one process within a passage of a log.

    Attributes:
        owner: what its prefixes call it; empty for lines without.
        lines: in the order of the log.
        packed: all of them without blanks and line breaks.
        starts: where each line begins in `packed`.
    """

    owner: str
    lines: list[Line]
    packed: str = ""
    starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        _part_numbers(self.lines)
        self.packed = "".join(line.packed for line in self.lines)
        self.starts = list(accumulate((len(line.packed) for line in self.lines[:-1]), initial=0))

    def index_at(self, position: int) -> int:
        """Which of `lines` holds the character `position` of `packed`."""
        return bisect_right(self.starts, position) - 1

    def text_between(self, start: int, end: int, limit: int) -> str:
        """The characters from `start` to `end` of `packed` with their blanks, line breaks as blanks."""
        first, last = self.index_at(start), self.index_at(max(end - 1, start))
        parts: list[str] = []
        room = limit
        for index in range(first, last + 1):
            line = self.lines[index]
            begin = _unpacked(line.text, start - self.starts[index]) if index == first else 0
            stop = _unpacked(line.text, end - self.starts[index]) if index == last else len(line.text)
            parts.append(shown(line.text[begin:stop]))
            room -= len(parts[-1])
            if room < 0:
                break
        return " ".join(filter(None, parts))[:limit]

    def rank_before(self, start: int) -> int | None:
        """The global rank that the line at `start` names before it, in its prefix or its text."""
        index = self.index_at(start)
        line = self.lines[index]
        before = line.text[: _unpacked(line.text, start - self.starts[index])]
        return rank_in(f"{line.prefix}{before[-300:]}")


def shown(text: str) -> str:
    """`text` in one line, as a reader sees it."""
    return " ".join(text.replace(SEAM, "").replace(ALONE, "").split())


def _part_numbers(lines: Sequence[Line]) -> None:
    """Put a seam after each line that ends in a number, where the next line does not begin with the rest of it."""
    widths = [len(line.prefix) + len(line.text) - line.text.count(SEAM) for line in lines]
    last = 0
    for index, after in enumerate(lines):
        line = lines[last]
        if after.packed[:1].isdigit() and index and _ENDS_IN_NUMBER.search(line.packed):
            adjoin = last == index - 1 and not _STARTS_ANEW.match(after.text)
            if not adjoin or not _is_broken(widths[max(0, index - 2) : index + 1], after):
                line.text, line.packed = line.text.rstrip() + SEAM, line.packed + SEAM
        last = index if after.packed else last


def _is_broken(widths: Sequence[int], after: Line) -> bool:
    """Whether a line was broken before `after`: it is as long as its neighbours, and at least as long as the rest.

    Args:
        widths: characters of the line above, where there is one, of the line itself, and of `after`.
        after: the line that begins with a number.
    """
    *above, line, rest = widths
    return line >= rest and (line in (*above, rest) or not _COUNTS.match(after.text))


def _unpacked(text: str, count: int) -> int:
    """The index in `text` after which `count` characters that are no blanks have gone by."""
    if count <= 0:
        return 0
    for index, character in enumerate(text):
        if not character.isspace():
            count -= 1
            if count < 0:
                return index
    return len(text)


def _plain(text: str) -> str:
    """`text` without colours, entities and links."""
    if _MAY_BE_COLOURED.search(text):
        text = _COLOUR.sub("", text)
    if "&" in text:
        text = _ENTITY.sub(lambda match: html.unescape(match[0]), text)
    if "](http" in text:
        text = _LINK.sub(r"\1", text)
    return text


def _pieces(line: str) -> Sequence[str]:
    """The lines within a line: those of a string that was escaped, and those that were overwritten in a terminal."""
    if "\\" in line:
        line = _ESCAPED_QUOTE.sub(r"\1", _ESCAPED_BREAK.sub("\n", line))
    return (line,) if line.isprintable() else _BREAK.split(line)


def strands(raw: bytes, offset: int, number: int) -> list[Strand]:
    """The processes that wrote `raw`, which begins at `offset` bytes, in line `number` of the log."""
    found: dict[str, list[Line]] = {}
    owner = ""
    for line in _lines(raw, offset, number):
        if not names_nobody(line.prefix):
            owner = owner_of(line.prefix)
        found.setdefault(owner, []).append(line)
    return [Strand(name, lines) for name, lines in found.items()]


def _lines(raw: bytes, offset: int, number: int) -> Iterator[Line]:
    physical = raw.split(b"\n")
    mark = ""
    for count, (line, shown) in enumerate(
        zip(physical, joined(_plain(raw.decode("utf-8", "replace")).split("\n")), strict=True)
    ):
        within = 0
        for piece in _pieces(shown):
            above, mark = mark, comment_mark(piece)
            within_comment = mark if mark == above else ""
            prefix, text = split_prefix(piece[:LONGEST_LINE], within_comment)
            text = _TWO_NUMBERS.sub(rf"\1{SEAM}", _SOURCE_COLUMN.sub("", text) if ".py:" in text else text)
            text, packed = _with_alone(text, commented=bool(within_comment))
            yield Line(offset + within + len(prefix), number + count, prefix, text, packed)
            within += len(piece) + 1
        offset += len(line) + 1


def _with_alone(text: str, *, commented: bool) -> tuple[str, str]:
    """`text` and the same without blanks, both with `ALONE` before a word that says something as a line of its own.

    Args:
        text: of a line.
        commented: whether it is a comment's, where ``Killed`` may as well be the name of a state.
    """
    packed = "".join(text.split())
    if packed in _WORDS_ALONE and (packed.startswith(_RAISED) or not commented):
        return f"{ALONE}{packed}", f"{ALONE}{packed}"
    if _BEGINS_ALONE.match(text):
        return f"{ALONE}{text}", f"{ALONE}{packed}"
    return text, packed
