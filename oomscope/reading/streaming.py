"""The trace taken off the unpickler as it comes, so that its dicts never exist all at once.

CPython's unpickler hands the items of a list over in batches of a thousand; where the object on its stack is no real
list, it calls that object's ``extend``. So the one byte that opens a device's trace, ``EMPTY_LIST``, is replaced in
passing by two, ``NONE BINPERSID``: "fetch the object with the id None", and the unpickler gets a collector that turns
each batch into columns and empties its dicts. Frames, the chunks in which protocols 4 and 5 write, are made longer by
as much.

This is an optimisation of one layout, the one that ``pickle.dump`` writes. Where anything is not exactly as expected,
`UnexpectedError` says so and the caller reads the file the plain way, which decides.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any, BinaryIO

from oomscope.errors import UnsafePickleError
from oomscope.reading.source import Source
from oomscope.reading.tables import Tables
from oomscope.reading.traces import TraceBuilder
from oomscope.reading.unpickling import SafeUnpickler, refusal

_FRAME, _STOP = 0x95, b"."
_HEADER = 9  # FRAME and the length, eight bytes
_COLLECTOR = b"NQ"  # NONE BINPERSID
_MEMOIZED_LIST = rb"\]\x94"  # EMPTY_LIST MEMOIZE
# The key, the list of traces (MARK before several items), the traces up to the first that is not empty.
_FIRST_TRACES = re.compile(
    rb"\x8c\x0ddevice_traces\x94" + _MEMOIZED_LIST + rb"\(?((?:" + _MEMOIZED_LIST + rb")+)", re.DOTALL
)
# After the end of a trace (SETITEMS of its last entry, then APPENDS or APPEND), up to the next that is not empty.
_LATER_TRACES = re.compile(rb"u[ea]((?:" + _MEMOIZED_LIST + rb")+)(?:\(?\}\x94\(|\(?\Z)", re.DOTALL)
_ENDS_OF_TRACE = (b"ue]\x94", b"ua]\x94")
# Enough of the frame before to recognise either pattern across the boundary.
_OVERLAP = 64
_PIECE, _LINE = 16 << 20, 4 << 10


class UnexpectedError(Exception):
    """The file is not laid out as expected, or is damaged: it has to be read the plain way."""


class CutOffError(Exception):
    """The file ends in the middle of a trace that was as expected so far."""


def is_streamable(head: bytes) -> bool:
    """Whether a pickle that begins like this is framed."""
    return len(head) > 2 and head[0] == 0x80 and head[1] in (4, 5) and head[2] == _FRAME


def load_streaming(stream: BinaryIO, tables: Tables, source: Source) -> Any:
    """The document in a pickle, with a `TraceBuilder` in the place of each trace that was taken as it came.

    Raises:
        UnexpectedError: read the file the plain way, with new tables.
        CutOffError: the file ends too early.
    """
    patched = _PatchedStream(stream)
    unpickler = _CollectingUnpickler(patched, tables, source)
    try:
        document = unpickler.load()
    except MemoryError:
        raise
    except Exception as error:
        if patched.is_cut and len(unpickler.collectors) == patched.patches:
            raise CutOffError from None
        raise UnexpectedError from error
    _put_builders(document, unpickler.collectors, patched.patches)
    return document


def _put_builders(document: Any, collectors: list[_Collector], patches: int) -> None:
    """Replace the collectors in the document by what they built.

    Bytes that only looked like a trace (inside a text, say) leave a collector somewhere else, or a patch that no
    instruction asked about.
    """
    if not collectors and not patches:
        return
    traces = document.get("device_traces") if isinstance(document, dict) else None
    if not isinstance(traces, list) or len(collectors) != patches:
        raise UnexpectedError
    # An empty list may be left as it is; one with entries would be numbered after the collectors that follow it.
    taken = [trace for trace in traces if trace != []]
    if list(map(id, taken)) != list(map(id, collectors)):
        raise UnexpectedError
    traces[:] = [trace.builder if isinstance(trace, _Collector) else trace for trace in traces]


class _Collector:
    """Stands where a trace's list would stand on the unpickler's stack."""

    __slots__ = ("_source", "builder")

    def __init__(self, builder: TraceBuilder, source: Source) -> None:
        self.builder = builder
        self._source = source

    def extend(self, entries: list[Any]) -> None:
        """Take a batch, and empty its dicts: the unpickler's memo would keep what is in them to the end."""
        self.builder.extend(entries)
        self._source.entries += len(entries)
        deque(map(dict.clear, entries), maxlen=0)

    def __setstate__(self, state: object) -> None:
        # BUILD would fill the object's attributes from the file.
        raise UnsafePickleError(refusal("fill an object (instruction BUILD)"))


