"""Which variables a running call will still read, told from its bytecode: classic live-variable analysis.

A variable is live where some way through the rest of the code reads it before it is written or deleted. Of what is
read, an attribute or an item with a constant key is told apart from the whole: after ``print(checkpoint["step"])`` the
weights beside that number are read by nobody.
"""

from __future__ import annotations

import dis
import functools
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from types import CodeType
from typing import NamedTuple

from oomscope.recording.census.carried import LARGEST

_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
_ENDS = frozenset({"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "INTERPRETER_EXIT"})
_ALWAYS = frozenset(
    {"JUMP_FORWARD", "JUMP_ABSOLUTE", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP", "JUMP_NO_INTERRUPT"}
)
_SETUPS = frozenset({"SETUP_FINALLY", "SETUP_WITH", "SETUP_ASYNC_WITH"})  # until Python 3.10
_ENTERS = frozenset({"BEFORE_WITH", "SETUP_WITH"})
_CALLING = ("PUSH_NULL", "PRECALL", "CALL", "CACHE", "LOAD_CONST")
_ITERATES = frozenset({"GET_ITER", "GET_AITER"})
_ADVANCES = frozenset({"FOR_ITER", "GET_ANEXT"})
_READS_ALL = frozenset({"locals", "vars", "eval", "exec", "breakpoint", "globals"})
_MOST_INSTRUCTIONS = 20_000
_MOST_STEPS = 4


class LoopAround(NamedTuple):
    """A loop of some code: its first line, None where no line is known, and the variables that it writes."""

    line: int | None
    writes: frozenset[str]


class Use(NamedTuple):
    """One thing that will be read: a variable, or what `steps` lead to from it (``.name``, ``[key]``)."""

    name: str
    steps: tuple[tuple[str, str | int], ...] = ()


@functools.lru_cache(maxsize=512)
def uses_after(code: CodeType, offset: int) -> frozenset[Use] | None:
    """What may be read once the instruction at `offset` is done; None where that cannot be told.

    Args:
        code: of a call that is running.
        offset: in bytes, as ``frame.f_lasti`` has it.
    """
    flow = _flow_of(code)
    return None if flow is None else flow.live_after(offset)


@functools.lru_cache(maxsize=512)
def loops_around(code: CodeType, offset: int) -> tuple[LoopAround, ...]:
    """The loops that the instruction at `offset` is in, innermost first."""
    flow = _flow_of(code)
    return () if flow is None else flow.loops_around(offset)


@functools.lru_cache(maxsize=512)
def uses_after_block(code: CodeType, offset: int, managers: frozenset[str]) -> frozenset[Use] | None:
    """What may be read once the outermost ``with`` of one of `managers` around the instruction at `offset` is left.

    Args:
        code: of a call that is running.
        offset: in bytes, as ``frame.f_lasti`` has it.
        managers: last names of context managers that are made by the ``with`` itself, such as ``no_grad``.

    Returns:
        None where the instruction is in no such block, or that cannot be told.
    """
    flow = _flow_of(code) if managers.intersection(code.co_names) else None
    return None if flow is None else flow.live_after_block(offset, managers)


@functools.lru_cache(maxsize=4096)
def attributes_read(code: CodeType, offset: int | None) -> frozenset[int] | None:
    """The instructions that ask for what was there before, once the one at `offset` is done; None for too long code.

    An attribute of the first argument that is stored on every way to where it is asked for is asked for anew.

    Args:
        code: of a function, or a module.
        offset: in bytes; None: before the first instruction.

    Returns:
        Positions in ``dis.get_instructions(code)``.
    """
    if len(code.co_code) > LARGEST:
        return None
    return _Flow(code).attributes_read(code, offset)


@functools.lru_cache(maxsize=512)
def _flow_of(code: CodeType) -> _Flow | None:
    if len(code.co_code) > LARGEST:
        return None
    flow = _Flow(code)
    return None if flow.reads_all else flow


@functools.lru_cache(maxsize=4096)
def global_reads(code: CodeType) -> frozenset[str] | None:
    """The global names that `code` and what is defined within it may read; None where that cannot be told."""
    if len(code.co_code) > LARGEST:
        return None
    names: set[str] = set()
    for one in dis.get_instructions(code):
        if one.opname.startswith("LOAD_") and one.opname.endswith(("_GLOBAL", "_NAME", "_GLOBALS")):
            names.add(str(one.argval))
    if names & _READS_ALL:
        return None
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = global_reads(constant)
            if inner is None:
                return None
            names |= inner
    return frozenset(names)


class _Flow:
    """The instructions of one code object, what each reads and writes, and which may follow it."""

    def __init__(self, code: CodeType) -> None:
        found = list(dis.get_instructions(code))
        self._found = found
        self._offsets = [one.offset for one in found]
        line_of = {offset: line for begin, end, line in code.co_lines() for offset in range(begin, end, 2)}
        self._lines = [line_of.get(offset) for offset in self._offsets]
        self._solved: list[frozenset[Use]] | None = None
        position = {one.offset: number for number, one in enumerate(found)}
        self.reads_all = len(found) > _MOST_INSTRUCTIONS or any(
            one.opname in ("LOAD_GLOBAL", "LOAD_NAME") and one.argval in _READS_ALL for one in found
        )
        self.reads: list[frozenset[Use]] = []
        self.writes: list[frozenset[str]] = []
        for number, one in enumerate(found):
            reads, writes = _reads_and_writes(found, number, one)
            if one.opname in _ADVANCES:
                reads |= _gone_through(found, number, self.reads)
            self.reads.append(reads)
            self.writes.append(writes)
        self.following: list[list[int]] = []
        for number, one in enumerate(found):
            goes_on = one.opname not in _ENDS and one.opname not in _ALWAYS and number + 1 < len(found)
            self.following.append([number + 1] if goes_on else [])
            if one.opcode in _JUMPS:
                self.following[-1].append(position[one.argval])
        for begin, end, handler in _handlers(code, found):
            for number in range(bisect_left(self._offsets, begin), bisect_left(self._offsets, end)):
                self.following[number].append(position[handler])
        self._before: list[list[int]] = [[] for _ in found]
        for number, following in enumerate(self.following):
            for after in following:
                self._before[after].append(number)

    def live_after(self, offset: int) -> frozenset[Use]:
        """What is read after the instruction at `offset`, which may be one of the caches that belong to it."""
        live = self._live()
        return frozenset().union(*(live[one] for one in self.following[self._at(offset)]))

    def live_after_block(self, offset: int, managers: frozenset[str]) -> frozenset[Use] | None:
        """What is read after the outermost ``with`` of one of `managers` that the instruction is in; None for none."""
        here = self._at(offset)
        for number, one in enumerate(self._found[: here + 1]):
            if one.opname in _ENTERS and _maker(self._found, number) in managers:
                exits = self._exits(number)
                if here in self._reached_from(self.following[number], exits) - exits:
                    live = self._live()
                    return frozenset().union(*(live[one] for one in exits))
        return None

    def _exits(self, entering: int) -> frozenset[int]:
        """Where a block is left: what hands ``__exit__`` that there was no error stands on the line of its ``with``."""
        line = self._lines[entering]
        return frozenset(
            number
            for number, one in enumerate(self._found)
            if number > entering
            and self._lines[number] == line
            and ((one.opname == "LOAD_CONST" and one.argval is None) or one.opname == "WITH_EXCEPT_START")
        )

    def attributes_read(self, code: CodeType, offset: int | None) -> frozenset[int]:
        """The instructions that may follow, without those that ask for an attribute that was stored on the way."""
        starts = [0] if offset is None else self.following[self._at(offset)]
        reached = self._reached_from(starts, frozenset())
        stored: dict[str, set[int]] = {}
        asked: dict[str, set[int]] = {}
        for number in reached:
            one = self._found[number]
            if one.opname in ("STORE_ATTR", "LOAD_ATTR") and self._is_of_first(code, number):
                (stored if one.opname == "STORE_ATTR" else asked).setdefault(str(one.argval), set()).add(number)
        for name in stored.keys() & asked.keys():
            before = self._reached_from(starts, frozenset(stored[name]))
            if not before & asked[name]:
                reached -= asked[name]
        return frozenset(reached)

    def _is_of_first(self, code: CodeType, number: int) -> bool:
        """Whether the object that an instruction takes an attribute of is the function's first argument."""
        before = self._found[number - 1] if number and code.co_argcount else None
        if before is None or not before.opname.startswith("LOAD_FAST"):
            return False
        names = before.argval if isinstance(before.argval, tuple) else (before.argval,)
        return bool(names[-1] == code.co_varnames[0])

    def _reached_from(self, starts: list[int], walls: frozenset[int]) -> set[int]:
        """What may be executed from `starts` on, up to `walls`."""
        open_ones, seen = [one for one in starts if one not in walls], set(starts) - walls
        while open_ones:
            new = [one for one in self.following[open_ones.pop()] if one not in seen and one not in walls]
            seen.update(new)
            open_ones += new
        return seen

    def loops_around(self, offset: int) -> tuple[LoopAround, ...]:
        """The loops around the instruction, innermost first."""
        here = self._at(offset)
        whole = self._reached(here, self.following) & self._reached(here, self._before)
        # A handler stands behind the rest of the code, and jumps back to it without being a loop.
        back = [(one, end) for end in whole for one in self.following[end] if one in whole and one <= here <= end]
        inner = sorted(back, key=lambda loop: loop[1] - loop[0])
        found = [{one for one in whole if begin <= one <= end} for begin, end in inner] + ([whole] if whole else [])
        return tuple(
            LoopAround(
                min((line for one in loop if (line := self._lines[one]) is not None), default=None),
                frozenset(name for one in loop for name in self.writes[one]),
            )
            for loop in found
        )

    def _reached(self, start: int, edges: list[list[int]]) -> set[int]:
        open_ones, seen = [start], set[int]()
        while open_ones:
            new = [one for one in edges[open_ones.pop()] if one not in seen]
            seen.update(new)
            open_ones += new
        return seen

    def _at(self, offset: int) -> int:
        return max(bisect_right(self._offsets, offset) - 1, 0)

    def _live(self) -> list[frozenset[Use]]:
        """For each instruction what is live before it."""
        if self._solved is not None:
            return self._solved
        live: list[frozenset[Use]] = [frozenset()] * len(self.reads)
        waiting = list(range(len(self.reads)))
        is_waiting = bytearray(b"\1" * len(waiting))
        while waiting:
            number = waiting.pop()
            is_waiting[number] = 0
            now = self._live_before(number, frozenset().union(*(live[one] for one in self.following[number])))
            if now == live[number]:
                continue
            live[number] = now
            for one in self._before[number]:
                if not is_waiting[one]:
                    is_waiting[one] = 1
                    waiting.append(one)
        self._solved = live
        return live

    def _live_before(self, number: int, after: frozenset[Use]) -> frozenset[Use]:
        written = self.writes[number]
        kept = frozenset(use for use in after if use.name not in written) if written else after
        return kept | self.reads[number]


def _maker(found: list[dis.Instruction], number: int) -> str | None:
    """The last name of what is called just before an instruction, without arguments or with constants."""
    for one in reversed(found[:number]):
        if one.opname.startswith("LOAD_") and one.opname != "LOAD_CONST":
            return str(one.argval)
        if not one.opname.startswith(_CALLING):
            return None
    return None


def _handlers(code: CodeType, found: list[dis.Instruction]) -> Iterator[tuple[int, int, int]]:
    """(first offset, offset after the last, handler) of what is within a ``try`` or ``with``."""
    for one in found:
        if one.opname in _SETUPS:
            yield one.offset, one.argval, one.argval
    for entry in getattr(dis.Bytecode(code), "exception_entries", ()):
        yield entry.start, entry.end, entry.target


def _gone_through(found: list[dis.Instruction], number: int, reads: list[frozenset[Use]]) -> frozenset[Use]:
    """The variables whose values the loop at `number` goes through: its iterator reads them, not their names."""
    missing, place = 1, number - 1
    while place >= 0 and found[place].opname not in _ITERATES:
        place -= 1
    names: set[str] = set()
    while missing > 0 and place > 0:
        place -= 1
        names |= {use.name for use in reads[place]}
        missing -= dis.stack_effect(found[place].opcode, found[place].arg, jump=False)
    return frozenset(map(Use, names))


def _reads_and_writes(
    found: list[dis.Instruction], number: int, one: dis.Instruction
) -> tuple[frozenset[Use], frozenset[str]]:
    reads: set[Use] = set()
    writes: set[str] = set()
    known = list(_accesses(one))
    for place, (is_read, name) in enumerate(known):
        if not is_read:
            writes.add(name)
        elif name not in writes:  # else it reads what it has just written
            steps = _steps(found, number + 1) if place == len(known) - 1 and one.opname != "LOAD_CLOSURE" else ()
            reads.add(Use(name, tuple(steps)))
    return frozenset(reads), frozenset(writes)


def _accesses(one: dis.Instruction) -> Iterator[tuple[bool, str]]:
    """Whether each variable of an instruction is read, with its name; ``del`` counts as writing."""
    words = one.opname.split("_")
    if words[0] not in ("LOAD", "STORE", "DELETE") or words[-1] in ("ATTR", "METHOD", "CONST"):
        return
    kinds = [word == "LOAD" for word in words if word in ("LOAD", "STORE", "DELETE")]
    names = one.argval if isinstance(one.argval, tuple) else (one.argval,)
    yield from ((is_read, name) for is_read, name in zip(kinds, names, strict=False) if isinstance(name, str))


def _steps(found: list[dis.Instruction], number: int) -> Iterator[tuple[str, str | int]]:
    """The attributes and constant keys that are asked for, one after the other, of what has just been read."""
    for _ in range(_MOST_STEPS):
        one = found[number] if number < len(found) else None
        following = found[number + 1] if number + 1 < len(found) else None
        if one is not None and one.opname == "LOAD_ATTR" and not _is_method(one):
            yield ".", one.argval
            number += 1
        elif one is not None and following is not None and _is_constant_key(one, following):
            yield "[", one.argval
            number += 2
        else:
            return


def _is_method(one: dis.Instruction) -> bool:
    # Since Python 3.12 the lowest bit tells a call of a method; before, there was LOAD_METHOD.
    return sys.version_info >= (3, 12) and bool((one.arg or 0) & 1)


def _is_constant_key(one: dis.Instruction, following: dis.Instruction) -> bool:
    return one.opname == "LOAD_CONST" and type(one.argval) in (str, int) and following.opname == "BINARY_SUBSCR"
