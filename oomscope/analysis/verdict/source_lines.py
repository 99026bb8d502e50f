"""What the lines of source that a recording brought say: no file is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oomscope.analysis.records import Location
from oomscope.model.recorded_stacks import RecordedSource


def text_of(sources: Sequence[RecordedSource], where: Location) -> str:
    """The line of code at `where`, without a comment; empty where it is not known."""
    for one in sources:
        if one.filename == where.file and 0 <= where.line - one.first < len(one.text):
            return _code(one.text[where.line - one.first])
    return ""


def only_line(sources: Sequence[RecordedSource], is_it: Callable[[str], bool]) -> Location | None:
    """The one known line whose text `is_it`; None where none or several are. Its function is not known."""
    found = {(one.filename, one.first + at) for one in sources for at, text in enumerate(one.text) if is_it(text)}
    if len(found) != 1:
        return None
    ((file, line),) = found
    return Location(file, line, "<module>")


def _code(line: str) -> str:
    return line.partition("#")[0].strip()
