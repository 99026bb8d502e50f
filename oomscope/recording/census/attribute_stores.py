"""Which lines store into an attribute, told from the bytecode of the methods of its object's class.

A function that keeps an object seldom fills it: ``self.tasks`` of a server's loop is filled where tasks are started.
"""

from __future__ import annotations

import dis
import itertools
import re
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from oomscope.recording.census.carried import LARGEST
from oomscope.recording.census.holding import Holding
from oomscope.recording.census.kinds import is_a
from oomscope.recording.census.roots import Place, is_library

_ATTRIBUTE = re.compile(r"\.(?!__\w+__\Z|_exception\Z)([^\W\d]\w*)")
_METHODS = frozenset(
    ("append", "appendleft", "add", "extend", "insert", "put", "put_nowait", "push", "setdefault", "update")
)
_MAKERS = frozenset(
    ("list", "dict", "set", "tuple", "deque", "defaultdict", "OrderedDict", "Counter", "Queue", "SimpleQueue")
)
"""What makes something empty, for an attribute to begin with."""
_BETWEEN = ("STORE_", "DELETE_", "POP_", "RETURN_", "JUMP_", "FOR_ITER", "RESUME", "YIELD_", "END_", "NOP")
"""Instructions that stand between two statements."""
_SPREADS = ("SWAP", "ROT_", "UNPACK_SEQUENCE", "COPY", "DUP_TOP", "STORE_")
"""Instructions before which the values of an assignment to several names have been made."""
_MOST_CLASSES, _MOST_FUNCTIONS, _MOST_PLACES = 16, 400, 3
_MOST_OBJECTS = 3  # a library's, one within the other, as a metric in a collection of them
_MOST_INSTRUCTIONS = 60  # of one statement
_DEEPEST = 3  # functions within functions


def attribute_stores(holding: Holding, node: int) -> tuple[Place, ...]:
    """Where methods store into the attribute that leads to `node`; empty where none does, or several may be meant.

    Where that is an attribute of a library's object, such as a metric, those that fill the object.
    """
    for depth in range(_MOST_OBJECTS):
        found = _attribute(holding, node)
        if found is None:
            break
        node, owner, name = found
        if any(True for _ in _code_of(type(owner))):
            return stores_of(owner, name, called=depth > 0)
    return ()


def stores_of(owner: Any, name: str, *, called: bool = False) -> tuple[Place, ...]:
    """Where methods of the class of `owner` store into its attribute `name`; `called`: or call it."""
    return tuple(dict.fromkeys(_stores(owner, name, called)))[: _MOST_PLACES + 1]


def _attribute(holding: Holding, node: int) -> tuple[int, Any, str] | None:
    """The object, its node first, and the name of the last attribute on the way to `node`.

    Items of what it holds are passed over.
    """
    while node not in holding.starts and node in holding.parents:
        parent = holding.parents[node]
        step = holding.step(holding.objects[parent], holding.objects[node])
        if match := _ATTRIBUTE.fullmatch(step):
            while _is_of_attributes(holding, parent):
                parent = holding.parents[parent]
            return parent, holding.objects[parent], match[1]
        if (step and step[0] not in "[{.") or step.startswith(".<"):
            return None
        node = parent
    return None


def _is_of_attributes(holding: Holding, node: int) -> bool:
    """Whether this is only the dict of an object's attributes, or of a module's parts."""
    if not is_a(holding.objects[node], dict) or node in holding.starts or node not in holding.parents:
        return False
    return not holding.step(holding.objects[holding.parents[node]], holding.objects[node])


def _stores(owner: Any, name: str, called: bool) -> Iterator[Place]:
    for code in _code_of(type(owner)):
        if name in code.co_names and len(code.co_code) <= LARGEST:
            for line in _lines(code, name, called):
                yield code.co_filename, line, code.co_name


def _code_of(kind: type) -> Iterator[CodeType]:
    """The code of the functions that a class has or inherits, and of those within them; none of a library."""
    values = [value for cls in kind.__mro__[:_MOST_CLASSES] for value in vars(cls).values()]
    functions = [one for value in values for one in plain_functions(value)]
    for function in functions[:_MOST_FUNCTIONS]:
        if not is_library(function.__code__.co_filename):
            yield from nested(function.__code__, _DEEPEST)


