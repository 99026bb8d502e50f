"""Putting a dump on disk: whole or not at all, under a name that nothing else has."""

from __future__ import annotations

import errno
import gzip
import json
import mmap
import os
import pickle
import re
from collections.abc import Callable
from math import inf
from pathlib import Path
from time import monotonic, strftime
from typing import IO, Any

from oomscope.recording import process

# The oldest viewer reads nothing newer: pytorch.org/memory_viz throws at protocol 5.
_PROTOCOL = 4
# A message is known only after the observer has returned; this many bytes are kept free for it.
MESSAGE_BYTES = 4096
BLANK_MESSAGE = " " * MESSAGE_BYTES
_UNFIT = re.compile(r"[^\w.+-]")


def file_name(pattern: str, reason: str, sequence: int) -> str:
    """The pattern with its words filled in; a rank that is not set is 0."""
    words = {
        "reason": reason,
        "host": process.host(),
        "rank": process.rank() or 0,
        "pid": os.getpid(),
        "time": strftime("%Y%m%d-%H%M%S"),
        "sequence": sequence,
    }
    return pattern.format(**{name: _UNFIT.sub("-", str(word)) for name, word in words.items()})


class _Timed:
    """A file that is given up on: a folder on a network may take minutes for each megabyte.

    Only between two writes, 64 KB each: what the system does not come back from, nothing here can end.
    """

    def __init__(self, file: IO[bytes], seconds: float) -> None:
        self._file, self._seconds, self._end = file, seconds, monotonic() + seconds

    def write(self, data: Any) -> int:
        """Write `data`.

        Raises:
            TimeoutError: the time is over.
        """
        if monotonic() > self._end:
            raise TimeoutError(errno.ETIMEDOUT, f"not written within {self._seconds:.3g} s")
        return self._file.write(data)

    def flush(self) -> None:
        """As of the file."""
        self._file.flush()


def write_pickle(payload: dict[str, Any], target: Path, *, compress: bool, seconds: float = inf) -> Path:
    """The payload as a snapshot's pickle at `target`, or beside it where that name is taken.

    Raises:
        OSError: it cannot be written, or not within so many seconds; nothing is left behind.
    """

    def write(file: IO[bytes]) -> None:
        timed: Any = _Timed(file, seconds)
        if compress:
            with gzip.GzipFile(fileobj=timed, mode="wb", compresslevel=1) as squeezed:
                pickle.dump(payload, squeezed, protocol=_PROTOCOL)
        else:
            pickle.dump(payload, timed, protocol=_PROTOCOL)

    return _place(target.with_name(target.name + ".gz") if compress else target, write)


def write_json(payload: dict[str, Any], target: Path) -> Path:
    """The payload as JSON, for when no pickle could be written.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    text = json.dumps(payload, default=str)
    return _place(target.with_suffix(".json"), lambda file: file.write(text.encode()))


def _place(target: Path, write: Callable[[IO[bytes]], Any]) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            # No fsync: what a killed process has written stays; only a machine that goes down could lose it.
            write(file)
        return _move(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _move(temporary: Path, target: Path) -> Path:
    candidate, number = target, 1
    while True:
        try:
            # Unlike a rename, a link never replaces what is there.
            os.link(temporary, candidate)
        except FileExistsError:
            number += 1
            candidate = target.with_name(f"{number}_{target.name}")
        except OSError:  # a file system without links
            if not candidate.exists():
                return temporary.replace(candidate)
            number += 1
            candidate = target.with_name(f"{number}_{target.name}")
        else:
            temporary.unlink()
            return candidate


def fill_message(path: Path, message: str) -> bool:
    """Put an exception's text into the blank that the dump keeps for it; False where there is none.

    The file stays as long as it was, so that a reader never sees half of it.
    """
    if path.suffix != ".pickle":
        return False
    text = message.encode()[:MESSAGE_BYTES].decode(errors="ignore").encode().ljust(MESSAGE_BYTES)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        # The dump's own key comes first in the file, so the search is short.
        place = content.find(BLANK_MESSAGE.encode())
        if place < 0:
            return False
        content[place : place + MESSAGE_BYTES] = text
    return True


def why_not_writable(folder: Path) -> str | None:
    """Why no dump could be written here, so that it is said when the job starts and not when it dies."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        return f"{folder} cannot be made: {problem.strerror}"
    return None if os.access(folder, os.W_OK | os.X_OK) else f"{folder} is not writable"
