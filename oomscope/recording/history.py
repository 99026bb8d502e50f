"""torch's recorder is one for the whole process: begun by whoever comes first, ended only by whoever began it."""

from __future__ import annotations

import threading

from oomscope.recording.backend import Backend
from oomscope.recording.options import Options

_lock = threading.Lock()
_users = 0
_is_ours = False


def join(backend: Backend, options: Options) -> bool:
    """Make sure that history is recorded; returns whether someone else's recording is used."""
    global _users, _is_ours
    with _lock:
        if _users == 0:
            _is_ours = not backend.is_history_on()
            if _is_ours:
                backend.start_history(options)
        _users += 1
        return not _is_ours


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
