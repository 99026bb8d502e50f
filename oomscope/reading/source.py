"""Where the bytes come from: a path or a file object, readable from its start as often as it takes."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from oomscope.errors import SnapshotError
from oomscope.reading.compression import decompressed
from oomscope.reading.limits import Limits
from oomscope.reading.printable import printable

Progress: TypeAlias = Callable[[int, int, int], None]
"""Called now and then as ``progress(done_bytes, total_bytes, entries)``; bytes are those of the file on disk."""

_STEP = 256 << 10
_PIECE = 4 << 20
# As much as the C unpickler peeks at in one go.
_BUFFER = 128 << 10


class Source:
    """An open file with its name for messages. A context manager: what was opened here is closed at the end.

    Args:
        source: a path, or a binary file object, which is read from where it stands and left open.
        progress: see `Progress`.
        limits: whether contents are refused that are too much for a file of this size.

    Attributes:
        name: the file's name, fit for a message.
        limits: what a file of this size may ask for.
        entries: trace entries read so far, for the progress.

    Raises:
        SnapshotError: the file cannot be opened.
    """

    def __init__(
        self, source: str | os.PathLike[str] | BinaryIO, progress: Progress | None = None, *, limits: bool = True
    ) -> None:
        self.entries = 0
        self._progress = progress
        self._is_ours = not hasattr(source, "read")
        if self._is_ours:
            path = Path(source)  # type: ignore[arg-type]
            self.name = printable(str(path), 200)
            self._file = _open(path, self.name)
        else:
            self.name = _name_of(source)
            self._file = source  # type: ignore[assignment]
        try:
            self._start, self._size = self._measure()
            self.limits = Limits(self._size, limits)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file if it was opened here."""
        if self._is_ours:
            self._file.close()

    def stream(self) -> io.BufferedReader[Any]:
        """The contents, decompressed, from the start. An earlier stream must not be used any longer."""
        self._file.seek(self._start)
        raw = io.BufferedReader(_Meter(self._file, self._size, self), _BUFFER)
        return decompressed(raw, _BUFFER)

    def head(self, size: int) -> bytes:
        """The first bytes of the contents, as many of `size` as there are.

        Raises:
            EOFError: the file's compression is cut before the first.
        """
        stream, head = self.stream(), b""
        try:
            while len(head) < size and (piece := stream.read1(size - len(head))):
                head += piece
        except EOFError:
            if not head:
                raise
        return head

    def contents(self) -> tuple[bytes, bool]:
        """All of the contents, and whether the file's compression is cut off behind them.

        Raises:
            SnapshotError: they are too much for a file of this size.
        """
        stream, pieces, size = self.stream(), [], 0
        try:
            while piece := stream.read1(_PIECE):
                pieces.append(piece)
                size += len(piece)
                self.limits.check(size)
        except EOFError:
            return b"".join(pieces), True
        return b"".join(pieces), False

    def tick(self, done: int) -> None:
        """Report that `done` bytes of the file were read."""
        if self._progress is not None:
            self._progress(done, self._size, self.entries)

    def finish(self) -> None:
        """Report that everything was read."""
        self.tick(self._size)

    def _measure(self) -> tuple[int, int]:
        """Where the contents begin and how many bytes they are. A pipe is read into memory, for it cannot be reread."""
        if not isinstance(self._file.read(0), bytes):
            raise SnapshotError(f"{self.name}: the file is open as text; open it in binary mode ('rb').")
        if not (hasattr(self._file, "seekable") and self._file.seekable()):
            self._file, is_ours, pipe = io.BytesIO(self._file.read()), self._is_ours, self._file
            if is_ours:
                pipe.close()
        start = self._file.tell()
        return start, self._file.seek(0, io.SEEK_END) - start


def _open(path: Path, name: str) -> BinaryIO:
    try:
        # Windows reports a directory as a lack of permission.
        if path.is_dir():
            raise IsADirectoryError
        return path.open("rb", buffering=0)
    except FileNotFoundError:
        raise SnapshotError(f"{name}: there is no such file; check the path.") from None
    except IsADirectoryError:
        raise SnapshotError(f"{name}: this is a directory; name the snapshot file in it.") from None
    except PermissionError:
        raise SnapshotError(f"{name}: no permission to read this file.") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise SnapshotError(f"{name}: the file cannot be opened ({printable(str(reason))}).") from None


def _name_of(file: Any) -> str:
    name = getattr(file, "name", None)
    return printable(name, 200) if isinstance(name, str) else "the given file"


class _Meter(io.RawIOBase):
    """Counts what is read from a file, and never closes it."""

    def __init__(self, file: BinaryIO, size: int, source: Source) -> None:
        self._file, self._size, self._source = file, size, source
        self._done = self._told = 0
        self._readinto = getattr(file, "readinto", self._copy_into)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._readinto(buffer) or 0
        self._done += count
        if self._done - self._told >= _STEP:
            self._told = self._done
            self._source.tick(self._done)
        return count

    def _copy_into(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
