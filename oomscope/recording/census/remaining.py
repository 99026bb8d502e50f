"""The names that code which may still run asks objects for, told from bytecode.

An attribute that is kept, and whose name none of that code mentions, is not read again. What may still run is found by
names, too: what the running calls have yet to execute, and every function that such code names. Functions that anything
but their module or class refers to may be called by whoever has them; so may those that a library defines and a class
of the program overrides, those that Python calls itself, and those that go on after having been left.
"""

from __future__ import annotations

import dis
import functools
import itertools
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any

from oomscope.recording.census.carried import LARGEST
from oomscope.recording.census.heap import Deadline, Heap
from oomscope.recording.census.kinds import is_a
from oomscope.recording.census.liveness import attributes_read
from oomscope.recording.census.roots import is_library

_READS_ANY = frozenset({"vars", "globals", "locals", "eval", "exec", "breakpoint", "attrgetter", "asdict", "astuple"})
_PARTS = frozenset({"__dict__", "__getattribute__"})
"""With these functions and attributes, code may read what it does not name."""
_PLAIN_LOADS = frozenset({"LOAD_CONST", "LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF"})
_STORE_ATTR = dis.opmap["STORE_ATTR"]
_MAKES = frozenset({"__init__", "__new__", "__post_init__"})
_GOES_ON = 0x20 | 0x80 | 0x200  # generators, coroutines and asynchronous generators
_MOST_FUNCTIONS = 20_000
_OOMSCOPE = str(Path(__file__).resolve().parents[2]) + os.sep


def names_still_read(
    frames: Iterable[FrameType],
    offsets: Mapping[int, int],
    functions: Iterable[FunctionType],
    heap: Heap,
    deadline: Deadline,
) -> frozenset[str] | None:
    """Every name that code of the program which may still run asks for; None where that cannot be told.

    Args:
        frames: of the running calls.
        offsets: by the id of a frame, where it stood when an exception was raised there.
        functions: all that are known.
        heap: where referrers of functions are looked up.
        deadline: when to stop.
    """
    names: set[str] = set()
    for frame in frames:
        code = frame.f_code
        if not is_programs(code):
            names.update(code.co_names)  # what it calls of the program's
            continue
        read = names_in(code, offsets.get(id(frame), frame.f_lasti))
        if read is None:
            return None
        names |= read
    # The code of a module that runs is a function of its own to Python 3.11 and later.
    waiting = [one for one in functions if is_programs(one.__code__) and one.__name__ != "<module>"]
    if len(waiting) > _MOST_FUNCTIONS:
        return None
    loose = _known_elsewhere(waiting, heap)
    while called := [one for one in waiting if id(one) in loose or _may_be_called(one, names)]:
        for one in called:
            deadline.check()
            read = names_in(one.__code__)
            if read is None:
                return None
            names |= read
        done = set(map(id, called))
        waiting = [one for one in waiting if id(one) not in done]
    return frozenset(names)


def stored_names(functions: Iterable[FunctionType], codes: Iterable[CodeType]) -> set[str]:
    """The attributes that code of the program stores."""
    own = [*(one.__code__ for one in functions if is_programs(one.__code__)), *codes]
    return {name for code in own for name in _stored_in(code)}


@functools.lru_cache(maxsize=8192)
def names_in(code: CodeType, offset: int | None = None) -> frozenset[str] | None:
    """The names that `code` and what is defined within it ask for: attributes, globals, and strings that may be names.

    Args:
        code: of a function or a module.
        offset: of the instruction that it stands at; None: all of it.

    Returns:
        None where it may read what it does not name.
    """
    positions = attributes_read(code, offset)
    if positions is None:
        return None
    names: set[str] = set()
    found = list(dis.get_instructions(code))
    for number in positions:
        one = found[number]
        if one.opname == "LOAD_CONST":
            more = _names_of_constant(one.argval)
            if more is None:
                return None
            names |= more
        elif one.opname.startswith(("LOAD_", "IMPORT_")) and "FAST" not in one.opname and type(one.argval) is str:
            is_global = one.opname in ("LOAD_GLOBAL", "LOAD_NAME")
            if one.argval in (_READS_ANY if is_global else _PARTS):
                return None
            if is_global and one.argval == "getattr" and not _has_constant_name(found, number):
                return None
            names.add(one.argval)
    return frozenset(names)


def _names_of_constant(value: Any) -> frozenset[str] | None:
    if type(value) is CodeType:
        return names_in(value)
    texts = value if type(value) in (tuple, frozenset) else (value,)
    return frozenset(text for text in texts if type(text) is str and text.isidentifier())


