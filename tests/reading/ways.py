"""The two ways to read a pickle, each on its own."""

from __future__ import annotations

import io

from oomscope.model import Snapshot
from oomscope.reading.assemble import assemble
from oomscope.reading.checked import CheckedStream
from oomscope.reading.source import Source
from oomscope.reading.streaming import load_streaming
from oomscope.reading.tables import Tables
from oomscope.reading.unpickling import SafeUnpickler


def plain(pickled: bytes) -> Snapshot:
    """Everything unpickled first."""
    with Source(io.BytesIO(pickled)) as source:
        return assemble(SafeUnpickler(CheckedStream(source.stream(), source.limits)).load(), Tables())


def streamed(pickled: bytes) -> Snapshot:
    """The trace taken as it comes; raises `UnexpectedError` where that is not possible."""
    tables = Tables()
    with Source(io.BytesIO(pickled)) as source:
        return assemble(load_streaming(source.stream(), tables, source), tables)
