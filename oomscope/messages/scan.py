"""Finds the places of a log that may hold a message, fast: most of a log is about something else."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from oomscope.frozen import frozen
from oomscope.messages.anchors import COMMONEST, Anchors

CHUNK = 8 << 20
BACK = 2 << 10
"""Bytes before a place that are read with it: the end of the traceback, prefixes, the start of the message."""
AHEAD = 2 << 10
"""Bytes after it: the longest message with its list of processes is shorter."""
LONGEST = 64 << 10
"""Bytes of one passage; where places lie close to each other, the next passage begins there."""
_ABOVE = 16 << 10


MOST_READ = 5 << 20
"""Bytes of all passages: more than anybody reads, and read within a second."""
_APART = 400
"""Places closer to each other are of one message."""


class Stream(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end."""


@frozen
class Passage:
    """A stretch of a log around places that may hold a message.

    Attributes:
        raw: its bytes.
        offset: where it begins in the log, in bytes.
        number: the line of the log in which it begins, from 1.
        places: about how many messages it may hold.
        above: up to 16 KiB before it, for the start of a traceback.
    """

    raw: bytes
    offset: int
    number: int
    places: int = 1
    above: bytes = b""


@dataclass(slots=True)
class Scan:
    """Goes through a stream once; holds two chunks at most.

    Attributes:
        size: bytes that went by.
        lines: line breaks that went by.
        unread: places beyond the most that are read, about.
    """

    size: int = 0
    lines: int = 0
    unread: int = 0
    _anchors: Anchors = field(default_factory=Anchors)
    _read: int = 0

    def passages(self, stream: Stream) -> Iterator[Passage]:
        """The passages of `stream`, in order; two may overlap."""
        read = _reader(stream)
        held, offset, number, done = b"", 0, 1, 0
        while True:
            piece = read(CHUNK)
            data = held + piece
            self.size += len(piece)
            limit = max(done, len(data) - AHEAD - 100) if piece else len(data)
            if self._read < MOST_READ:
                places = self._anchors.places(data, done, limit)
                yield from self._affordable(_around(data, places, offset, number))
            else:
                self.unread += data[done:limit].lower().count(COMMONEST)
            keep = max(0, limit - BACK - _ABOVE)
            passed = data.count(b"\n", 0, keep)
            self.lines += passed
            number, offset, held, done = number + passed, offset + keep, data[keep:], limit - keep
            if not piece:
                break
        self.lines += held.count(b"\n") + bool(held and not held.endswith(b"\n"))
        self.unread += max(self._anchors.over.values(), default=0)

    def only_count(self) -> None:
        """Yield no further passages; count what they may hold."""
        self._read = MOST_READ

    def _affordable(self, passages: Iterator[Passage]) -> Iterator[Passage]:
        """Those of `passages` that are within `MOST_READ`; the others are counted."""
        for passage in passages:
            if self._read < MOST_READ:
                self._read += len(passage.raw)
                yield passage
            else:
                self.unread += passage.places


def _around(data: bytes, places: list[int], offset: int, number: int) -> Iterator[Passage]:
    """One passage for places close to each other."""
    counted, index = 0, 0
    while index < len(places):
        first = last = places[index]
        count = 1
        while index < len(places) and places[index] - last <= AHEAD and places[index] - first <= LONGEST:
            count += places[index] - last > _APART
            last = places[index]
            index += 1
        start = _line_start(data, max(0, first - BACK), first)
        number += data.count(b"\n", counted, start)
        counted = start
        above = data[max(0, start - _ABOVE) : start]
        yield Passage(data[start : last + AHEAD], offset + start, number, count, above)


def _line_start(data: bytes, start: int, first: int) -> int:
    """The first start of a line from `start` on; `start` itself where no line begins before the place `first`."""
    after = data.find(b"\n", start - 1, first) if start else -1
    return start if after < 0 else after + 1


def _reader(stream: Stream) -> Callable[[int], bytes]:
    """Reads `stream` as UTF-8: PowerShell writes what a program prints as UTF-16."""
    first = stream.read(CHUNK)
    for mark, name in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if first.startswith(mark):
            return _decoding(stream, first[2:], codecs.getincrementaldecoder(name)("replace"))
    waiting = [first]
    return lambda size: waiting.pop() if waiting else stream.read(size)


def _decoding(stream: Stream, first: bytes, decoder: codecs.IncrementalDecoder) -> Callable[[int], bytes]:
    waiting = [first]

    def read(size: int) -> bytes:
        while raw := waiting.pop() if waiting else stream.read(size):
            if text := decoder.decode(raw):
                return text.encode("utf-8", "replace")
        return b""

    return read
