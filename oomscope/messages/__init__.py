"""Messages about memory in any log: finds them, reads what they say, and tells what their figures prove."""

from oomscope.messages.kinds import KINDS
from oomscope.messages.read import read_log
from oomscope.messages.records import FIGURES, Log, OomMessage, Reading

__all__ = ["FIGURES", "KINDS", "Log", "OomMessage", "Reading", "read_log"]
