"""Ways through calls that have ended: from a frame or a traceback up to the exception that keeps them.

Each call on the way is a step of its own, and a model within a trainer is soon a hundred of them, so these steps are
taken together, without a look at the whole heap for each.
"""

from __future__ import annotations

import gc
import types
from collections.abc import Iterable, Iterator
from typing import Any

LINKS = (types.FrameType, types.TracebackType)


class EndedCalls:
    """Frames and tracebacks among the heap's objects, and which of them refers to which."""

    def __init__(self, objects: Iterable[Any], ignored: set[int]) -> None:
        """`ignored`: ids of frames that run, which are no holders."""
        self._above: dict[int, list[Any]] = {}
        for item in objects:
            if type(item) in LINKS and id(item) not in ignored:
                for below in gc.get_referents(item):
                    if type(below) in LINKS:
                        self._above.setdefault(id(below), []).append(item)

    def climb(self, start: Iterable[int]) -> Iterator[tuple[Any, int]]:
        """Every (frame or traceback, id of one that it refers to) above those in `start`, each once for all calls."""
        open_ids = list(start)
        while open_ids:
            key = open_ids.pop()
            for referrer in self._above.pop(key, ()):
                yield referrer, key
                open_ids.append(id(referrer))


def is_link(referrer: Any, referent: Any) -> bool:
    """Whether this reference is one that `EndedCalls` follows."""
    return type(referrer) in LINKS and type(referent) in LINKS
