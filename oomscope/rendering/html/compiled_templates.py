"""Templates keep what they were compiled to, where and as Python keeps it of modules: in ``__pycache__`` beside them.

Compiling them takes as long as all other work for the page of a small snapshot.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket, BytecodeCache


class CompiledTemplates(BytecodeCache):
    """The compiled templates of a folder; where it cannot be written, they are compiled anew by every process.

    Args:
        folder: the templates.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _path(self, bucket: Bucket) -> Path:
        # jinja2 compares the checksum of the source and Python's release, but not its own.
        return Path(cache_from_source(str(self._folder / f"{bucket.key}-{jinja2.__version__}.py")))

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill `bucket` with what was kept, if anything was; jinja2 rejects what is out of date."""
        try:
            with self._path(bucket).open("rb") as file:
                bucket.load_bytecode(file)
        except Exception:  # a damaged file: marshal and pickle raise nearly anything
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what `bucket` holds, unless Python was told to keep nothing."""
        if sys.dont_write_bytecode:
            return
        path = self._path(bucket)
        temporary = path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(bucket.bytecode_to_string())
            temporary.replace(path)
