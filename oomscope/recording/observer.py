"""The one observer of a process: torch calls it at an OOM, in the failing thread, before anything is unwound.

torch keeps an observer for ever, calls it under no lock of its own, and if it raises puts its error in place of the
OOM. So there is a single trampoline, it passes on to whoever is recording, and nothing leaves it.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from oomscope.recording.backend import Backend
from oomscope.recording.saying import say, say_once

if TYPE_CHECKING:
    from oomscope.recording.session import Session

_active: list[Session] = []
_lock = threading.RLock()  # a signal's snapshot may come between
_inside = threading.local()
_attached_to: Any = None
_SOON = 0.05
"""Seconds; torch raises its OOM at once when its observers have returned."""
_DEEPEST = 1000
"""Calls, from the innermost out: Python's own limit for programs that recurse."""


def add(session: Session) -> None:
    """Let this session hear of OOMs."""
    with _lock:
        _active.append(session)


def remove(session: Session) -> None:
    """Let it hear of none any more."""
    with _lock:
        if session in _active:
            _active.remove(session)


def active() -> list[Session]:
    """The sessions that record now, the innermost last."""
    with _lock:
        return list(_active)


def attach(backend: Backend) -> bool:
    """Put the trampoline in place, once a process; False where this torch has no such hook."""
    global _attached_to
    with _lock:
        if _attached_to is backend:
            return True
        try:
            backend.observe(_trampoline)
        except Exception as problem:
            say_once("observer", f"this torch has no OOM observer ({_words(problem)}); dumps are made after unwinding")
            return False
        _attached_to = backend
        return True


def _trampoline(device: int, alloc_size: int, limit_or_total: int, device_free: int) -> None:
    try:
        with undisturbed() as is_free:
            if is_free:
                names = ("device", "alloc_size", "limit_or_total", "device_free")
                _pass_on(dict(zip(names, (device, alloc_size, limit_or_total, device_free), strict=True)))
    except KeyboardInterrupt:
        say("interrupted while the OOM was being dumped")
        _interrupt_again()
    except BaseException as problem:
        say(f"could not look at the OOM: {_words(problem)}")


def _interrupt_again() -> None:
    """Have Ctrl-C take effect once torch has raised its OOM, in whose place it would else be put."""
    again = threading.Timer(_SOON, _thread.interrupt_main)
    again.daemon = True
    with contextlib.suppress(RuntimeError):  # the interpreter is shutting down: it ends anyhow
        again.start()


def _pass_on(request: dict[str, int]) -> None:
    """Every session hears of the OOM; the innermost that wants a dump makes the one there is."""
    place = _failing_place()
    wanting = [session for session in active() if session.hears_of(request, place)]
    if wanting:
        wanting[-1].dump_oom(request, place)


def _failing_place() -> int:
    """A number for the lines that this thread is at, from the program's start to the call that failed."""
    frame: FrameType | None = sys._getframe(1)
    lines: list[tuple[str, int | None]] = []
    while frame is not None and len(lines) < _DEEPEST:
        if frame.f_code.co_filename != __file__:
            lines.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return hash(tuple(lines))


def is_busy() -> bool:
    """Whether this thread is making a dump."""
    return bool(getattr(_inside, "busy", False))


@contextlib.contextmanager
def undisturbed() -> Iterator[bool]:
    """Whether this thread is free to make a dump; while it does, an OOM or a signal in it starts no other."""
    is_free = not is_busy()
    if is_free:
        _inside.busy = True
    try:
        yield is_free
    finally:
        if is_free:
            _inside.busy = False


def _words(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()
    _active.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
