"""Unpickling that can run nothing and end nothing.

A pickle is a program for a small machine. What makes it dangerous are the instructions that look up a Python object by
name and call it; no snapshot needs one. All of them are refused here, so a file can only ever build dicts, lists,
tuples, sets, texts, bytes and numbers. What it asks for by sheer size or depth is refused before the unpickler sees it:
`checked.py`, `instructions.py`.
"""

from __future__ import annotations

import copyreg
import gc
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, NoReturn

from oomscope.errors import SnapshotError, UnsafePickleError
from oomscope.reading.checked import CheckedStream
from oomscope.reading.instructions import refusal
from oomscope.reading.printable import printable

_PLAIN = (int, str, float, bytes, type(None))
_LONGEST_TUPLE = 16
_MOST_TUPLES = 10_000


class CutOffError(Exception):
    """The pickle ends too early.

    Attributes:
        levels: what was on the unpickler's stack, between its marks, the innermost first; `OPEN` stands in each for the
            one before.
        size: bytes before the end.
        collectors: how many stand in it for traces, see `streaming.py`.
    """

    def __init__(self, levels: list[tuple[Any, ...]], size: int) -> None:
        super().__init__()
        self.levels, self.size = levels, size
        self.collectors = 0


OPEN = object()
"""Stands for what is above a mark of the unpickler's stack."""


class SafeUnpickler(pickle.Unpickler):
    """The C unpickler, with every way to anything but plain containers closed.

    Args:
        stream: what to unpickle.
    """

    def __init__(self, stream: CheckedStream) -> None:
        super().__init__(stream)
        self._stream = stream
        self._levels: list[tuple[Any, ...]] = []
        self._tuples = 0

    def load(self) -> Any:
        """The object in the file.

        Raises:
            CutOffError: the file ends before it.
            UnsafePickleError: the file asked for more than data; nothing was run.
            SnapshotError: it asks for more than any snapshot needs.
        """
        # Objects cached under extension codes would be handed out without asking `find_class`.
        copyreg.clear_extension_cache()
        try:
            return super().load()
        except (SnapshotError, MemoryError):
            raise
        except Exception:
            if self._stream.is_cut and self._stream.closed:
                raise CutOffError(self._levels, self._stream.instructions.walked) from None
            if self._stream.instructions.lookup is not None:
                raise copy(self._stream.instructions.lookup) from None
            raise

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuse: GLOBAL, STACK_GLOBAL, INST and the extension codes come here."""
        raise UnsafePickleError(refusal(f"load and run {printable(f'{module}.{name}', 120)}", _guess(module)))

    def persistent_load(self, pid: Any) -> Any:
        """Take what is unfinished, after the end; before it, make lists of tuples that could do harm where hashed."""
        if self._stream.closed:
            self._levels.append(pid)
            return OPEN
        if type(pid) is tuple:
            return self._harmless(pid)
        raise UnsafePickleError(refusal("fetch an object from outside the file"))

    def _harmless(self, items: tuple[Any, ...]) -> tuple[Any, ...] | list[Any]:
        """`items` if hashing them costs next to nothing, else a list of them, which nothing can hash."""
        self._tuples += 1
        is_small = len(items) <= _LONGEST_TUPLE and self._tuples <= _MOST_TUPLES
        return items if is_small and all(isinstance(item, _PLAIN) for item in items) else list(items)


def _guess(module: str) -> str:
    if module.partition(".")[0] in {"torch", "numpy", "collections", "_codecs", "transformers"}:
        return "; this is probably a checkpoint or another pickled object"
    return ""


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
