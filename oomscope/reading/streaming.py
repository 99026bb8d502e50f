"""The trace taken off the unpickler as it comes, so that its dicts never exist all at once.

CPython's unpickler hands the items of a list over in batches of a thousand; where the object on its stack is no real
list, it calls that object's ``extend``. So the one byte that opens a device's trace, ``EMPTY_LIST``, is replaced in
passing by two, ``NONE BINPERSID``: "fetch the object with the id None", and the unpickler gets a collector that turns
each batch into columns and empties its dicts.

This is an optimisation of one layout, the one that ``pickle.dump`` writes. Where anything is not exactly as expected,
`UnexpectedError` says so and the caller reads the file the plain way, which decides.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any, BinaryIO
from weakref import proxy

from oomscope.reading.checked import CheckedStream
from oomscope.reading.fast_traces import Stretch, TraceReader
from oomscope.reading.limits import TooMuchError
from oomscope.reading.source import Source
from oomscope.reading.tables import Tables
from oomscope.reading.traces import TraceBuilder
from oomscope.reading.unpickling import CutOffError, SafeUnpickler

_FRAME = 0x95
_COLLECTOR = b"NQ"  # NONE BINPERSID
_MEMOIZED_LIST = rb"\]\x94"  # EMPTY_LIST MEMOIZE
# The key, the list of traces (MARK before several items), the traces up to the first that is not empty.
_FIRST_TRACES = re.compile(
    rb"\x8c\x0ddevice_traces\x94" + _MEMOIZED_LIST + rb"\(?((?:" + _MEMOIZED_LIST + rb")+)", re.DOTALL
)
# After the end of a trace (SETITEMS of its last entry, then APPENDS or APPEND), up to the next that is not empty.
_LATER_TRACES = re.compile(rb"u[ea]((?:" + _MEMOIZED_LIST + rb")+)(?:\(?\}\x94\(|\(?\Z)", re.DOTALL)
_ENDS_OF_TRACE = (b"ue]\x94", b"ua]\x94")
# Enough of the instructions before to recognise either pattern across the boundary.
_OVERLAP = 64


class UnexpectedError(Exception):
    """The file is not laid out as expected, or is damaged: it has to be read the plain way."""


def is_streamable(head: bytes) -> bool:
    """Whether a pickle that begins like this is framed."""
    return len(head) > 2 and head[0] == 0x80 and head[1] in (4, 5) and head[2] == _FRAME


def load_streaming(stream: BinaryIO, tables: Tables, source: Source) -> Any:
    """The document in a pickle, with a `TraceBuilder` in the place of each trace that was taken as it came.

    Raises:
        UnexpectedError: read the file the plain way, with new tables.
        CutOffError: the file ends too early. Collectors stand in it for traces: see `put_builders`.
        TooMuchError: the file asks for more than any snapshot needs.
    """
    patch = _Patch()
    reader = TraceReader(tables, patch, lambda: told.memo.copy())
    checked = CheckedStream(stream, source.limits, reader)
    unpickler = _CollectingUnpickler(checked, patch, reader, tables, source)
    # Its memo, into which Python's collector does not look, holds collectors, and these hold the reader.
    told = proxy(unpickler)
    try:
        document = unpickler.load()
    except CutOffError as cut:
        cut.collectors = _agreed(unpickler, patch, reader)
        raise
    except (MemoryError, TooMuchError):
        raise
    except Exception as error:
        raise UnexpectedError from error
    put_builders(document, _agreed(unpickler, patch, reader))
    return document


def _agreed(unpickler: _CollectingUnpickler, patch: _Patch, reader: TraceReader) -> int:
    """How many collectors were handed out. Bytes that only looked like a trace leave a patch nobody asked about."""
    if len(unpickler.collectors) != patch.count or not reader.are_where_they_belong():
        raise UnexpectedError
    return patch.count


def put_builders(document: Any, collectors: int) -> None:
    """Replace the collectors in the document by what they built.

    Raises:
        UnexpectedError: one of the `collectors` is not where a trace should be.
    """
    if not collectors:
        return
    traces = document.get("device_traces") if isinstance(document, dict) else None
    if not isinstance(traces, list):
        raise UnexpectedError
    # An empty list may be left as it is; one with entries would be numbered after the collectors that follow it.
    taken = [trace for trace in traces if trace != []]
    numbers = [trace.number if isinstance(trace, _Collector) else -1 for trace in taken]
    if numbers != list(range(collectors)):
        raise UnexpectedError
    traces[:] = [trace.builder if isinstance(trace, _Collector) else trace for trace in traces]


class _Collector:
    """Stands where a trace's list would stand on the unpickler's stack."""

    __slots__ = ("_reader", "_source", "builder", "number")

    def __init__(self, number: int, reader: TraceReader, tables: Tables, source: Source) -> None:
        self.number, self.builder = number, TraceBuilder(f"trace {number}", tables)
        self._reader, self._source = reader, source

    def extend(self, entries: list[Any]) -> None:
        """Take a batch, and empty its dicts: the unpickler's memo would keep what is in them to the end."""
        stretch = entries[-2] if len(entries) > 1 else None
        if isinstance(stretch, Stretch):
            *entries, _, objects = entries
        if entries:
            self.builder.extend(entries)
            self._source.entries += len(entries)
        if isinstance(stretch, Stretch):
            self._source.entries += self._reader.put(stretch, objects, self.builder)
        deque(map(dict.clear, entries), maxlen=0)


class _CollectingUnpickler(SafeUnpickler):
    """Hands out one collector for each place that was patched."""

    def __init__(
        self, stream: CheckedStream, patch: _Patch, reader: TraceReader, tables: Tables, source: Source
    ) -> None:
        super().__init__(stream)
        self.collectors: list[_Collector] = []
        self._patch, self._reader, self._tables, self._source = patch, reader, tables, source

    def persistent_load(self, pid: Any) -> Any:
        """The next collector, or the next stretch of entries."""
        if pid is True and (stretch := self._reader.next_stretch()) is not None:
            return stretch
        if pid is not None or len(self.collectors) >= self._patch.count:
            return super().persistent_load(pid)
        collector = _Collector(len(self.collectors), self._reader, self._tables, self._source)
        self.collectors.append(collector)
        return collector


class _Patch:
    """Puts collectors in the place of traces.

    Attributes:
        count: places that were patched so far.
    """

    def __init__(self) -> None:
        self.count = 0
        self._before = b""
        self._in_traces = False

    def __call__(self, body: bytes) -> bytes:
        """The instructions in `body`, patched."""
        before, text = len(self._before), self._before + body
        places = [place - before for place in self._places(text) if place >= before]
        self._before = text[-_OVERLAP:]
        self.count += len(places)
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
