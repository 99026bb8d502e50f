"""Plain first version; the real one follows."""

from __future__ import annotations

import gc
import os
import pickle
from typing import Any, BinaryIO

from oomscope.errors import UnsafePickleError
from oomscope.model import Snapshot
from oomscope.reading.assemble import assemble
from oomscope.reading.source import Progress
from oomscope.reading.tables import Tables


class _Safe(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise UnsafePickleError(f"refused {module}.{name}")


def load(source: str | os.PathLike[str] | BinaryIO, *, progress: Progress | None = None) -> Snapshot:
    was = gc.isenabled()
    gc.disable()
    try:
        if hasattr(source, "read"):
            return assemble(_Safe(source).load(), Tables())
        with open(source, "rb") as f:
            document = _Safe(f).load()
            return assemble(document, Tables())
    finally:
        if was:
            gc.enable()
