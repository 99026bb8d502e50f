"""The line that stores what an object keeps, looked up among the lines of source that are known.

A recording knows where the function stood that holds a name, which is seldom the line that stored anything in it. So a
line is named only where its text stores into that name, and where no other line does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from oomscope.analysis.records import Location
from oomscope.analysis.verdict.records import Advice, Oom, Suspect
from oomscope.rendering.common.sources import Sources

_ENDS = re.compile(r"(\[[^\]]*\]|\.__\w+__)+\Z")
"""Items and dunder attributes at the end of a way: those of an object, not its name."""
_METHODS = "append|appendleft|add|extend|insert|put|put_nowait|push|setdefault|update"
_EMPTY = re.compile(r"(None|\[\]|\{\}|\(\)|(list|dict|set|tuple|deque|defaultdict|Queue|queue\.Queue|collections\.\w+)"
                    r"\([^()]*\)|-?\d[\d.e]*|True|False|\"\"|'')\s*(#.*)?\Z")  # fmt: skip
"""What a name begins with: nothing is kept by that."""
_DEFINITION = re.compile(r"(\s*)(?:async\s+)?def\s+(\w+)\b")


def store_line(suspect: Suspect, sources: Sources) -> Location | None:
    """The one known line that stores into what `suspect` names; None where none or several do."""
    where, _, way = suspect.holder.rpartition(": ")
    name = _ENDS.sub("", way)
    if "→" in suspect.holder or not re.fullmatch(r"[\w.]+", name) or suspect.kind == "cycle":
        return None
    function = "" if where.endswith(".py") else where.rpartition(".")[2]
    found = [
        Location(file, number, function or "<module>")
        for file in _files(suspect, where, sources)
        for number in _storing(name, _within(sources.known(file), function))
    ]
    return found[0] if len(found) == 1 else None


def line_of_advice(oom: Oom, advice: Advice, sources: Sources) -> Location | None:
    """The line to change; where it is only that of the function that holds an object, the line that stores into it."""
    suspect = next((one for one in oom.verdict.suspects if one.holder == advice.values.get("holder")), None)
    return advice.at if suspect is None or suspect.at != advice.at else store_line(suspect, sources)


def name_of(suspect: Suspect) -> str:
    """What a person calls the object: ``failures`` for ``largest_batch: failures[0]``."""
    return _ENDS.sub("", suspect.holder.rpartition(": ")[2])


def _files(suspect: Suspect, where: str, sources: Sources) -> tuple[str, ...]:
    if suspect.at is not None:
        return (suspect.at.file,)
    return tuple(file for file in sources.files if where.endswith(".py") and re.split(r"[/\\]", file)[-1] == where)


def _within(lines: Mapping[int, str], function: str) -> dict[int, str]:
    """The lines of `function` alone, where its first line is known; else all."""
    begins = [(number, match) for number, text in sorted(lines.items()) if (match := _DEFINITION.match(text))]
    own = [(number, match) for number, match in begins if match[2] == function]
    if len(own) != 1:
        return dict(lines)
    first, match = own[0]
    inside = {}
    for number in sorted(number for number in lines if number > first):
        text = lines[number]
        if text.strip() and len(text) - len(text.lstrip()) <= len(match[1]):
            break
        inside[number] = text
    return inside


def _storing(name: str, lines: Mapping[int, str]) -> Iterator[int]:
    last = re.escape(name.rpartition(".")[2])
    owner = r"[\w\]\[.]*\." if "." in name else ""
    stores = re.compile(
        rf"(?:^|[^\w.]){owner}{last}(?:\[[^\]]*\])*\s*(?:\.(?:{_METHODS})\(|\+=|(?::[^=]*)?=(?!=)\s*(?P<value>.+))"
    )
    for number, text in lines.items():
        match = stores.search(text.partition("#")[0])
        if match is not None and not _EMPTY.fullmatch((match["value"] or "?").strip()):
            yield number
