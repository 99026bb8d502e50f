"""Unpickling that can run nothing.

A pickle is a program for a small machine. What makes it dangerous are the instructions that look up a Python object by
name and call it; no snapshot needs one. All of them are refused here, so a file can only ever build dicts, lists,
tuples, sets, texts, bytes and numbers. What it can still do is ask for absurd amounts of memory, or nest tuples so deep
that the interpreter fails to hash them: that ends the process, and is all it does.
"""

from __future__ import annotations

import copyreg
import gc
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NoReturn

from oomscope.errors import UnsafePickleError
from oomscope.reading.printable import printable

# Opcodes that look up, call or fill objects of other types, or take data from outside the file.
_UNSAFE = frozenset(
    {"GLOBAL", "STACK_GLOBAL", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "REDUCE", "BUILD", "EXT1", "EXT2", "EXT4"}
    | {"PERSID", "BINPERSID", "NEXT_BUFFER", "READONLY_BUFFER"}
)
# Enough to find what is amiss in a file made to harm; a damaged one of a gigabyte is not walked to its end.
_SEARCHED = 1 << 20


class SafeUnpickler(pickle.Unpickler):
    """The C unpickler, with every way to anything but plain containers closed.

    Raises:
        UnsafePickleError: (from `load`) the file asked for one of those ways.
    """

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuse: GLOBAL, STACK_GLOBAL, INST and the extension codes come here."""
        raise UnsafePickleError(refusal(f"load and run {printable(f'{module}.{name}', 120)}", _guess(module)))

    def persistent_load(self, pid: Any) -> Any:
        """Refuse: PERSID and BINPERSID come here."""
        raise UnsafePickleError(refusal(f"fetch an object from outside the file ({printable(pid)})"))

    def load(self) -> Any:
        """The object in the file."""
        # Objects cached under extension codes would be handed out without asking `find_class`.
        copyreg.clear_extension_cache()
        return super().load()


def refusal(wish: str, guess: str = "") -> str:
    """The sentence for a file that asked for more than data."""
    return (
        f"the file asks Python to {wish} while it is read; this was refused and nothing was run, "
        f"for no memory snapshot needs it{guess}."
    )


def _guess(module: str) -> str:
    if module.partition(".")[0] in {"torch", "numpy", "collections", "_codecs", "transformers"}:
        return "; this is probably a checkpoint or another pickled object"
    return ""


def unsafe_opcode(stream: BinaryIO) -> str | None:
    """The sentence about the first opcode in a pickle that asks for more than data; None if none is near the start.

    For files at which the unpickler stumbled for another reason, such as an object built out of a text.
    """
    import pickletools  # large, and rarely needed

    try:
        for opcode, argument, position in pickletools.genops(stream.read(_SEARCHED)):
            if opcode.name in _UNSAFE:
                what = f" {printable(argument)}" if argument is not None else ""
                return refusal(f"build an object (instruction {opcode.name}{what} at byte {position:,})")
    except Exception:
        # The end of what can be understood; that it is damaged is already known.
        return None
    return None


@contextmanager
def collector_paused() -> Iterator[None]:
    """Without the cyclic collector, which would walk millions of dicts again and again and find no cycle."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
