"""The line that stores what an object keeps, looked up among the lines of source that are known.

A recording knows where the function stood that holds a name, which is seldom the line that stored anything in it. So a
line is named only where its text stores into that name, and where no other line does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from oomscope.analysis.records import Location
from oomscope.analysis.verdict.records import Advice, Oom, Suspect
from oomscope.analysis.verdict.unread import GRAPH
from oomscope.model.storing import (
    adds_to,
    calling_lines,
    is_attribute_of_item,
    is_belonging,
    name_at_end,
    stored_name,
    storing_lines,
)
from oomscope.rendering.common.sources import Sources


def store_line(suspect: Suspect, sources: Sources) -> Location | None:
    """The one known line that stores into what `suspect` names; None where none or several do.

    First those of the function that holds it, then those of other methods where it is an attribute; only those of an
    attribute that an item of a collection was given after it was made. The text of a few lines does not tell which
    function they are of; the recording does of those in a method. Where several store, the one that adds to what is
    there; where none does, the one that calls what it is an attribute of, as for a library's metric.
    """
    if is_attribute_of_item(suspect.holder) and [one.function for one in suspect.stores] not in ([], ["__init__"]):
        return suspect.stores[0] if len(suspect.stores) == 1 else None
    named = stored_name(suspect.holder, suspect.kind)
    of_methods = {(one.file, one.line) for one in suspect.stores if named is not None and one.function != named[0]}
    found = [] if named is None else _told_by_text(suspect, named[0], sources, storing_lines)
    found = [one for one in found if (one.file, one.line) not in of_methods] or list(suspect.stores)
    if not found and named is not None:
        found = _told_by_text(suspect, named[0], sources, calling_lines)
    if len(found) > 1:  # what piles up is stored again and again; a constructor stores once
        found = [one for one in found if one.function != "__init__"]
    if len(found) > 1 and suspect.made_under in found:
        return suspect.made_under
    if len(found) > 1 and all(texts := [_text(one, sources) for one in found]):
        found = [one for one, text in zip(found, texts, strict=True) if adds_to(suspect.holder, text)]
    return found[0] if len(found) == 1 else None


def _text(where: Location, sources: Sources) -> str:
    excerpt = sources.around(where.file, where.line, 0)
    return "" if excerpt is None else excerpt.text


_Lines = Callable[[str, str, Mapping[int, str]], tuple[int, ...]]


def _told_by_text(suspect: Suspect, function: str, sources: Sources, lines: _Lines) -> list[Location]:
    return [
        Location(file, number, function or "<module>")
        for file in _files(suspect, sources)
        for number in lines(suspect.holder, suspect.kind, sources.known(file))
    ]


def line_of_advice(oom: Oom, advice: Advice, sources: Sources) -> Location | None:
    """The line to change; where it is only that of the function that holds an object, the line that stores into it.

    None where something has to go before a block of which only a line within it is known.
    """
    work = advice.values.get("before")
    if work is not None:
        return None if work.kind == "block" and work.at == advice.at else advice.at
    suspect = next((one for one in oom.verdict.suspects if one.holder == advice.values.get("holder")), None)
    if suspect is None and (stores := stores_belonging(advice.values.get("holder"), sources)) is not None:
        return stores
    if suspect is None or suspect.kind == GRAPH or advice.at not in (None, suspect.at):
        return advice.at
    return store_line(suspect, sources)


def stores_belonging(holder: str | None, sources: Sources) -> Location | None:
    """The one known line that stores a model or an optimizer, or the object that it is in; None where several do."""
    if holder is None or not is_belonging(holder):
        return None
    return store_line(Suspect(holder, "attribute", retained=0, share=0.0, tensors=0, passes=0), sources)


def name_of(suspect: Suspect) -> str:
    """What a person calls the object: ``failures`` for ``largest_batch: failures[0]``."""
    return name_at_end(suspect.holder).rpartition(" (closure) ")[2]


def keeps_error(suspect: Suspect) -> bool:
    """Whether what the line stores keeps the memory only through an exception within it."""
    return suspect.kind == "exception" and suspect.holder.endswith("._exception")


def _files(suspect: Suspect, sources: Sources) -> tuple[str, ...]:
    if suspect.at is not None:
        return (suspect.at.file,)
    where, colon, _ = suspect.holder.rpartition(": ")
    if not colon and "." in suspect.holder:
        return sources.files  # what the models of a collection belong to is named without its function
    return tuple(file for file in sources.files if where.endswith(".py") and re.split(r"[/\\]", file)[-1] == where)
