"""torch's recorder is one for the whole process: begun by whoever comes first, ended only by whoever began it."""

from __future__ import annotations

import threading

from oomscope.recording.backend import Backend
from oomscope.recording.extras import has_compiled
from oomscope.recording.options import Options

_lock = threading.Lock()
_users = 0
_is_ours = False
_options: Options | None = None  # with which ours was begun


def join(backend: Backend, options: Options) -> bool:
    """Make sure that history is recorded; returns whether someone else's recording is used."""
    global _users, _is_ours, _options
    with _lock:
        if _users == 0:
            _is_ours = not backend.is_history_on()
            if _is_ours:
                backend.start_history(options)
                _options = options
        _users += 1
        return not _is_ours


def ask_for_more(backend: Backend) -> None:
    """Once the program has compiled something, ask torch for its regions as well, if the recording is ours."""
    global _options
    if not _is_ours or _options is None or not has_compiled():
        return
    with _lock:
        options, _options = _options, None  # once is enough, and this is asked at every step
        if _is_ours and options is not None and options.compile_context is None:
            backend.ask_for_more(options)


def part(backend: Backend) -> None:
    """Say that one user is done; the last one ends the recording, if it was ours. It must be dumped before that."""
    global _users, _is_ours
    with _lock:
        _users = max(0, _users - 1)
        if _users == 0 and _is_ours:
            _is_ours = False
            backend.stop_history()


def forget() -> None:
    """Start anew, in a forked child."""
    global _users, _is_ours
    _users, _is_ours = 0, False
