"""Loops underway that gather for a backward which comes after them, told from the bytecode of running calls.

Time steps of a simulation, an inner loop that is differentiated through, losses that are summed first: what such a loop
makes is needed until that backward. An evaluation that keeps its graphs looks the same to the allocator, and no
backward of what it makes is to follow.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any, NamedTuple

from oomscope.recording.census.carried import LARGEST

_BACKWARD = frozenset({"backward", "manual_backward", "grad"})
_ENDS = frozenset({"POP_TOP", "RETURN_VALUE", "YIELD_VALUE", "RAISE_VARARGS"})
_VARIABLES = ("LOAD_FAST", "LOAD_NAME", "LOAD_DEREF", "LOAD_GLOBAL")
_DEEPEST = 100

_Place = tuple[str, int, str]
"""File, line and function."""


class _Ahead(NamedTuple):
    """What the rest of a call, up to the end of a pass, does with what is being made.

    Attributes:
        backward: the line of a backward of it; None for none.
        returns: whether it is given to the caller.
    """

    backward: int | None
    returns: bool


def find_gathering(calls: list[tuple[FrameType, int]]) -> list[dict[str, Any]]:
    """A row for each loop underway of whose results a backward is to come after it.

    Args:
        calls: the running calls of one thread, innermost first, each with the offset in bytes at which it stands.

    Returns:
        Each with ``at``, the loop's function and first line; ``last``, its last line; ``backward``, in a list of one,
        the frame that calls it.
    """
    rows: list[dict[str, Any]] = []
    around: _Place | None = None
    for frame, offset in reversed(calls[:_DEEPEST]):
        code = None if len(frame.f_code.co_code) > LARGEST else _Code(frame.f_code)
        if code is None:
            around = None
            continue
        found = []
        loops = [*code.loops_around(offset), (0, code.last)]
        for loop, (_, end) in pairwise(loops):
            used_at = _used_at(_of_loop(code, loop, end), code, around)
            if used_at is not None:
                found.append(_row(code, loop, used_at))
        rows += found[::-1]
        around = _used_at(_of_call(code, offset, loops[0][1]), code, around)
    return rows[::-1]


class _Code:
    """The instructions of a running call."""

    def __init__(self, code: CodeType) -> None:
        self.place = code.co_filename, code.co_name
        self._found = [one for one in dis.get_instructions(code) if one.opname != "CACHE"]
        self._lines = [(begin, line) for begin, _, line in code.co_lines() if line is not None]
        self.last = self._found[-1].offset

    def loops_around(self, offset: int) -> list[tuple[int, int]]:
        """First and last offset of each loop around `offset`, innermost first."""
        ends: dict[int, int] = {}
        for one in self._found:
            if "JUMP" in one.opname and type(one.argval) is int and one.argval <= offset <= one.offset:
                ends[one.argval] = max(one.offset, ends.get(one.argval, 0))
        return sorted(ends.items(), key=lambda loop: loop[1] - loop[0])

    def statements(self, begin: int, end: int) -> Iterator[list[dis.Instruction]]:
        """Instructions up to each that stores, returns or drops a value; assignments to several names are one."""
        chosen = [one for one in self._found if begin <= one.offset <= end]
        statement: list[dis.Instruction] = []
        for number, one in enumerate(chosen):
            statement.append(one)
            following = chosen[number + 1].opname if number + 1 < len(chosen) else ""
            if one.opname in _ENDS or (one.opname.startswith("STORE_") and not following.startswith("STORE_")):
                yield statement
                statement = []
        if statement:
            yield statement

    def line(self, offset: int) -> int:
        """Of the instruction at `offset`."""
        return max((one for one in self._lines if one[0] <= offset), default=(0, 0))[1]

    def lines(self, loop: tuple[int, int]) -> tuple[int, int]:
        """The first and the last line of a loop."""
        # What begins with the loop's line may begin before the loop: the call that its values come from.
        found = [self.line(loop[0]), *(line for offset, line in self._lines if loop[0] <= offset <= loop[1])]
        return min(found), max(found)


def _used_at(ahead: _Ahead, code: _Code, around: _Place | None) -> _Place | None:
    """Where a backward uses it: in this call, or in those around it, to which it is returned."""
    if ahead.backward is not None:
        return code.place[0], ahead.backward, code.place[1]
    return around if ahead.returns else None


def _row(code: _Code, loop: tuple[int, int], used_at: _Place) -> dict[str, Any]:
    first, last = code.lines(loop)
    filename, name = code.place
    return {"at": _frame((filename, first, name)), "last": last, "backward": [_frame(used_at)]}


def _frame(place: _Place) -> dict[str, Any]:
    return dict(zip(("filename", "line", "name"), place, strict=True))


def _of_loop(code: _Code, loop: tuple[int, int], end: int) -> _Ahead:
    """What is done with what a loop stores, after it and up to `end`."""
    made: set[str] = set()
    for statement in code.statements(*loop):
        made |= _taken_in(statement)
    return _ahead(code, made, code.statements(loop[1] + 1, end))


def _of_call(code: _Code, offset: int, end: int) -> _Ahead:
    """What is done with what the call at `offset` gives back, up to `end`."""
    rest = code.statements(offset, end)
    pending = next(rest, [])
    if _is_backward(pending[1:]):
        return _Ahead(code.line(offset), returns=False)
    return _Ahead(None, returns=True) if _returns(pending) else _ahead(code, _taken_in(pending), rest)


def _ahead(code: _Code, made: set[str], statements: Iterator[list[dis.Instruction]]) -> _Ahead:
    """Follow the variables `made` through `statements`, from top to bottom.

    A branch that is not taken may count, which errs towards a backward.
    """
    returns = False
    for statement in statements:
        if not made & set(_read(statement)):
            made -= set(_written(statement))
            continue
        if _is_backward(statement):
            return _Ahead(code.line(statement[0].offset), returns=False)
        returns |= _returns(statement)
        made |= _taken_in(statement)
    return _Ahead(None, returns)


def _is_backward(statement: list[dis.Instruction]) -> bool:
    return any(one.argval in _BACKWARD for one in statement if one.opname.startswith("LOAD_"))


def _returns(statement: list[dis.Instruction]) -> bool:
    return bool(statement) and statement[-1].opname == "RETURN_VALUE"


def _taken_in(statement: list[dis.Instruction]) -> set[str]:
    """The variables that a statement stores into: by name, or by a method such as ``losses.append(loss)``."""
    written = set(_written(statement))
    first = next((one for one in statement if one.opname.startswith(_VARIABLES)), None)
    if written or first is None or statement[-1].opname != "POP_TOP":
        return written
    return set(_names(first)[:1])


def _names(one: dis.Instruction) -> tuple[str, ...]:
    values = one.argval if isinstance(one.argval, tuple) else (one.argval,)
    return tuple(name for name in values if isinstance(name, str))


def _read(statement: list[dis.Instruction]) -> Iterator[str]:
    for one in statement:
        if "LOAD" in one.opname and "CONST" not in one.opname:
            yield from _names(one)


def _written(statement: list[dis.Instruction]) -> Iterator[str]:
    for one in statement:
        if one.opname.startswith("STORE_"):
            yield from _names(one)
