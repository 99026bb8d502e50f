"""Messages about memory in any log: finds them, reads what they say, and tells what their figures prove.

What reads them is loaded when it is first used: a snapshot has no need of the patterns of all messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oomscope.messages.kinds import KINDS
from oomscope.messages.records import FIGURES, Log, OomMessage, Reading

if TYPE_CHECKING:
    from oomscope.messages.read import read_log

__all__ = ["FIGURES", "KINDS", "Log", "OomMessage", "Reading", "read_log"]


def __getattr__(name: str) -> Any:
    if name != "read_log":
        raise AttributeError(f"module 'oomscope.messages' has no attribute {name!r}")
    from oomscope.messages.read import read_log

    return read_log