def _has_constant_name(found: list[dis.Instruction], number: int) -> bool:
    """Whether the call of ``getattr`` that begins here names the attribute by a constant."""
    depth = 0
    for place, one in enumerate(found[number + 1 :], number + 1):
        if one.opname in ("PRECALL", "CALL", "CALL_FUNCTION") and depth >= 1:
            return False
        if one.opname == "LOAD_CONST" and depth == 1:
            return type(one.argval) is str and _is_whole_argument(found, place)
        if depth >= 2:
            return False
        if one.opname not in ("PUSH_NULL", "CACHE"):
            depth += dis.stack_effect(one.opcode, one.arg, jump=False)
    return False


def _is_whole_argument(found: list[dis.Instruction], number: int) -> bool:
    """Whether the call follows on the constant that is loaded here, at once or after a default that is plain."""
    rest = [one.opname for one in found[number + 1 : number + 16] if one.opname not in ("PUSH_NULL", "CACHE")]
    if rest and rest[0] in _PLAIN_LOADS:
        rest = list(itertools.dropwhile(lambda name: name == "LOAD_ATTR", rest[1:]))
    return bool(rest) and rest[0] in ("PRECALL", "CALL", "CALL_FUNCTION")


def _stored_in(code: CodeType) -> Iterator[str]:
    if len(code.co_code) <= LARGEST:
        if _STORE_ATTR in code.co_code[::2]:  # most code stores none, and to take it apart takes long
            yield from (one.argval for one in dis.get_instructions(code) if one.opname == "STORE_ATTR")
        for constant in code.co_consts:
            if type(constant) is CodeType:
                yield from _stored_in(constant)


def is_programs(code: CodeType) -> bool:
    """Whether it is of the program's own source; what dataclasses and their like generate has none."""
    filename = code.co_filename
    return not filename.startswith("<") and not is_library(filename) and not filename.startswith(_OOMSCOPE)


def _may_be_called(function: FunctionType, names: set[str]) -> bool:
    name, outer = function.__name__, function.__qualname__.rpartition(".")[0]
    if name in _MAKES:
        return outer.rpartition(".")[2] in names  # of what has been made it reads nothing any more
    if name in names or "<" in function.__qualname__ or function.__code__.co_flags & _GOES_ON:
        return True
    return (name.startswith("__") and name.endswith("__")) or _overrides(function, outer)


def _overrides(function: FunctionType, outer: str) -> bool:
    """Whether it stands for a method that a library knows by its name."""
    cls: Any = function.__globals__.get(outer.partition(".")[0])
    for part in outer.split(".")[1:]:
        cls = vars(cls).get(part) if is_a(cls, type) else None
    if not is_a(cls, type):
        return bool(outer)
    return any(function.__name__ in vars(base) for base in cls.__mro__[1:] if is_librarys(base))


def is_librarys(cls: type) -> bool:
    """Whether a class is defined in a library, or in C."""
    filename = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return cls.__module__ != "__main__" and (not isinstance(filename, str) or is_library(filename))


def _known_elsewhere(functions: list[FunctionType], heap: Heap) -> set[int]:
    """The ids of those that something else than the namespace of a module or a class refers to.

    What a decorator has wrapped stands there by its wrapper, which bears its name: whoever knows the one may call the
    other.
    """
    wrapped_by = _wrappers(functions, heap)
    own = {id(functions)}
    found = set()
    for referrer, key in heap.referrers({*map(id, functions), *wrapped_by}):
        is_namespace = is_a(referrer, dict) and ("__module__" in referrer or "__name__" in referrer)
        # A call that an exception has ended keeps its function, and does not call it again.
        if is_namespace or is_a(referrer, (type, FrameType)) or id(referrer) in own:
            continue
        if not any(_is_part(referrer, outer) for outer, inner in wrapped_by.values() if inner == key):
            found.add(key)
    while more := {inner for outer, (_, inner) in wrapped_by.items() if outer in found} - found:
        found |= more
    return found


def _wrappers(functions: list[FunctionType], heap: Heap) -> dict[int, tuple[FunctionType, int]]:
    """The functions that wrap one of `functions`, as ``functools.wraps`` notes it, by id: each, and what it wraps."""
    found: dict[int, tuple[FunctionType, int]] = {}
    inner = set(map(id, functions))
    everything = heap.of_types({FunctionType})
    while inner:
        outer = {
            id(one): (one, id(one.__wrapped__)) for one in everything if id(getattr(one, "__wrapped__", None)) in inner
        }
        inner = set(outer) - set(found)
        found |= outer
    return found


def _is_part(referrer: Any, wrapper: FunctionType) -> bool:
    """Whether it is a cell or the attributes of the wrapper, by which that knows what it wraps."""
    if type(referrer) is CellType:
        return any(cell is referrer for cell in wrapper.__closure__ or ())
    return referrer is wrapper.__dict__
