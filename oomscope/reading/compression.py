"""Compressed files, told by their first bytes."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, BinaryIO

from oomscope.errors import SnapshotError

# A snapshot is compressed once, or twice where someone did not look; more is a game.
_MOST_LAYERS = 4
_LONGEST_MAGIC = 6
_CHUNK = 64 << 10


def decompressed(raw: io.BufferedReader[Any], buffer_size: int) -> io.BufferedReader[Any]:
    """What `raw` holds once every layer of compression is taken off. It is decompressed while it is read.

    Raises:
        SnapshotError: the library for the format is not installed.
    """
    stream = raw
    for _ in range(_MOST_LAYERS):
        head = stream.peek(_LONGEST_MAGIC)[:_LONGEST_MAGIC]
        found = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)
        if found is None:
            return stream
        try:
            stream = io.BufferedReader(_OPENERS[found](stream), buffer_size)
        except ImportError:
            hint = "install it with: pip install 'oomscope[zstd]'" if found == "zstd" else "decompress it first"
            raise SnapshotError(f"the file is compressed with {found}, which this Python lacks; {hint}.") from None
    raise SnapshotError(f"the file is compressed more than {_MOST_LAYERS} times over; decompress it first.")


def decompression_errors() -> tuple[type[Exception], ...]:
    """What the libraries raise for damaged data, apart from `EOFError` for data that end early."""
    errors: list[type[Exception]] = [OSError]
    for module, name in _ERRORS:
        with suppress(ImportError):
            errors.append(getattr(import_module(module), name))
    return tuple(errors)


def _gzip(stream: BinaryIO) -> Any:
    import gzip

    return _Pieces(gzip.GzipFile(fileobj=stream))


def _bzip2(stream: BinaryIO) -> Any:
    import bz2

    return _Pieces(bz2.BZ2File(stream))


def _xz(stream: BinaryIO) -> Any:
    import lzma

    return _Pieces(lzma.LZMAFile(stream))


def _zstd(stream: BinaryIO) -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]  # Python 3.14+

        return _Pieces(zstd.ZstdFile(stream))
    except ImportError:
        import zstandard

        return _WholeFrames(stream, zstandard.ZstdDecompressor())


class _Pieces(io.RawIOBase):
    """Hands out what is there, piece by piece, so that nothing before a cut is lost with it."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read1(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _WholeFrames(io.RawIOBase):
    """Decompresses zstd frames one after another with `zstandard`.

    Its own reader stops after the first frame, and takes a cut one for a whole one.
    """

    def __init__(self, stream: BinaryIO, decompressor: Any) -> None:
        self._stream, self._decompressor = stream, decompressor
        self._frame: Any = None
        self._left = b""  # compressed bytes not yet used
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            data = self._left or self._stream.read(_CHUNK)
            if not data:
                if self._frame is not None:
                    raise EOFError("Compressed file ended before the end-of-stream marker was reached")
                return 0
            if self._frame is None:
                self._frame = self._decompressor.decompressobj()
            self._ready, self._left = memoryview(self._frame.decompress(data)), b""
            if self._frame.eof:
                self._left, self._frame = self._frame.unused_data, None
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count


_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_OPENERS: dict[str, Callable[[BinaryIO], Any]] = {"gzip": _gzip, "bzip2": _bzip2, "xz": _xz, "zstd": _zstd}
_ERRORS = (
    ("zlib", "error"),
    ("lzma", "LZMAError"),
    ("compression.zstd", "ZstdError"),
    ("zstandard", "ZstdError"),
)
