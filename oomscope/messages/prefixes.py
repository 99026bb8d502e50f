"""What loggers, launchers and terminals put before a line: taken off, for who wrote the line is told by it."""

from __future__ import annotations

import re

_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_DATE = r"\d{4}[-/.]\d\d[-/.]\d\d"
_PARTS = (
    rf"\[?\s?{_DATE}[T _]{_CLOCK}(?:\s?Z|\s?UTC|[+-]\d\d:?\d\d)?\s?\]?:?",
    rf"\[?(?:\d\d[-/]\d\d\s)?{_CLOCK}\]?:?",
    rf"[IWEF]\d{{4}}\s{_CLOCK}\s+\d+\s",
    rf"(?:[A-Za-z]{{3}}|\d\d?月)\s+\d+\s{_CLOCK}\s[\w.-]+\s[\w./-]+(?:\[\d+\])?:",
    r"\[\s*\d+\.\d+\]",
    r"\[?(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)(?:\s?\]:?|:|\s)",
    r"\[[\w./-]+\.(?:py|cc|cpp|cu|rs):\d+\]:?",
    r"\[?[Rr]ank\s?\d+\]?:",
    r"\[default\d+\]:",
    r"\[\d+(?:,\d+)?\]<std(?:err|out)>:?",
    r"\([\w.:-]+(?:\s[\w.=-]+){0,4}\s?pid=\d+(?:,\s?ip=[\w.:]+)?\)",
    r"\[[\w.-]+:\d+:\d+\]",
    r"\(?node\d+\)?:",
    r"[\w.-]+\s{0,12}\|\s",
    r">+\s",
    r"E\s{2,}",
    r"[|│┃▌▍▎▏]\s",
    r"#\d+\s\d+\.\d+\s",
)
_PREFIX = re.compile(rf"\s*(?:(?:{'|'.join(_PARTS)})\s*)*")
_COMMENT = re.compile(r"\s{0,40}(#{1,3}|/{2,3}|--|%{1,2}|;{1,3})(?:\s|\Z)")
_MARKS = " \t#/%;-"
_OWNER = re.compile(
    r"(?:[Rr]ank|RANK)[\s=]?\d+|pid=\d+|default\d+|\[\d+(?:,\d+)?\]<|node\d+"
    r"|(?<![\w.-])(?!(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL|SUCCESS|TRACE)\s)[\w.-]*[A-Za-z][\w.-]*(?=\s{0,12}\|\s)"
)
"""A level before a bar, as loguru prints it, is nobody's name."""
_RANK = re.compile(
    r"(?<![\w-])(?:\[[Rr]ank\s?:?\s?(\d+)\]|global[_ ]rank\s?[=:]?\s?(\d+)|[Rr]ank\s?(\d+)\]?:"
    r"|(?:rank|RANK)\s?[=:]\s?(\d+)(?!\d)|\[(?:\d+,)?(\d+)\]<std|\[(?:[Rr]ank|RANK)\s(\d+)[\],\s])"
)


def comment_mark(line: str) -> str:
    """With what `line` begins where it is a comment in a program or a script: ``#``, ``//``; else empty."""
    match = _COMMENT.match(line)
    return match[1] if match else ""


def split_prefix(line: str, within: str = "") -> tuple[str, str]:
    """What stands before the text of `line`, and the text.

    Args:
        line: what was printed.
        within: the mark of the comment that goes on in `line`; the first line of one keeps its mark, for it may as well
            be a heading.
    """
    begin = line.index(within) + len(within) if within else 0
    match = _PREFIX.match(line, begin)
    end = match.end() if match else begin
    return line[:end], line[end:]


def names_nobody(prefix: str) -> bool:
    """Whether `prefix` is but the mark of a comment or a quotation, which goes on with what the line above tells."""
    return not prefix.strip(_MARKS)


def owner_of(prefix: str) -> str:
    """Which process a prefix names, as text; empty where it names none."""
    return " ".join(_OWNER.findall(prefix)) if prefix.strip() else ""


def rank_in(text: str) -> int | None:
    """The last global rank that `text` names; a local rank is none."""
    found = [next(filter(None, match.groups())) for match in _RANK.finditer(text)]
    return int(found[-1][:9]) if found else None
