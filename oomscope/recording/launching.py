"""Recording a whole program that knows nothing of it: from the moment it imports torch until it ends."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from oomscope.recording import backend
from oomscope.recording.options import build
from oomscope.recording.session import Session

_FOR_ONE = "OOMSCOPE_RUN"
"""Set by `oomscope run`."""
_Hook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]


def start() -> None:
    """Record until the program ends. torch has just been imported; earlier would be before the program's settings.

    Where an administrator switched it on for everyone, programs without a GPU are not told that nothing is recorded.
    """
    found = backend.current()
    if _FOR_ONE not in os.environ and (found is None or found.why_never() is not None):
        return
    session = Session(build({}))
    session.enter()
    ending = _Ending(session)
    ending.previous = sys.excepthook
    sys.excepthook = ending.on_error
    atexit.register(ending.at_exit)


class _Ending:
    """The program's end, by an exception or without one: whichever comes first ends the session."""

    def __init__(self, session: Session) -> None:
        self._session: Session | None = session
        self.previous: _Hook = sys.__excepthook__

    def on_error(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not _goes_on():
            self._end(error)
        self.previous(kind, error, trace)

    def at_exit(self) -> None:
        self._end(None)

    def _end(self, error: BaseException | None) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.leave(error)


_OUTERMOST = frozenset({"<module>", "_run_module_as_main", "_bootstrap"})
"""What a program is run by: a script or its text, ``python -m``, a thread."""


def _goes_on() -> bool:
    """Whether the program is still running: the interpreter calls its hook last of all, a console before it goes on."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_name in _OUTERMOST
