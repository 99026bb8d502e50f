"""Recording a whole program that knows nothing of it: from the moment it imports torch until it ends."""

from __future__ import annotations

import atexit
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType, TracebackType
from typing import Any

from oomscope.recording.options import build
from oomscope.recording.saying import say
from oomscope.recording.session import Session

_Hook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]


def prepare() -> None:
    """Start to record once the program has imported torch; importing it here would come before its settings."""
    if "torch" in sys.modules:
        _start()
    else:
        sys.meta_path.insert(0, _TorchFinder())


class _TorchFinder(importlib.abc.MetaPathFinder):
    """Finds torch as it would have been found, and has `_start` called behind its import."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            _call_after_import(spec.loader)
        return spec


def _call_after_import(loader: Any) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        del loader.exec_module
        try:
            _start()
        except Exception as problem:
            say(f"the program runs without recording: {type(problem).__name__}: {problem}")

    loader.exec_module = exec_module


def _start() -> None:
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
