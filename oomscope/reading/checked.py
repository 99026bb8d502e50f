"""A pickle as the unpickler is given it: checked, in frames of our own, and brought to an end where it was cut off."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import BinaryIO, TypeAlias

from oomscope.reading.instructions import FRAME, Instructions
from oomscope.reading.limits import Limits

_CHUNK = 256 << 10
_PIECE = 16 << 20
Take: TypeAlias = Callable[[Instructions, bytes, bool], tuple[bytes, int]]
_MARK, _CLOSE = b"(", (b"t", b"Q")


class CheckedStream:
    """A pickle's instructions, as a file for the unpickler.

    It has no ``peek``, so that the unpickler asks for one frame at a time. Where the data end before the pickle does,
    whatever is unfinished is handed over as tuples, the innermost first: ``TUPLE BINPERSID`` again and again takes what
    lies above the last mark on the unpickler's stack and passes it to `persistent_load`, until no mark is left. The
    pickle begins with a mark of ours, so that nothing lies below the last one.

    Args:
        stream: the pickle.
        limits: told how far it was read.
        take: walks some instructions, with `Instructions`, the data and whether they are the last: what is handed over
            in their place, and how many bytes were used.

    Attributes:
        instructions: what was learnt from walking them.
        is_cut: whether the data have ended before the pickle, and everything before that was handed over.
        closed: in that case, how many instructions were handed over after its end.
    """

    def __init__(self, stream: BinaryIO, limits: Limits, take: Take | None = None) -> None:
        self.instructions = Instructions()
        self.is_cut = False
        self.closed = 0
        self._stream, self._limits, self._take = stream, limits, take or _all
        self._is_last = False
        self._left = b""  # the beginning of an instruction that is not whole yet
        self._buffer, self._at = _MARK, 0

    def read(self, size: int) -> bytes:
        """The next `size` bytes; fewer only at the end.

        Raises:
            SnapshotError: what comes next would do harm, or is more than a file of this size may need.
        """
        while len(self._buffer) - self._at < size and self._fill():
            pass
        if self._at >= len(self._buffer) and self.is_cut:
            self.closed += 1
            return _CLOSE[(self.closed + 1) % 2]
        data = self._buffer[self._at : self._at + size]
        self._at += len(data)
        return data

    def readline(self) -> bytes:
        """The next line; instructions of protocol 0 read one. It never spans two frames."""
        end = self._buffer.find(b"\n", self._at)
        return self.read((len(self._buffer) if end < 0 else end + 1) - self._at)

    def _fill(self) -> bool:
        """Append the next frame to the buffer; False at the end."""
        found = self.instructions
        if self.is_cut or found.has_ended:
            return False
        if found.problem is not None:
            if not self._is_last or self._left.strip(b"\0"):
                raise copy(found.problem)  # what is kept here must not keep the frames that it was raised in
            # The rest is zeros, which a machine that went down leaves where it had made room for the file.
            self.is_cut, found.problem = True, None
            return True
        # What an instruction wants is the file's claim: so at most twice as much as was there.
        size = min(max(found.wanted, _CHUNK), max(len(self._left), _PIECE))
        piece = read_up_to(self._stream, size)
        data = self._left + piece
        self._limits.check(found.walked + len(data))
        body, used = self._take(found, data, len(piece) < size)
        self._left = data[used:]
        self._is_last = len(piece) < size
        if self._is_last and not body and not (found.has_ended or found.problem):
            self.is_cut = True
        frame = bytes([FRAME]) + len(body).to_bytes(8, "little") + body if body else b""
        self._buffer, self._at = self._buffer[self._at :] + frame, 0
        return True


def _all(found: Instructions, data: bytes, _is_last: bool) -> tuple[bytes, int]:
    return found.take(data)


def read_up_to(stream: BinaryIO, size: int) -> bytes:
    """`size` bytes, or fewer where the file or its compressed data end."""
    pieces = []
    try:
        # One piece at a time: what was decompressed before a cut must not be lost with it.
        while size > 0 and (piece := stream.read1(min(size, _PIECE))):  # type: ignore[attr-defined]
            pieces.append(piece)
            size -= len(piece)
    except EOFError:
        pass
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
