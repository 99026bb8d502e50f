"""Calls that wait for a moment to come: a timer's, an event loop's, one at the end of an object.

What they were given is kept until then, and often nothing else refers to it.
"""

from __future__ import annotations

import sys
import threading
import weakref
from typing import Any

from oomscope.recording.census.kinds import is_a

_FINALIZER: type | None = getattr(weakref.finalize, "_Info", None)


def deferred_words(item: Any) -> str | None:
    """``Timer(rescue)``, ``call_later(rescue)``, ``finalize(rescue)``; None for anything else."""
    if is_a(item, threading.Timer):
        return None if item.finished.is_set() else f"Timer({_name(item.function)})"
    handle = getattr(sys.modules.get("asyncio.events"), "TimerHandle", None)
    if handle is not None and is_a(item, handle):
        return f"call_later({_name(item._callback)})"
    if _FINALIZER is not None and is_a(item, _FINALIZER):
        return f"finalize({_name(item.func)})"
    return None


def _name(function: Any) -> str:
    name = getattr(function, "__qualname__", None) or type(function).__name__
    return str(name).rpartition("<locals>.")[2]
