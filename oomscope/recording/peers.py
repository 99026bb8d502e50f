"""Being ended because another rank failed: a dump within the launcher's grace, though the main thread is in C++.

A launcher ends the other ranks by a signal. Python runs handlers in the main thread, between two of its instructions,
which a rank that waits in a collective never reaches. But the signal is written to a descriptor at once
(`signal.set_wakeup_fd`), and a thread can read it there: the GIL is free inside collectives.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from oomscope.recording import observer
from oomscope.recording.saying import say_once

_HEAD_START = 0.3  # seconds in which a main thread that runs Python begins the dump itself: no lock is in its own way
_ONCE_MORE = 0.2
_STOP = b"\0"
_watch: Watch | None = None
_here = threading.local()


def watch(names: Sequence[str], dump: Callable[[], None], grace: float) -> Callable[[], None]:
    """Have `dump` called, once, when this process is sent one of the signals; returns what undoes it.

    Afterwards the signal does what it would have done: the program's handler runs, or the process ends by the signal.

    Args:
        names: such as ``SIGTERM``. One that is ignored is left alone, and so is one that C code handles.
        dump: called in the main thread, or in one of our own while the main one does not run Python.
        grace: seconds after which the process ends, whatever became of the dump.
    """
    global _watch
    if _watch is not None:
        return _nothing  # a recording around this one asks for both
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        say_once("peers", "only the main thread can listen for signals, so none that ends this rank makes a dump")
        return _nothing
    numbers = [number for name in names if (number := _usable(name)) is not None]
    if not numbers:
        return _nothing
    made = _watch = Watch(dump, grace)
    made.begin(numbers)
    return made.stop


def is_watching() -> bool:
    """Whether this very thread is the one that listens, which is none of the program's."""
    return getattr(_here, "is_watching", False)


def _usable(name: str) -> int | None:
    number = getattr(signal, name, None)
    if not isinstance(number, signal.Signals) or number in (signal.SIGKILL, signal.SIGSTOP):
        say_once(name, f"{name} is no signal that can be listened for")
        return None
    if signal.getsignal(number) in (signal.SIG_IGN, None):
        say_once(f"{name} taken", f"{name} is ignored, or handled outside Python, so it makes no dump")
        return None
    return number


class Watch:
    """Handlers that come first, and the thread that reads what reaches no handler."""

    def __init__(self, dump: Callable[[], None], grace: float) -> None:
        self._dump, self._grace = dump, grace
        self._before: dict[int, Any] = {}
        self._begun = threading.Lock()  # held by whoever makes the dump, for good
        self._over = threading.Event()
        self._put_off: set[int] = set()  # signals whose handler is still to run
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._thread = threading.Thread(target=self._read, name="oomscope peers", daemon=True)
        self._is_handling = False
        self._is_stopped = False

    def begin(self, numbers: Sequence[int]) -> None:
        """Start to listen; in the main thread."""
        before = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        if before != -1:
            # asyncio's, for one: its loop wakes the main thread, so that handlers run.
            signal.set_wakeup_fd(before)
        for number in numbers:
            self._before[number] = signal.getsignal(number)  # first: the signal may come at once
            signal.signal(number, self._handle)
            if self._before[number] == signal.SIG_DFL:
                # The call that is underway must not fail of it: nothing failed before the process ended.
                signal.siginterrupt(number, False)
        self._thread.start()

    def stop(self) -> None:
        """Listen no more, once a dump that has begun is done; in another thread than the main one, listen on."""
        global _watch
        if _watch is self and threading.current_thread() is threading.main_thread():
            _watch = None
            self._write(_STOP)
            self._thread.join(self._grace)  # what came before is served first
            self._restore()
            if not self._thread.is_alive():
                self._close()

    def leave_to_parent(self) -> None:
        """In a forked child: it has the handlers and the descriptor but not the thread, and is to be as without."""
        self._restore()
        self._close()

    def _close(self) -> None:
        os.close(self._reading)
        os.close(self._writing)

    def _restore(self) -> None:
        """Put back what was there before, unless it is someone else's by now."""
        self._is_stopped = True
        for number, before in self._before.items():
            if signal.getsignal(number) == self._handle:
                signal.signal(number, before)
        current = signal.set_wakeup_fd(-1)
        if current not in (-1, self._writing):
            signal.set_wakeup_fd(current)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        """In the main thread."""
        if self._is_stopped:  # called by a handler that took this one's place
            self._pass_on(number, frame)
            return
        self._write(bytes([number]))  # asyncio may have put its descriptor in our place
        if self._is_handling or observer.is_busy():
            # In the midst of a dump: it is to be finished. The thread sees to the rest.
            self._put_off.add(number)
            return
        self._is_handling = True
        try:
            self._dump_once()
        finally:
            self._is_handling = False
        self._put_off.discard(number)
        self._pass_on(number, frame)

    def _write(self, byte: bytes) -> None:
        with contextlib.suppress(OSError):
            os.write(self._writing, byte)

    def _dump_once(self) -> None:
        if not self._begun.acquire(blocking=False):
            self._over.wait(self._grace)
            return
        try:
            self._dump()
        finally:
            self._over.set()

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        before = self._before[number]
        if callable(before):
            before(number, frame)
        elif before == signal.SIG_DFL:
            _end_by(number)

    def _read(self) -> None:
        _here.is_watching = True
        while True:
            for number in os.read(self._reading, 64):
                if number == _STOP[0]:
                    return
                if number in self._before:
                    self._serve(number)

    def _serve(self, number: int) -> None:
        """In the thread: what the main thread does not come to."""
        is_ours = signal.getsignal(number) == self._handle
        is_fatal = is_ours and self._before[number] == signal.SIG_DFL
        if is_fatal:
            # The dump may hang, in the driver for example.
            last = threading.Timer(self._grace, _end_by, [number])
            last.daemon = True
            last.start()
        if not is_ours or not self._is_begun_within(_HEAD_START):
            self._dump_once()
        self._over.wait(self._grace)
        if is_fatal:
            _end_by(number)
        self._call_again(number)

    def _call_again(self, number: int) -> None:
        """Have the main thread run a handler that was put off. A signal just before a call that blocks is in vain."""
        end = time.monotonic() + self._grace
        while number in self._put_off and time.monotonic() < end:
            os.kill(os.getpid(), number)
            time.sleep(_ONCE_MORE)

    def _is_begun_within(self, seconds: float) -> bool:
        if self._begun.locked():
            return True
        self._over.wait(seconds)  # a pause, cut short where the main thread is quick
        return self._begun.locked()


def _end_by(number: int) -> None:
    """End this process by the signal, as it would have ended without us; from any thread.

    `signal.signal` serves the main thread only, and that may be stuck; this is the call behind it.
    """
    set_handler = ctypes.pythonapi.PyOS_setsig
    set_handler.argtypes, set_handler.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
    set_handler(number, None)
    os.kill(os.getpid(), number)


def _nothing() -> None:
    pass


def _after_fork() -> None:
    """A signal to a child must not be taken for one to its parent, whose descriptor it would be written to."""
    global _watch
    if _watch is not None:
        _watch.leave_to_parent()
        _watch = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
