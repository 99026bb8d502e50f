"""What the recorder says, on stderr and nowhere else. It never fails: a closed stderr is silence."""

from __future__ import annotations

import sys
import threading

from oomscope.recording import process

_said: set[str] = set()
_lock = threading.RLock()  # a signal may come between


def say(message: str) -> None:
    """One line, with the rank in front where there is more than one."""
    try:
        rank = process.rank()
        prefix = "oomscope: " if rank is None or process.world_size() == 1 else f"oomscope [rank {rank}]: "
        sys.stderr.write(prefix + message + "\n")
        sys.stderr.flush()
    except Exception:  # noqa: S110 - there is nowhere left to say it
        pass


def say_once(topic: str, message: str) -> None:
    """The same, once in a process for each topic."""
    with _lock:
        if topic in _said:
            return
        _said.add(topic)
    say(message)


def forget() -> None:
    """Let every topic be said again."""
    _said.clear()