def plain_functions(value: Any) -> Iterator[FunctionType]:
    """The functions that an attribute of a class stands for; what decorates them is seen through."""
    kind = type(value)
    inner = [value]
    if kind is property:
        inner = [value.fget, value.fset]
    elif kind in (staticmethod, classmethod):
        inner = [value.__func__]
    for one in inner:
        for _ in range(_DEEPEST):
            if type(one) is not FunctionType:
                break
            yield one
            one = one.__dict__.get("__wrapped__")


def nested(code: CodeType, depth: int) -> Iterator[CodeType]:
    """A function's code and that of the functions within it, `depth` levels of them."""
    yield code
    for constant in code.co_consts if depth else ():
        if type(constant) is CodeType:
            yield from nested(constant, depth - 1)


def _lines(code: CodeType, name: str, called: bool) -> Iterator[int]:
    line_of = {offset: line for begin, end, line in code.co_lines() for offset in range(begin, end, 2)}
    instructions = list(dis.get_instructions(code))
    for number, one in enumerate(instructions):
        if one.argval != name:
            continue
        fills = one.opname == "STORE_ATTR" and not _is_empty(instructions, number)
        fills = fills or (one.opname == "LOAD_ATTR" and _is_filled(instructions, number))
        line = line_of.get(one.offset)
        if line is not None and (fills or (called and _is_method(one))):
            yield line


def _is_method(one: dis.Instruction) -> bool:
    """Whether the instruction loads an attribute to call it."""
    return one.opname == "LOAD_METHOD" or (one.opname == "LOAD_ATTR" and "NULL|self" in one.argrepr)


def _is_filled(instructions: list[dis.Instruction], number: int) -> bool:
    """Whether the statement goes on to store into what the instruction loads, or into an item of it.

    `depth` counts from below what was loaded: at 1 it, or what was made of it, is on top of the stack.
    """
    depth = 1
    for one in instructions[number + 1 : number + _MOST_INSTRUCTIONS]:
        if depth == 2 and one.opname == "STORE_SUBSCR":
            return True
        if depth == 1 and one.opname in ("LOAD_METHOD", "LOAD_ATTR") and one.argval in _METHODS:
            return True
        depth += dis.stack_effect(one.opcode, one.arg, jump=False)
        if depth < 1 or one.opname.startswith(_BETWEEN):
            return False
    return False


def _is_empty(instructions: list[dis.Instruction], number: int) -> bool:
    """Whether what is assigned is a constant or something empty: an attribute's beginning, by which nothing is kept."""
    first = number
    while first and not instructions[first - 1].opname.startswith(_BETWEEN):
        first -= 1
    value = instructions[first : number - 1]  # without the object that it is an attribute of
    if not value:
        return _are_empty(instructions, number)
    names = _names(value)
    return names[-1] in _MAKERS if len(names) == 1 else not names and not _is_made(value)


def _are_empty(instructions: list[dis.Instruction], number: int) -> bool:
    """The same of a statement that assigns several values, or one to several names, if each of them is so."""
    first = number
    while first and not instructions[first].starts_line:
        first -= 1
    value = list(itertools.takewhile(lambda one: not one.opname.startswith(_SPREADS), instructions[first:number]))
    if first + len(value) == number:
        return False
    if instructions[first + len(value)].opname == "UNPACK_SEQUENCE" and value[-1:]:
        *value, last = value
        if last.opname not in ("BUILD_TUPLE", "LOAD_CONST"):
            return False
        return all(name in _MAKERS for name in _names(value)) and not _is_made(value)
    return bool(value) and all(name in _MAKERS for name in _names(value)) and not _is_made(value)


def _names(value: list[dis.Instruction]) -> list[str]:
    return [str(one.argval) for one in value if one.opname.startswith("LOAD_") and not _is_constant(one)]


def _is_made(value: list[dis.Instruction]) -> bool:
    return any(one.opname.startswith("BUILD_") and one.arg for one in value)


def _is_constant(one: dis.Instruction) -> bool:
    return one.opname in ("LOAD_CONST", "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT")
