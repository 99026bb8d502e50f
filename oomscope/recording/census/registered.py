"""Where a function that keeps memory was handed over: a hook to its module, a function to its cache."""

from __future__ import annotations

import dis
import re
import types
from collections.abc import Iterator
from typing import Any

from oomscope.recording.census.attribute_stores import nested, plain_functions
from oomscope.recording.census.holding import Holding
from oomscope.recording.census.kinds import is_a
from oomscope.recording.census.paths import is_cache
from oomscope.recording.census.roots import Place, is_library

_REGISTERS = re.compile(r"register_(\w+_)?hook|register_saved_tensors_\w+")
_MOST_HOOKS, _MOST_PLACES, _DEEPEST = 64, 3, 3
_HIGHEST = 5  # a list in a cell of the closure of a function in a dict


def registered_at(holding: Holding, node: int) -> tuple[Place, ...]:
    """The lines that registered the hooks in a dict of them, or the definition of a function that is cached.

    One hook alone keeps what it does by a variable of its closure.
    """
    way = [node]
    while len(way) < _HIGHEST and way[-1] in holding.parents and way[-1] not in holding.starts:
        way.append(holding.parents[way[-1]])
    items = [holding.objects[number] for number in way]
    for item in items[:2]:
        if is_cache(item):
            code = getattr(getattr(item, "__wrapped__", None), "__code__", None)
            return () if code is None else ((code.co_filename, code.co_firstlineno, code.co_name),)
    kept = list(items[0].values())[:_MOST_HOOKS] if is_a(items[0], dict) else items
    hooks = [one for one in kept if type(one) is types.FunctionType]
    found = dict.fromkeys(place for hook in hooks for place in _registrations(hook))
    return tuple(found)[: _MOST_PLACES + 1]


def _registrations(hook: types.FunctionType) -> Iterator[Place]:
    """Where the function in which `hook` is defined registers hooks."""
    code = _around(hook)
    if code is None or is_library(code.co_filename):
        return
    line_of = {offset: line for begin, end, line in code.co_lines() for offset in range(begin, end, 2)}
    for one in dis.get_instructions(code):
        if type(one.argval) is str and _REGISTERS.fullmatch(one.argval) and (line := line_of.get(one.offset)):
            yield code.co_filename, line, code.co_name


def _around(hook: types.FunctionType) -> types.CodeType | None:
    """The code that `hook` is defined in, found by its qualified name."""
    names = hook.__qualname__.partition(".<locals>")[0].split(".")
    found: Any = hook.__globals__.get(names[0])
    for name in names[1:]:
        found = vars(found).get(name) if is_a(found, type) else None
    for function in plain_functions(found):
        for code in nested(function.__code__, _DEEPEST):
            if hook.__code__ in code.co_consts:
                return code
    return None
