"""Python stacks at the moment of an OOM: of the thread that failed, and of the main thread."""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any

from oomscope.recording.census.roots import is_own

_DEEPEST = 200


def failing_and_main() -> dict[str, list[dict[str, Any]]]:
    """Frames as torch writes them, the most recent call first, without the recorder's own.

    In backward the failing thread is autograd's and has hardly any Python frame; the main thread then tells where
    ``backward`` was called. When they are one thread, ``main`` is empty.
    """
    failing = _frames(sys._getframe())
    main = threading.main_thread()
    if threading.current_thread() is main:
        return {"failing": failing, "main": []}
    return {"failing": failing, "main": _frames(sys._current_frames().get(main.ident or 0))}


def is_autograds() -> bool:
    """Whether this thread is one of autograd's own, which run no Python but what torch calls back."""
    return threading.current_thread() is not threading.main_thread() and not _frames(sys._getframe())


def _frames(frame: FrameType | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while frame is not None and len(found) < _DEEPEST:
        code = frame.f_code
        if not is_own(code.co_filename):
            found.append({"filename": code.co_filename, "line": frame.f_lineno, "name": code.co_name})
        frame = frame.f_back
    return found
