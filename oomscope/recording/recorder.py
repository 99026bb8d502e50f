"""``oomscope.record``: decorator, context manager and handle in one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar, overload

from oomscope.recording import observer
from oomscope.recording.options import Options, build
from oomscope.recording.session import Session
from oomscope.recording.wrapping import wrap

F = TypeVar("F", bound=Callable[..., Any])
_Error = BaseException | None


@overload
def record(function: F, /) -> F: ...
@overload
def record(function: None = None, /, **options: Any) -> Recording: ...
def record(function: Any = None, /, **options: Any) -> Any:
    """Record GPU memory while a function or a block runs, and leave a dump that explains an OOM.

    ``@oomscope.record``, ``@oomscope.record(output_dir="oom")`` and ``with oomscope.record() as recording:`` are the
    same thing; functions, methods, generators, coroutines and asynchronous generators stay what they are. Recording
    begins when CUDA does. Nothing it does changes the job: the exception is the one that torch raised, and what
    recording itself cannot do it says on stderr.

    Args:
        function: What to decorate.
        **options: The fields of `oomscope.recording.Options`; what is not given here is taken from ``OOMSCOPE_*``
            variables.

    Raises:
        TypeError: an unknown option, or something that is no function.
        ValueError: an option's value is none that it can have.
    """
    recording = Recording(build(options))
    return recording if function is None else recording(function)


class Recording:
    """Recording with one set of options, as often as it is entered or called; also the handle inside the block."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._open: dict[int, list[Session]] = {}
        self._lock = threading.Lock()
        self._last: Session | None = None

    def __call__(self, function: F) -> F:
        """`function`, recorded each time it is called."""
        wrapped: F = wrap(function, self._fresh)
        return wrapped

    def _fresh(self) -> Recording:
        # A recursive or concurrent call has a session of its own.
        return Recording(self.options)

    def __enter__(self) -> Recording:
        session = Session(self.options)
        with self._lock:
            self._open.setdefault(threading.get_ident(), []).append(session)
            self._last = session
        session.enter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: _Error, trace: TracebackType | None) -> None:
        with self._lock:
            # A coroutine or a generator may end in another thread than it began in.
            thread = threading.get_ident() if threading.get_ident() in self._open else next(iter(self._open), None)
            sessions = self._open.get(thread, []) if thread is not None else []
            session = sessions.pop() if sessions else None
            if thread is not None and not sessions:
                del self._open[thread]
        if session is not None:
            session.leave(error)

    async def __aenter__(self) -> Recording:
        return self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: _Error, trace: TracebackType | None) -> None:
        self.__exit__(kind, error, trace)

    @property
    def files(self) -> list[Path]:
        """The dumps that this recording (the block entered last) has written and kept."""
        return [] if self._last is None else list(self._last.files)

    @property
    def ooms(self) -> int:
        """How many OOMs there were since it was entered, those that were caught included."""
        return 0 if self._last is None else self._last.ooms

    def step(self, name: str | None = None, **shape: int) -> AbstractContextManager[Any]:
        """Begin a training step, which ends with the ``with`` block or at the next call. Costs some tens of µs.

        Args:
            name: of the step; its number if None.
            shape: what ``oomscope plan`` needs to predict other shapes: ``recording.step(batch=8, seq=512)``.
        """
        return _step(self._last, name, shape)

    def mark(self, name: str) -> None:
        """Note this moment for the report's timeline: ``recording.mark("eval")``."""
        _mark(self._last, name)

    def track(self, **objects: Any) -> None:
        """Say how the program calls its models and optimizers: ``recording.track(model=model)``."""
        if self._last is not None:
            self._last.track(objects)

    def snapshot(self, path: str | os.PathLike[str] | None = None) -> Path | None:
        """Dump now, to `path` or by the pattern; returns where, or None where there is nothing to dump."""
        return None if self._last is None else self._last.snapshot(path)


def _step(session: Session | None, name: str | None, shape: dict[str, int]) -> AbstractContextManager[Any]:
    step_log = None if session is None else session.step_log
    return nullcontext() if step_log is None else step_log.step(name, shape)


def _mark(session: Session | None, name: str) -> None:
    step_log = None if session is None else session.step_log
    if step_log is not None:
        step_log.mark(name)


def _innermost() -> Session | None:
    sessions = observer.active()
    return sessions[-1] if sessions else None


def step(name: str | None = None, **shape: int) -> AbstractContextManager[Any]:
    """`Recording.step` of whatever is recording: for inside a decorated function. Without a recording, nothing."""
    return _step(_innermost(), name, shape)


def mark(name: str) -> None:
    """`Recording.mark` of whatever is recording."""
    _mark(_innermost(), name)


def track(**objects: Any) -> None:
    """`Recording.track` of whatever is recording."""
    session = _innermost()
    if session is not None:
        session.track(objects)


def snapshot(path: str | os.PathLike[str] | None = None) -> Path | None:
    """`Recording.snapshot` of whatever is recording."""
    session = _innermost()
    return None if session is None else session.snapshot(path)
