"""Sentences as templates: plain English with the places where values go.

``{name}`` is the value as text, ``{name:bytes}`` a size, ``{name:size}`` a size as PyTorch's messages print it,
``{name:limit}`` a size rounded up, ``{name:count}`` a count,
``{name:duration}`` microseconds, ``{name:percent}`` a share, ``{name:place}`` a line of code, ``{name:holder}`` an
object with where it is, ``{name:work}`` what is in progress, ``{name:list}`` several texts, and ``{name:n step}`` or
``{name:n entry/entries}`` a count with its noun. What stands in ``[brackets]`` is left out where one of its values is
missing, None, zero or empty; ``[[`` is a bracket.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from string import Formatter
from typing import Any, TypeAlias

from oomscope.units import format_bytes, format_count, format_duration, format_limit, format_size, plural

Sentence: TypeAlias = "str | Callable[[Mapping[str, Any]], str]"
"""A template, or for the few that need to decide, a function of the values."""

_OPTIONAL = re.compile(r"(?<!\[)\[([^\[\]]*)\]")
_FIELDS = re.compile(r"\{(\w+)")


def fill(template: str, values: Mapping[str, Any]) -> str:
    """`template` with `values` in their places.

    Raises:
        KeyError: the sentence needs a value that is not among `values`.
    """

    def optional(match: re.Match[str]) -> str:
        return match[1] if all(values.get(name) for name in _FIELDS.findall(match[1])) else ""

    return _FORMATTER.vformat(_OPTIONAL.sub(optional, template), (), values).replace("[[", "[").replace("]]", "]")


MODULE = "<module>"
"""What Python calls the code of a file that stands in no function; nobody says it."""


def place(location: Any) -> str:
    """A line of code as people say it: ``fill_cache (workloads.py:227)``; None: ``code without Python frames``."""
    if location is None:
        return "code without Python frames"
    file = location.file.replace("\\", "/").rpartition("/")[2]
    return said_place(location.function, f"{file}:{location.line}")


def said_place(function: str, where: str) -> str:
    """``fill_cache (workloads.py:227)``; ``workloads.py:227`` alone where that stands in no function."""
    return where if function == MODULE else f"{function} ({where})"


_INNER_WORKINGS = re.compile(r"(?:\._(?!_)\w+(?:\[[^\]]*\])*){2,}\.")
_MAPPED = re.compile(r"\._store\._mapping\['(\w+)'\]")
"""torch_geometric keeps there what a program reads as an attribute."""
_HOOKED = re.compile(
    r"^(?P<way>[^→]*)\._(?:\w+_)?(?P<kind>forward|backward)_(?:pre_)?hooks\[\d+\]\.__self__\.?(?P<name>[^→]*)$"
)
_HOOK_CLOSURE = re.compile(
    r"^(?P<way>[^→]*)\._(?:\w+_)?(?P<kind>forward|backward)_(?:pre_)?hooks\[\d+\] \(closure\) (?P<name>[^→]+)$"
)
_REGISTERED = re.compile(r"(?:(?P<called>[\w.]+) \()?a (?P<kind>partial|method) that nothing visible holds\b")


def holder(way: str) -> str:
    """The way to an object as people say it: ```metric.outputs```, ```losses` (in main)``, ```keep` (special.py)``."""
    if registered := _REGISTERED.match(way):
        kind, called = registered["kind"], registered["called"]
        unseen = f"a {kind} that only C code holds"
        return f"`{called}` ({unseen}, for `atexit` or a signal)" if called else f"{unseen} (for `atexit` or a signal)"
    if hooked := _HOOKED.match(way):
        kept = f"`{hooked['name']}` of the object" if hooked["name"] else "the object"
        return f"{kept} whose method is a {hooked['kind']} hook of {holder(hooked['way'])}"
    if closed := _HOOK_CLOSURE.match(way):
        return f"`{closed['name']}` of a {closed['kind']} hook of {holder(closed['way'])}"
    where, colon, name = without_inner_workings(way).rpartition(": ")
    if where == "sys":
        return f"`sys.{name}`"
    if not colon or "→" in name:
        return f"`{without_inner_workings(way)}`"
    if where.endswith(".py"):
        return f"`{name}` ({where})"
    # An attribute is filled in its own class, whoever's variable leads to it.
    return f"`{name}`" if "." in name and not name.startswith("self.") else f"`{name}` (in {where})"


def name_of_way(way: str) -> str:
    """What a person calls the object, short: ``metric.outputs``, ``self.values`` for what a hook's closure keeps."""
    return without_inner_workings(way).rpartition(": ")[2].rpartition(" (closure) ")[2]


def without_inner_workings(way: str) -> str:
    """A way to an object without a library's private attributes, where several follow: ``trainer…model.scores``."""
    return _INNER_WORKINGS.sub("…", _MAPPED.sub(r".\1", way))


def said_shape(shape: Sequence[int]) -> str:
    """A tensor's shape as people say it: ``4 × 2,543``; ``24,576 elements`` of a vector."""
    return plural(shape[0], "element") if len(shape) == 1 else " × ".join(map(format_count, shape))


def work(underway: Any) -> str:
    """What is in progress: ``line 99 of main``, ``the loop in main (train.py:95)``; empty for None."""
    if underway is None:
        return ""
    if underway.kind == "loop":
        return f"the loop in {place(underway.at)}"
    function, file = underway.at.function, underway.at.file.replace("\\", "/").rpartition("/")[2]
    line = f"line {underway.at.line} of {file if function == MODULE else function}"
    return f"the block around {line}" if underway.kind == "block" else line


class _Formatter(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        shown = _KINDS.get(format_spec)
        if shown is not None:
            return str(shown(value))
        if format_spec.startswith("n "):
            noun, _, nouns = format_spec[2:].partition("/")
            return plural(value, noun, nouns or None)
        return str(super().format_field(value, format_spec))


_FORMATTER = _Formatter()
_KINDS: Mapping[str, Callable[[Any], str]] = {
    "bytes": format_bytes,
    "limit": format_limit,
    "size": format_size,
    "count": format_count,
    "duration": format_duration,
    "percent": lambda share: f"{share:.0%}",
    "place": place,
    "holder": holder,
    "list": ", ".join,
    "work": work,
}
