"""A signal that asks for a snapshot."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable

from oomscope.recording.saying import say_once


def install(name: str | None, ask: Callable[[], None]) -> Callable[[], None]:
    """Have the signal call `ask`, in the main thread between two of its instructions; returns what undoes it.

    A signal that someone else handles is left to them: schedulers and trainers use SIGUSR1 too.
    """
    number = getattr(signal, name, None) if name else None
    if number is None:
        if name:
            say_once(name, f"this system has no signal {name}, so none asks for a snapshot")
        return _nothing
    if threading.current_thread() is not threading.main_thread():
        return _nothing
    if signal.getsignal(number) is not signal.SIG_DFL:
        say_once(f"{name} taken", f"{name} is handled by someone else already, so it asks for no snapshot")
        return _nothing

    def handler(_number: int, _frame: object) -> None:
        ask()

    signal.signal(number, handler)

    def restore() -> None:
        with contextlib.suppress(ValueError):  # another thread than the main one
            if signal.getsignal(number) is handler:
                signal.signal(number, signal.SIG_DFL)

    return restore


def _nothing() -> None:
    pass
