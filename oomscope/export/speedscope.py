"""Bytes by stack for speedscope (https://www.speedscope.app), whose format is a list of weighted stacks.

Two profiles a device: what is live at one instant, and what was allocated over the whole recording. The weights of
each add up to the byte: to the allocated bytes at that instant, and to the bytes of all blocks that were handed out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from oomscope.analysis.attribution.by_site import NO_FRAMES
from oomscope.analysis.instants import choose_instant, entry_at
from oomscope.analysis.records import At
from oomscope.analysis.study import DeviceStudy, SnapshotStudy
from oomscope.analysis.verdict.failed_requests import failed_requests
from oomscope.history import BEFORE
from oomscope.model import Frame, IntArray
from oomscope.version import __version__
from oomscope.wording.clean import clean
from oomscope.wording.labels import SITE_LABELS, label

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_Stack = tuple[int, ...]
_HIGHEST_LINE = (1 << 31) - 1
"""Unresolved C++ frames have numbers beyond, which are no lines."""
_UNRESOLVED = ("", "??")


def to_speedscope(study: SnapshotStudy, name: str, at: str | int = "auto") -> Iterator[bytes]:
    """The file, in one piece.

    Args:
        study: of the snapshot.
        name: what the file is called in speedscope.
        at: the instant of the first profile, as `choose_instant` takes it; other devices are shown at the same time.

    Raises:
        RequestError: there is no such instant.
    """
    instant = choose_instant([(one.history, failed_requests(one)) for one in study.devices], at, None)
    frames = _SharedFrames(study)
    profiles = [profile for device in study.devices for profile in _profiles(device, frames, instant)]
    whole = {
        "$schema": SCHEMA,
        "exporter": f"oomscope {__version__}",
        "name": clean(name),
        "activeProfileIndex": 0,
        "shared": {"frames": frames.shared},
        "profiles": profiles,
    }
    # As large as there are stacks, however long the trace is.
    yield (json.dumps(whole, allow_nan=False) + "\n").encode()


class _SharedFrames:
    """The table of frames that all profiles share, and the stacks in its numbers, outermost first."""

    def __init__(self, study: SnapshotStudy) -> None:
        self.shared: list[dict[str, Any]] = []
        self._number: dict[tuple[str, str, int], int] = {}
        self._stacks = study.snapshot.stacks
        self._of_frame = [self._frame(frame) for frame in self._stacks.frames]

    def _frame(self, frame: Frame) -> int | None:
        """None for C++ frames that were never resolved: they say nothing."""
        if frame.filename in _UNRESOLVED and not frame.line:
            return None
        file, line = clean(frame.filename), frame.line if 0 < frame.line <= _HIGHEST_LINE else 0
        base = file.replace("\\", "/").rpartition("/")[2]
        # speedscope shows file and line only of the frame that is pointed at.
        return self._add(f"{clean(frame.name)} ({base}:{line})" if line else clean(frame.name), file, line)

    def _add(self, name: str, file: str = "", line: int = 0) -> int:
        number = self._number.setdefault((name, file, line), len(self.shared))
        if number == len(self.shared):
            where = {"file": file} if file else {}
            self.shared.append({"name": name, **where, **({"line": line} if line else {})})
        return number

    def stack(self, number: int, reason: str | None) -> _Stack:
        """Stack `number`; for memory without one a single frame that says why."""
        if number >= 0:
            members = self._stacks.members[self._stacks.offsets[number] : self._stacks.offsets[number + 1]]
            found = [self._of_frame[member] for member in members[::-1].tolist()]
            if known := tuple(frame for frame in found if frame is not None):
                return known
        return (self._add(f"({label(reason or NO_FRAMES, SITE_LABELS)})"),)


def _profiles(device: DeviceStudy, frames: _SharedFrames, instant: At) -> Iterator[dict[str, Any]]:
    history = device.history
    entry = entry_at(history, instant)
    live = np.flatnonzero(history.lifetimes.allocated_at(entry))
    made = np.flatnonzero(history.lifetimes.born > BEFORE)
    when = "before the first entry" if entry == BEFORE else f"after entry {entry:,}"
    kind = {"oom": "at the OOM, ", "peak": "at the peak, ", "end": "at the end, "}.get(instant.kind, "")
    yield _profile(f"{device.name} live bytes {kind}{when}", device, frames, live)
    yield _profile(f"{device.name} bytes allocated over the recording", device, frames, made)


def _profile(name: str, device: DeviceStudy, frames: _SharedFrames, rows: IntArray) -> dict[str, Any]:
    """The bytes of the lifetimes `rows` by stack; neighbours share as many frames as can be."""
    weights: dict[_Stack, int] = {}
    for stack, reason, count in _sums(device, rows):
        path = frames.stack(stack, reason)
        weights[path] = weights.get(path, 0) + count
    order = sorted(weights)
    return {
        "type": "sampled",
        "name": name,
        "unit": "bytes",
        "startValue": 0,
        "endValue": sum(weights.values()),
        "samples": order,
        "weights": [weights[path] for path in order],
    }


def _sums(device: DeviceStudy, rows: IntArray) -> Iterator[tuple[int, str | None, int]]:
    """Stack, reason for having none, and bytes."""
    history, attribution = device.history, device.attribution
    groups = max(len(attribution.label), 1)
    key = history.lifetimes.stack[rows].astype(np.int64) * groups + attribution.group[rows]
    distinct, inverse = np.unique(key, return_inverse=True)
    total = np.zeros(len(distinct), np.int64)
    np.add.at(total, inverse, history.size[rows])
    for number, count in zip(distinct.tolist(), total.tolist(), strict=True):
        stack, group = divmod(number, groups)
        yield stack, attribution.label[group], count
