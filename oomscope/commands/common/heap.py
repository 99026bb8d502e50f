"""How the C library deals with memory that is freed."""

from __future__ import annotations

import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Of mallopt, in malloc.h of glibc."""
_LARGEST = 32 << 20
"""Bytes; glibc takes no more as its threshold."""
_KEPT = 128 << 20


def keep_freed_memory() -> None:
    """Have columns that are freed serve the next ones.

    glibc gives large pieces back to the system as soon as they are free, and asks for the next one anew; the system
    then clears every page of it. Of a long trace, that took a tenth of the whole time. Other C libraries, which do not
    know these settings, are left as they are.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # numpy has loaded it

    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    set_option(_MMAP_THRESHOLD, _LARGEST)
    set_option(_TRIM_THRESHOLD, _KEPT)