class _CollectingUnpickler(SafeUnpickler):
    """Hands out one collector for each place that was patched, and refuses every other persistent id."""

    def __init__(self, stream: _PatchedStream, tables: Tables, source: Source) -> None:
        super().__init__(stream)
        self.collectors: list[_Collector] = []
        self._stream, self._tables, self._source = stream, tables, source

    def persistent_load(self, pid: Any) -> Any:
        """The next collector."""
        if pid is not None or len(self.collectors) >= self._stream.patches:
            return super().persistent_load(pid)
        collector = _Collector(TraceBuilder(f"trace {len(self.collectors)}", self._tables), self._source)
        self.collectors.append(collector)
        return collector


class _PatchedStream:
    """A framed pickle with collectors in the place of traces.

    It has no ``peek``: the unpickler then asks for one frame at a time.

    Attributes:
        patches: places that were patched so far.
        is_cut: whether the file was seen to end within a frame, or after one that does not end the pickle.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.patches = 0
        self.is_cut = False
        self._stream = stream
        self._buffer, self._at = stream.read(2), 0  # PROTO
        self._before = b""
        self._is_framed, self._in_traces = True, False

    def read(self, size: int) -> bytes:
        """The next `size` bytes; fewer only at the end."""
        while len(self._buffer) - self._at < size and self._fill(size):
            pass
        data = self._buffer[self._at : self._at + size]
        self._at += len(data)
        return data

    def readline(self) -> bytes:
        """The next line; instructions of protocol 0 read one."""
        while (end := self._buffer.find(b"\n", self._at)) < 0 and self._fill(_LINE):
            pass
        return self.read((len(self._buffer) if end < 0 else end + 1) - self._at)

    def _fill(self, wanted: int) -> bool:
        """Append the next frame to the buffer; False at the end of the file."""
        head = _read_up_to(self._stream, _HEADER)
        if self._is_framed and len(head) < _HEADER:
            self.is_cut = not self._before.endswith(_STOP)
        if self._is_framed and len(head) == _HEADER and head[0] == _FRAME:
            size = int.from_bytes(head[1:], "little")
            body = _read_up_to(self._stream, size)
            self.is_cut = len(body) < size
            patched = self._patch(body)
            head = head[:1] + (size + len(patched) - len(body)).to_bytes(8, "little") + patched
        elif head:
            # An object too large for a frame: from here on, everything goes through as it is.
            self._is_framed = False
            head += _read_up_to(self._stream, wanted)
        self._buffer, self._at = self._buffer[self._at :] + head, 0
        return bool(head)

    def _patch(self, body: bytes) -> bytes:
        before, text = len(self._before), self._before + body
        places = [place - before for place in self._places(text) if place >= before]
        self._before = text[-_OVERLAP:]
        self.patches += len(places)
        parts, at = [], 0
        for place in places:
            parts += [body[at:place], _COLLECTOR]
            at = place + 1
        return b"".join([*parts, body[at:]])

    def _places(self, text: bytes) -> list[int]:
        """Where in `text` lists begin that are traces, ascending."""
        places: list[int] = []
        at = 0
        if not self._in_traces:
            first = _FIRST_TRACES.search(text)
            if first is None:
                return places
            self._in_traces = True
            places += range(*first.span(1), 2)
            at = first.end()
        for end in _ENDS_OF_TRACE:
            found = text.find(end, at)
            while found >= 0:
                later = _LATER_TRACES.match(text, found)
                if later is not None:
                    places += range(*later.span(1), 2)
                found = text.find(end, found + 1)
        return sorted(places)


def _read_up_to(stream: BinaryIO, size: int) -> bytes:
    """`size` bytes, or fewer where the file or its compressed data end. The size is the file's claim, maybe absurd."""
    pieces = []
    try:
        while size > 0 and (piece := stream.read(min(size, _PIECE))):
            pieces.append(piece)
            size -= len(piece)
    except EOFError:
        pass
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
