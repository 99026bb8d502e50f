"""Tables as Parquet, by pyarrow, which the extra ``oomscope[parquet]`` brings."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from oomscope.errors import RequestError
from oomscope.export.tables import Column, ExportTable
from oomscope.version import __version__


def to_parquet(table: ExportTable) -> Iterator[bytes]:
    """The file of `table`, a group of rows at a time: integers, and texts as dictionaries.

    Raises:
        RequestError: pyarrow is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise RequestError("Parquet is written by pyarrow; run: pip install 'oomscope[parquet]'") from error
    sink = _Drained()
    writer = None
    for part in table.parts():
        rows = pyarrow.table({name: _array(pyarrow, column) for name, column in part.items()})
        if writer is None:
            schema = rows.schema.with_metadata({"exporter": f"oomscope {__version__}", "table": table.name})
            writer = pyarrow.parquet.ParquetWriter(sink, schema, compression="zstd")
        writer.write_table(rows.replace_schema_metadata(schema.metadata))
        yield sink.drain()
    assert writer is not None
    writer.close()
    yield sink.drain()


def _array(pyarrow: Any, column: Column) -> Any:
    unknown = None if column.known is None else ~column.known
    if column.texts is None:
        values = column.values if column.values.dtype == np.uint64 else column.values.astype(np.int64)
        return pyarrow.array(values, mask=unknown)
    numbers = pyarrow.array(column.values.astype(np.int32), mask=unknown)
    return pyarrow.DictionaryArray.from_arrays(numbers, pyarrow.array(column.texts, pyarrow.string()))


class _Drained(io.RawIOBase):
    """A file of which what was written is taken away from time to time."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._written = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        self._written += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._written

    def drain(self) -> bytes:
        """What was written since the last time."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)
