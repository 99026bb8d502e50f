"""Lists of dicts turned into columns, at C speed where they are alike and with care where they are not."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from oomscope.errors import SnapshotError
from oomscope.model import IntArray
from oomscope.reading.printable import printable

if TYPE_CHECKING:
    import numpy.typing as npt

Rows = Sequence[dict[Any, Any]]
Columns = dict[Any, list[Any]]
Where = Callable[[int], str]
"""Names row `i` for an error message: ``entry 17 of device 0's trace``."""

_ROOM = 1 << 10
_ABOVE = 1 << 64
_HALF = 1 << 63


def columns_of(rows: Rows, where: Where) -> Columns:
    """One list a key, as long as `rows`; None where a row lacks the key.

    Raises:
        SnapshotError: a row is no dict.
    """
    if set(map(type, rows)) - {dict}:
        wrong = next(row for row, value in enumerate(rows) if type(value) is not dict)
        raise SnapshotError(f"{where(wrong)} is {kind_of(rows[wrong])}, not a dict: this is not a memory snapshot.")
    if not rows:
        return {}
    first = rows[0]
    if sum(map(len, rows)) == len(rows) * len(first):
        # As many keys each, and each has these: all have exactly these.
        try:
            return {key: list(map(itemgetter(key), rows)) for key in first}
        except KeyError:
            pass
    return {key: [row.get(key) for row in rows] for key in dict.fromkeys(chain.from_iterable(rows))}


def kind_of(value: object) -> str:
    """The type of `value` with its article, for messages."""
    name = "None" if value is None else type(value).__name__
    return name if value is None else f"{'an' if name[0] in 'aeio' else 'a'} {name}"


class GrowingColumn:
    """Integers appended batch by batch, without a Python object for each.

    Args:
        code: ``q`` for int64, ``i`` for int32.
    """

    __slots__ = ("_count", "_values")

    def __init__(self, code: str = "q") -> None:
        self._values, self._count = np.empty(_ROOM, code), 0

    def __len__(self) -> int:
        return self._count

    def extend(self, values: list[Any]) -> None:
        """Append `values`.

        Raises:
            struct.error: one is no integer or too large; nothing was appended.
        """
        # The fastest way that is also strict: numpy would take 1.5 and '7' for integers.
        code = self._values.dtype.char
        self.extend_array(np.frombuffer(struct.pack(f"{len(values)}{code}", *values), code))

    def extend_array(self, values: IntArray) -> None:
        """Append `values`, which the column's type holds."""
        end = self._count + len(values)
        if end > len(self._values):
            # Twice the room: what is not written to yet takes no memory.
            larger = np.empty(max(2 * len(self._values), end), self._values.dtype)
            larger[: self._count] = self._values[: self._count]
            self._values = larger
        self._values[self._count : end] = values
        self._count = end

    def pad(self, value: int, count: int) -> None:
        """Append `value`, `count` times."""
        self.extend_array(np.full(count, value, self._values.dtype))

    def extend_checked(self, values: list[Any], where: Where, key: str, default: int | None = None) -> int:
        """Append foreign values to a column of int64; those of 2**63 and above as their two's complement.

        Args:
            values: integers, or None where a row lacks the key.
            where: names a row.
            key: names the column.
            default: stands for None; where it is None itself, a missing value is an error.

        Returns:
            How many values were missing.

        Raises:
            SnapshotError: a value is missing or no integer of 64 bits.
        """
        try:
            self.extend(values)
        except struct.error:
            self.extend([_integer(value, where, row, key, default) for row, value in enumerate(values)])
            return values.count(None)
        return 0

    def to_numpy(self) -> npt.NDArray[Any]:
        """The column's own memory as an array; the column cannot grow any longer."""
        self._values.resize(self._count, refcheck=False)
        return self._values


def _integer(value: object, where: Where, row: int, key: str, default: int | None) -> int:
    if value is None:
        if default is None:
            raise SnapshotError(f"{where(row)} has no '{key}': the file is damaged or not a memory snapshot.")
        return default
    if not isinstance(value, int):
        raise SnapshotError(f"{where(row)} has {kind_of(value)} ({printable(value)}) as '{key}', not an integer.")
    if not -_HALF <= value < _ABOVE:
        raise SnapshotError(f"{where(row)} has a '{key}' that no 64 bits hold ({printable(value)}).")
    return value - _ABOVE if value >= _HALF else value


def integers(columns: Columns, key: str, rows: int, where: Where, default: int | None = None) -> IntArray:
    """The column `key` as int64, see `GrowingColumn.extend_checked`; `default` throughout where no row has the key."""
    column = GrowingColumn()
    column.extend_checked(columns.get(key) or [None] * rows, where, key, default)
    return column.to_numpy()
