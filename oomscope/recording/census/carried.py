"""Which variables of a function outlive a pass of its loops, told from its bytecode.

A loss reaches the graph of every pass as soon as a hidden state does that was never detached. Both keep it, but it is
the state that carries it from pass to pass: a loop reads it before it writes it, and writes the loss first.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterator
from types import CodeType

_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
LARGEST = 100_000
"""Bytes of code; longer functions were generated."""


@functools.lru_cache(maxsize=512)
def carried_names(code: CodeType) -> frozenset[str]:
    """The variables that some loop in `code` reads before it writes them; empty where there is no loop."""
    if len(code.co_code) > LARGEST:
        return frozenset()
    instructions = list(dis.get_instructions(code))
    loops = {(one.argval, one.offset) for one in instructions if one.opcode in _JUMPS and one.argval < one.offset}
    accesses = [(one.offset, reads, name) for one in instructions for reads, name in _accesses(one)]
    carried: set[str] = set()
    for begin, end in loops:
        written: set[str] = set()
        for offset, reads, name in accesses:
            if begin <= offset <= end:
                if not reads:
                    written.add(name)
                elif name not in written:
                    carried.add(name)
    return frozenset(carried)


def _accesses(instruction: dis.Instruction) -> Iterator[tuple[bool, str]]:
    """Whether each variable of an instruction is read, with its name: ``STORE_FAST_LOAD_FAST`` has two."""
    words = instruction.opname.split("_")
    kinds = [word == "LOAD" for word in words if word in ("LOAD", "STORE")]
    names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
    if words[0] in ("LOAD", "STORE") and words[1] in ("FAST", "NAME", "DEREF", "GLOBAL"):
        yield from ((reads, name) for reads, name in zip(kinds, names, strict=False) if isinstance(name, str))
