"""Traces that lost their beginning, as a full ring loses it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oomscope.history import DeviceHistory
from oomscope.model import Device, IntArray, Trace


def cut(device: Device, kept_from: int) -> Device:
    """`device` with its trace from entry `kept_from` on; the final segments stay."""
    trace = device.trace
    columns = ("action", "address", "size", "stream", "time_us", "stack", "pool", "compile_context", "user_metadata")
    kept = {name: None if (column := getattr(trace, name)) is None else column[kept_from:] for name in columns}
    stacks = {entry - kept_from: text for entry, text in trace.forward_stacks.items() if entry >= kept_from}
    return replace(device, trace=Trace(**kept, timed=trace.timed, texts=trace.texts, forward_stacks=stacks))


def slack_curve(history: DeviceHistory, ended: IntArray) -> IntArray:
    """By how much blocks may be larger after every entry; int64[entries + 1], row ``t + 1`` for entry `t`."""
    entries = history.entries
    changes = np.zeros(entries + 2, np.int64)
    live = history.lifetimes.born < ended
    np.add.at(changes, history.lifetimes.born[live] + 1, history.slack[live])
    np.subtract.at(changes, ended[live] + 1, history.slack[live])
    return np.cumsum(changes)[: entries + 1]
