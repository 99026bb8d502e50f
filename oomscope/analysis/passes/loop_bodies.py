"""Which lines are one loop's body: by their indentation, where a dump brought the text of its lines.

Line numbers alone cannot tell two loops from one whose body holds a block that only some passes run, such as a log or
an evaluation every hundred steps.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from oomscope.model.recorded_stacks import RecordedSource

_LOOPS = ("for ", "while ", "async for ")
_DEFINITIONS = ("def ", "async def ", "class ")
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))
_TEXT_OR_COMMENT = re.compile(r"""'[^']*'|"[^"]*"|#.*""")
_GOES_ON = re.compile(
    r"(^([])}.,:+*/%|&]|-|and |or |if |else\b|for .*[^:]$))|([,\\(\[{+*/%|&=.-]|\b(and|or|not|in|is))$"
)
"""A line that begins or ends like this is a part of a statement on several lines."""


class LoopBodies:
    """The text of lines, by file.

    Args:
        sources: as the recording has them: a few lines each.
    """

    def __init__(self, sources: Iterable[RecordedSource] = ()) -> None:
        self._text: dict[str, dict[int, str]] = defaultdict(dict)
        for one in sources:
            self._text[one.filename].update(enumerate(one.text, one.first))

    def hold(self, filename: str, lines: Sequence[int]) -> bool:
        """Whether `lines` are known to lie all in the body of the innermost loop around the first of them."""
        known = self._text.get(filename, {})
        depths = [_depth_at(known, line) for line in lines]
        first = min(lines)
        header = _header(known, first)
        return header is not None and all(depth > header for depth in depths)

    def is_straight(self, filename: str, line: int) -> bool:
        """Whether a line is known to be in no loop of its function: whoever comes back to it calls that again."""
        known = self._text.get(filename, {})
        number = line
        while (text := known.get(number, "").strip()) and not text.startswith(_LOOPS):
            if text.startswith(_DEFINITIONS):
                return number < line and _depth(known[number]) < _depth(known[line])
            number -= 1
        return False

    def is_statement(self, filename: str, line: int) -> bool:
        """Whether a line is known to be a whole statement, or a block's head: Python comes back to it in loops only.

        An expression on several lines goes back to its first one once its arguments have been evaluated.
        """
        text = _TEXT_OR_COMMENT.sub("''", self._text.get(filename, {}).get(line, "")).strip()
        is_closed = all(text.count(opening) == text.count(closing) for opening, closing in _BRACKETS)
        return bool(text) and is_closed and not _GOES_ON.search(text)


def _header(known: dict[int, str], line: int) -> int | None:
    """How deep the head of the innermost loop around `line` is indented; None where it is not known."""
    depth, number = _depth(known.get(line, "")), line - 1
    while depth > 0 and number in known:
        text = known[number].strip()
        if text and not text.startswith("#") and _depth(known[number]) < depth:
            depth = _depth(known[number])
            if text.startswith(_LOOPS):
                return depth
            if text.startswith(_DEFINITIONS):
                return None
        number -= 1
    return None


def _depth_at(known: dict[int, str], line: int) -> int:
    """How deep a line is indented at least; -1 where that is not known."""
    above = known.get(line - 1, "")
    if line not in known and above.rstrip().endswith(":"):
        return _depth(above) + 1  # the first line of a block
    return _depth(known.get(line, ""))


def _depth(text: str) -> int:
    """By how many columns a line is indented; -1 for one without text."""
    expanded = text.expandtabs()
    return len(expanded) - len(expanded.lstrip()) if expanded.strip() else -1
