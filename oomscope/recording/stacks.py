"""Python stacks at the moment of an OOM: of the thread that failed, of whoever called backward, and of all others."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import PurePath
from types import FrameType
from typing import Any

from oomscope.recording.census.roots import is_own
from oomscope.recording.gathering import find_gathering

_DEEPEST = 200
_MOST_THREADS = 128
_DEEPEST_OF_OTHERS = 60  # frames of a thread that is not the failing one; a stack is 5 kB

Frames = list[dict[str, Any]]


def describe(error: BaseException | None = None, *, is_programs: bool = True) -> dict[str, Any]:
    """The dump's ``stacks``. Frames are as torch writes them, the most recent call first, without the recorder's own.

    In backward the failing thread is autograd's and has hardly any Python frame; ``backward`` is then the stack of the
    thread that waits for it. ``main`` is the main thread's where another one failed.

    Args:
        error: what was raised, where its frames are gone already: its traceback then stands for the failing stack.
        is_programs: whether this thread is the program's. No thread has failed where it is the recorder's.
    """
    reader = _Reader()
    own, main = threading.get_ident(), threading.main_thread().ident
    failing: Frames = []
    if is_programs:
        failing = reader.read(sys._getframe(), _DEEPEST) if error is None else reader.raised(error)
    stacks, left_out = _read_all(reader, {own: failing}, main)
    return {
        "failing": failing,
        "main": [] if main is None or main == own else stacks.get(main, []),
        "gathering": _gathering(error, own) if is_programs else [],
        "backward": _waiting_for_backward(stacks, own, main) if error is None and _is_foreign(own) else [],
        "threads": [row for row in _rows(stacks, own, main) if is_programs or not row["failing"]],
        "threads_left_out": left_out,
    }


def _gathering(error: BaseException | None, own: int) -> list[dict[str, Any]]:
    """The loops that gather for a backward: of this thread, or of the one that waits for the backward it is part of."""
    if error is not None or not _is_foreign(own):
        return find_gathering(list(_calls(sys._getframe(1), error)))
    running = sys._current_frames()
    try:
        reader = _Reader()
        waiting = [frame for frame in running.values() if _calls_backward(reader.read(frame, 1))]
        return find_gathering(list(_calls(waiting[0], None))) if len(waiting) == 1 else []
    finally:
        running.clear()


def _calls(frame: FrameType | None, error: BaseException | None) -> Iterator[tuple[FrameType, int]]:
    """The running calls from `frame` outwards, or those that `error` has ended, and the offsets at which they stand."""
    trace = None if error is None else error.__traceback__
    if trace is not None:
        frame = trace.tb_frame.f_back
    raised = []
    while trace is not None:
        raised.append((trace.tb_frame, trace.tb_lasti))
        trace = trace.tb_next
    yield from (one for one in raised[::-1] if not is_own(one[0].f_code.co_filename))
    while frame is not None:
        if not is_own(frame.f_code.co_filename):
            yield frame, frame.f_lasti
        frame = frame.f_back


def is_autograds() -> bool:
    """Whether this thread is one of autograd's own, which run no Python but what torch calls back."""
    return _is_foreign(threading.get_ident())


def is_in_backward() -> bool:
    """Whether some thread waits for its backward."""
    reader = _Reader()
    running = sys._current_frames()
    try:
        return any(_calls_backward(reader.read(frame, 1)) for frame in running.values())
    finally:
        running.clear()


def _is_foreign(ident: int) -> bool:
    # Not threading.current_thread(): in a thread of C++'s it would register one with the program's `threading`.
    known = threading._active.get(ident)  # type: ignore[attr-defined]
    return known is None or isinstance(known, threading._DummyThread)


def _read_all(reader: _Reader, stacks: dict[int, Frames], main: int | None) -> tuple[dict[int, Frames], int]:
    """`stacks` with those of all other threads, and how many are left out."""
    running = sys._current_frames()
    try:
        others = [ident for ident in running if ident not in stacks]
        others.sort(key=lambda ident: ident != main)
        for ident in others[:_MOST_THREADS]:
            stacks[ident] = reader.read(running[ident], _DEEPEST if ident == main else _DEEPEST_OF_OTHERS)
        return stacks, max(0, len(others) - _MOST_THREADS)
    finally:
        # It holds this very frame, which would keep it in a cycle.
        running.clear()


def _rows(stacks: dict[int, Frames], own: int, main: int | None) -> list[dict[str, Any]]:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return [
        {"name": names.get(ident), "frames": frames, "failing": ident == own, "main": ident == main}
        for ident, frames in stacks.items()
        if frames or ident == own
    ]


def _waiting_for_backward(stacks: dict[int, Frames], own: int, main: int | None) -> Frames:
    waiting = {ident: frames for ident, frames in stacks.items() if ident != own and _calls_backward(frames)}
    if main in waiting:
        return waiting[main]
    # Of several nobody can tell which one it was.
    return next(iter(waiting.values())) if len(waiting) == 1 else []


def _calls_backward(frames: Frames) -> bool:
    """Whether the innermost frame is torch's call of its autograd engine."""
    if not frames or frames[0]["name"] not in ("_engine_run_backward", "backward", "grad"):
        return False
    parts = PurePath(frames[0]["filename"]).parts
    return parts[-3:-1] == ("torch", "autograd")


class _Reader:
    """Makes each frame's dict once: a hundred threads of a server stand at the same few lines."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, str], dict[str, Any]] = {}

    def read(self, frame: FrameType | None, deepest: int) -> Frames:
        """The stack from `frame` outwards."""
        found: Frames = []
        while frame is not None and len(found) < deepest:
            self._add(found, frame, frame.f_lineno)
            frame = frame.f_back
        return found

    def raised(self, error: BaseException) -> Frames:
        """The stack at which `error` was raised, from its traceback and from what had called the outermost frame."""
        raised: Frames = []
        trace = error.__traceback__
        outer = trace.tb_frame.f_back if trace is not None else sys._getframe()
        while trace is not None:
            self._add(raised, trace.tb_frame, trace.tb_lineno)
            trace = trace.tb_next
        return [*raised[::-1], *self.read(outer, _DEEPEST)][:_DEEPEST]

    def _add(self, found: Frames, frame: FrameType, line: int | None) -> None:
        code = frame.f_code
        if not is_own(code.co_filename):
            place = (code.co_filename, line or code.co_firstlineno, code.co_name)
            known = self._known.get(place)
            if known is None:
                known = self._known[place] = dict(zip(("filename", "line", "name"), place, strict=True))
            found.append(known)
