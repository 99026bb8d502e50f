"""A text that goes on in the next line of a program or a script: in another literal, or behind a backslash.

``"Tried to allocate "`` and ``"2.00 GiB."`` below it are one text to the program; so they are to a reader of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

_BEGINS = re.compile(r"\s*(?:\+\s*)?[rbfuRBFU]{0,2}([\"'])(?![\"'])")
_QUOTES = "\"'"
_SIGNS = "+\\"
"""What may stand behind a literal that goes on in the next line."""


def joined(lines: Sequence[str]) -> list[str]:
    """`lines` without what parts their texts; what stood before a text is blank, so that its place is the same."""
    found = list(lines)
    for index, (line, after) in enumerate(pairwise(lines)):
        ends = line.rstrip()
        if not ends.endswith((*_QUOTES, *_SIGNS)):
            continue
        literal = _literal(ends)
        begin = _BEGINS.match(after) if literal else None
        if begin and begin[1] == literal[-1]:
            found[index] = found[index][: len(literal) - 1]
            found[index + 1] = " " * begin.end() + after[begin.end() :]
        elif ends.endswith((" \\", "\t\\")):
            found[index] = found[index][: len(ends) - 1]
    return found


def _literal(line: str) -> str:
    """`line` up to the end of its last literal; empty where there is none, or it is not whole."""
    text = line[:-1].rstrip() if line[-1] in _SIGNS else line
    quote = text[-1:]
    if not quote or quote not in _QUOTES or text[-2:-1] in (*_QUOTES, "\\"):
        return ""
    return text if (text.count(quote) - text.count(f"\\{quote}")) % 2 == 0 else ""
