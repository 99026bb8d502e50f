"""How much a file may ask for, measured by its own size: a kilobyte that unpacks to a terabyte is no snapshot."""

from __future__ import annotations

import sys
from pathlib import Path

from oomscope.errors import SnapshotError
from oomscope.units import format_bytes

_MIB = 1 << 20
_FREE = 64 * _MIB
_MOST_TIMES = 500
"""A file may unpack to `_FREE` bytes, or to so many times its size: real ones to 5 to 30 times, as JSON to 300."""
_BASE = 1 << 30
_A_BYTE_READ, _A_BYTE_ON_DISK = 24, 200
"""Reading may take `_BASE` bytes of memory, and for each byte of the contents so many more, or for each on disk."""
_A_MARK_OF_JSON = {b"[": 72, b"{": 240, b",": 36, b'"': 30}
_OFTEN = 4 * _MIB


class TooMuchError(SnapshotError):
    """The file asks for more than a snapshot of its size does."""


class Limits:
    """Watches over one reading.

    Args:
        size: bytes of the file on disk.
        is_on: whether anything is refused.

    Attributes:
        is_on: as given.
    """

    def __init__(self, size: int, is_on: bool = True) -> None:
        self._size, self.is_on = size, is_on
        self._before = _resident()
        self._looked_at = 0

    def check(self, contents: int) -> None:
        """Refuse to go on where `contents` bytes, decompressed, or the memory they took are too many for the file.

        Raises:
            TooMuchError: they are.
        """
        if not self.is_on:
            return
        most = max(_FREE, _MOST_TIMES * self._size)
        if contents > most:
            raise TooMuchError(
                f"the file has {format_bytes(self._size)} and unpacks to more than {format_bytes(most)}, "
                "as no snapshot does; if you trust it, use --no-limits."
            )
        if contents - self._looked_at < _OFTEN:
            return
        self._looked_at = contents
        self.check_memory(contents, _resident() - self._before)

    def check_json(self, contents: bytes) -> None:
        """Refuse JSON that would take too much memory, told by its brackets: most of it is lists and dicts, or texts.

        Raises:
            TooMuchError: it would.
        """
        taken = sum(size * contents.count(mark) for mark, size in _A_MARK_OF_JSON.items())
        self.check_memory(len(contents), taken)

    def check_memory(self, contents: int, taken: int) -> None:
        """Refuse to go on where reading `contents` bytes has `taken` too many bytes of memory, or would.

        Raises:
            TooMuchError: it has.
        """
        most = _BASE + min(_A_BYTE_READ * contents, _A_BYTE_ON_DISK * self._size)
        if self.is_on and taken > most:
            raise TooMuchError(
                f"the file has {format_bytes(self._size)} and takes more than {format_bytes(most)} of memory to read, "
                "as no snapshot does; if you trust it, use --no-limits."
            )


def _resident() -> int:
    """Bytes of memory that this process holds; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    except (OSError, IndexError, ValueError):
        pass
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
