"""What happened: lifetimes, segment spans, exact block sizes, curves and layouts over time."""

from oomscope.history.backend import device_kind, find_padding
from oomscope.history.curves import Curves
from oomscope.history.device import DeviceHistory, device_history, recorded_config
from oomscope.history.lifetimes import BEFORE, Lifetimes
from oomscope.history.pinned import pinned_history
from oomscope.history.spans import Spans

__all__ = [
    "BEFORE",
    "Curves",
    "DeviceHistory",
    "Lifetimes",
    "Spans",
    "device_history",
    "device_kind",
    "find_padding",
    "pinned_history",
    "recorded_config",
]
