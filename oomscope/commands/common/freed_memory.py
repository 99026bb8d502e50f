"""Freed memory that is kept, for a process that asks for columns of millions of entries again and again."""

from __future__ import annotations

import os
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Names of parameters, in malloc.h."""
_KEPT = 256 << 20
_LARGEST = 12 << 20
"""Larger arrays come and go at once, and what they leave would hardly be filled."""


def keep_freed_memory() -> None:
    """Have arrays served from memory that was freed before, as far as the C library is glibc and nobody tuned it.

    It returns arrays of more than some hundred kB to the system as soon as they are freed, which zeroes every page of
    the next one: about a twelfth of what a long trace takes.
    """
    if sys.platform != "linux" or any(name.startswith("MALLOC_") for name in os.environ):
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST)
        mallopt(_TRIM_THRESHOLD, _KEPT)
