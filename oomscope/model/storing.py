"""What lines of Python do, told from their text: those that store into a name are to show for what it keeps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_ENDS = re.compile(r"(\[[^\]]*\]|\{(?:key|…)\}|\.__\w+__|\._exception)+\Z")
"""Items, keys, dunder attributes and a future's error at the end of a way: those of an object, not its name."""
_ATTRIBUTE_OF_ITEM = re.compile(r"(?:\[[^\]]*\]|\{(?:key|…)\})(?:\.\w+)*\.(?P<attribute>\w+)\Z")
_METHODS = "append|appendleft|add|extend|insert|put|put_nowait|push|setdefault|update"
_NOTHING = (
    r"(?:None|\[\]|\{\}|\(\)|(?:list|dict|set|tuple|deque|defaultdict|Queue|queue\.Queue|collections\.\w+)\([^()]*\)"
    r"|-?\d[\d.e]*|True|False|\"\"|'')"
)
_EMPTY = re.compile(rf"{_NOTHING}\s*(#.*)?\Z")
"""What a name begins with: nothing is kept by that."""
_ALL_EMPTY = re.compile(rf"{_NOTHING}\s*(?:,\s*{_NOTHING}\s*)+\Z")
_SETS_A_CAP = re.compile(r"\bset_per_process_memory_fraction\(")
_DEFINITION = re.compile(r"(\s*)(?:async\s+)?def\s+(\w+)\b")


def stored_name(holder: str, kind: str) -> tuple[str, str] | None:
    """The function and the name that a holder's way tells: ``("f", "errors")`` for ``f: errors[0]``.

    The function is empty for a name of a module; for an attribute of an item the name is the collection's, which the
    item was put into: ``("f", "results")`` for ``f: results[3].error``. None where the way tells no name of a function
    or a module, for it leads through several, or through an unreachable cycle.
    """
    where = holder.rpartition(": ")[0]
    name = _ATTRIBUTE_OF_ITEM.sub("", name_at_end(holder))
    if "→" in holder or not re.fullmatch(r"[\w.]+", name) or kind == "cycle":
        return None
    return "" if where.endswith(".py") else where.rpartition(".")[2], name


def is_attribute_of_item(holder: str) -> bool:
    """Whether a holder's way ends in an attribute of an item, as ``f: averages['loss'].total`` does."""
    return _ATTRIBUTE_OF_ITEM.search(name_at_end(holder)) is not None


def name_at_end(holder: str) -> str:
    """What a person calls the object: ``failures`` for ``largest_batch: failures[0]``."""
    return _ENDS.sub("", holder.rpartition(": ")[2])


def storing_lines(holder: str, kind: str, lines: Mapping[int, str]) -> tuple[int, ...]:
    """The numbers of those `lines` of a file that store into what a holder's way tells.

    For an exception in an attribute of an item those that give it a value, such as ``Result(error=exc)``; where none
    does, and for all else, those of the function that store into its name. A model or an optimizer may have been made
    together with the object that it is in: where none stores it, those that store the object.
    """
    named = stored_name(holder, kind)
    if named is None:
        return ()
    function, name = named
    item = _ATTRIBUTE_OF_ITEM.search(name_at_end(holder)) if kind == "exception" else None
    given = () if item is None else tuple(_giving(item["attribute"], lines))
    found = given or tuple(_storing(name, _but_for_callers(_within(lines, function), function)))
    if not found and is_belonging(holder) and name.count(".") > 1:
        return storing_lines(holder.rpartition(".")[0], kind, lines)
    return found


def is_belonging(holder: str) -> bool:
    """Whether a way leads to a model or an optimizer, whose name is told without a function: ``search.best.model``."""
    return re.fullmatch(r"[A-Za-z_]\w*(?:\.\w+)+", holder) is not None and not holder.endswith(".py")


def sets_a_cap(text: str) -> bool:
    """Whether a line caps the memory of its process."""
    return _SETS_A_CAP.search(text.partition("#")[0]) is not None


def calling_lines(holder: str, kind: str, lines: Mapping[int, str]) -> tuple[int, ...]:
    """The numbers of those `lines` that may fill an object of a library, for they call what it is an attribute of.

    ``metric.update(x, y)`` or ``metric(x, y)`` for ``f: metric.target``.
    """
    named = stored_name(holder, kind)
    if named is None or "." not in named[1] or named[1].startswith("self."):
        return ()
    function, name = named
    parts = name.split(".")[:-1]
    owners = "|".join(re.escape(".".join(parts[:end])) for end in range(len(parts), 0, -1))
    calls = re.compile(rf"(?:^|[^\w.])(?:{owners})(?:\.(?:{_METHODS}))?\(")
    within = _within(lines, function)
    return tuple(number for number, text in within.items() if calls.search(text.partition("#")[0]))


def adds_to(holder: str, text: str) -> bool:
    """Whether a line that stores into what a holder's way tells adds to what is there: ``total = total + loss``."""
    last = re.escape(name_at_end(holder).rpartition(".")[2])
    names = re.findall(rf"(?<!\w){last}(?!\w)", text.partition("#")[0])
    return len(names) > 1 or re.search(rf"(?<!\w){last}(?:\[.*\])?\s*(?:\+=|\.(?:{_METHODS})\()", text) is not None


def _giving(attribute: str, lines: Mapping[int, str]) -> Iterator[int]:
    """Where an object's attribute gets a value that is not empty, by its name or as an argument of a call."""
    gives = re.compile(rf"(?:\.|[(,]\s*){re.escape(attribute)}\s*=(?!=)\s*(?P<value>[^,)]+)")
    for number, text in lines.items():
        match = gives.search(text.partition("#")[0])
        if match and not _EMPTY.fullmatch(match["value"].strip()):
            yield number


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


def _but_for_callers(lines: Mapping[int, str], function: str) -> dict[int, str]:
    """`lines` without those that call `function`: ``loss = validate(model)`` is no line of ``validate``."""
    calls = re.compile(rf"\b{re.escape(function)}\(") if function else None
    return {number: text for number, text in lines.items() if calls is None or not calls.search(text)}


def _storing(name: str, lines: Mapping[int, str]) -> Iterator[int]:
    last = re.escape(name.rpartition(".")[2])
    owner = r"[\w\]\[.]*\." if "." in name else ""
    annotation = r"(?::[^={}'\"]*)?"  # no format of a string's value
    stores = re.compile(
        rf"(?:^|[^\w.]){owner}{last}(?:\[[^\]]*\])*\s*(?:\.(?:{_METHODS})\(|\+=|{annotation}=(?!=)\s*(?P<value>.+))"
    )
    several = re.compile(
        rf"\s*(?:[\w.*]+\s*,\s*)*{owner}{last}\s*(?:,\s*[\w.*]+\s*)+=(?!=)(?P<value>.*)"
        rf"|\s*(?:[\w.*]+\s*,\s*)+{owner}{last}\s*=(?!=)(?P<last>.*)"
    )
    for number, text in lines.items():
        code = text.partition("#")[0]
        if match := several.match(code):
            if not _ALL_EMPTY.fullmatch((match["value"] or match["last"] or "").strip()):
                yield number
        elif (match := stores.search(code)) and not _EMPTY.fullmatch((match["value"] or "?").strip()):
            yield number
