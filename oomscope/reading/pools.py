"""Memory pool ids and the numbers that stand for them."""

from __future__ import annotations

from typing import Any

from oomscope.errors import SnapshotError
from oomscope.model import PoolId
from oomscope.reading.columns import Where
from oomscope.reading.printable import printable

NO_POOL = -1


class PoolInterner:
    """Numbers pool ids in the order in which they are first met; the default pool is always 0."""

    def __init__(self) -> None:
        self._numbers: dict[PoolId, int] = {(0, 0): 0}

    def numbers(self, ids: list[Any], where: Where) -> list[int]:
        """The number of each id: a pair of integers (a list in JSON), or None, which gives `NO_POOL`.

        Raises:
            SnapshotError: something else stands there.
        """
        try:
            return list(map(self._numbers.__getitem__, ids))
        except (KeyError, TypeError):  # a new one, none, or a list
            return [self._number(value, where, row) for row, value in enumerate(ids)]

    def _number(self, value: Any, where: Where, row: int) -> int:
        if value is None:
            return NO_POOL
        if not (isinstance(value, (tuple, list)) and len(value) == 2 and all(isinstance(part, int) for part in value)):
            raise SnapshotError(f"{where(row)} has a pool id that is not a pair of integers ({printable(value)}).")
        return self._numbers.setdefault((value[0], value[1]), len(self._numbers))

    def pools(self) -> tuple[PoolId, ...]:
        """All ids met so far, by number."""
        return tuple(self._numbers)
