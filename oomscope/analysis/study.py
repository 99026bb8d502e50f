"""One study of a snapshot: what every question rests on, found once, when it is first asked for.

History, sites, roles, phases, steps, categories and attribution each need those before them; every question above is
asked of a `DeviceStudy` and finds them there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np

from oomscope.analysis.attribution.by_site import Attribution, attribute
from oomscope.analysis.attribution.sites import SiteTable
from oomscope.analysis.labels.categories import categorize
from oomscope.analysis.labels.phases import phase_of
from oomscope.analysis.labels.stack_roles import StackRoles, find_roles
from oomscope.analysis.passes.loop_bodies import LoopBodies
from oomscope.analysis.passes.loops import Loops
from oomscope.analysis.passes.records import Steps
from oomscope.analysis.passes.script_stacks import ScriptStacks, find_script
from oomscope.analysis.passes.steps import find_steps
from oomscope.analysis.recording_quality import history_kind
from oomscope.analysis.said.ranges import Ranges, find_ranges
from oomscope.errors import RequestError
from oomscope.history import (
    DeviceHistory,
    device_history,
    device_kind,
    find_padding,
    pinned_history,
    recorded_config,
)
from oomscope.model import Device, Snapshot, UInt8Array, WindowPart

_Answer = TypeVar("_Answer")


class SnapshotStudy:
    """A snapshot, and a study of each of its devices."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.devices = tuple(DeviceStudy(self, device) for device in snapshot.devices)

    @cached_property
    def host(self) -> DeviceStudy | None:
        """A study of pinned host memory, as if it were a device; None where none was recorded."""
        host = self.snapshot.host
        return None if host is None else HostStudy(self, host)

    @cached_property
    def sites(self) -> SiteTable:
        """Site and caller of every stack."""
        return SiteTable(self.snapshot.stacks)

    @cached_property
    def roles(self) -> StackRoles:
        """What each stack tells of the part of the program that it belongs to."""
        return find_roles(self.snapshot.stacks)

    @cached_property
    def script(self) -> ScriptStacks:
        """The part of each stack that lies outside every Module's call."""
        return find_script(self.snapshot.stacks)

    @cached_property
    def padding(self) -> int:
        """The bytes that the allocator added to every request."""
        return find_padding(self.snapshot)

    @cached_property
    def device_kind(self) -> str:
        """``cuda``, ``npu`` or ``xpu``."""
        return device_kind(self.snapshot, self.padding)

    @cached_property
    def histories(self) -> tuple[DeviceHistory, ...]:
        """What happened on each device."""
        return tuple(device.history for device in self.devices)

    @cached_property
    def history_kind(self) -> str:
        """How complete the recording is: ``full``, ``wrapped``, ``late``, ``state_only`` or ``none``."""
        return history_kind(self.snapshot, self.histories)

    def device(self, index: int) -> DeviceStudy:
        """The study of the device with CUDA index `index`.

        Raises:
            RequestError: the snapshot holds nothing about it.
        """
        for study, device in zip(self.devices, self.snapshot.devices, strict=True):
            if device.index == index:
                return study
        known = ", ".join(str(device.index) for device in self.snapshot.devices) or "none"
        raise RequestError(f"The snapshot holds nothing about device {index}; it has {known}.")


class DeviceStudy:
    """What is known of one device of a snapshot, at all instants. Each part is computed when it is first asked for."""

    def __init__(self, whole: SnapshotStudy, device: Device) -> None:
        self._whole = whole
        self._device = device
        self._answers: dict[Hashable, Any] = {}

    @property
    def device(self) -> Device:
        """What the snapshot holds about it."""
        return self._device

    @property
    def index(self) -> int:
        """Its CUDA index."""
        return self._device.index

    @property
    def name(self) -> str:
        """What torch calls the device: ``cuda:0``."""
        return f"{self._whole.device_kind}:{self.index}"

    @property
    def part(self) -> WindowPart | None:
        """The part of the device's trace that the snapshot was cut to; None where it has all of it."""
        return self.snapshot.window_of(self.index)

    @property
    def is_cut(self) -> bool:
        """Whether the file was cut off before the end of the device's trace."""
        return self._device.cut

    @property
    def snapshot(self) -> Snapshot:
        """The whole snapshot."""
        return self._whole.snapshot

    @property
    def sites(self) -> SiteTable:
        """Site and caller of every stack of the snapshot."""
        return self._whole.sites

    @property
    def roles(self) -> StackRoles:
        """Role and marks of every stack of the snapshot."""
        return self._whole.roles

    @property
    def history_kind(self) -> str:
        """How complete the recording of the snapshot is."""
        return self._whole.history_kind

    @cached_property
    def history(self) -> DeviceHistory:
        """What happened on the device."""
        config = recorded_config(self.snapshot, self._device, padding=self._whole.padding)
        return device_history(self._device, config)

    @cached_property
    def phases(self) -> UInt8Array:
        """uint8[lifetimes], indices into `PHASES`: the phase that made each allocation."""
        return phase_of(self.history, self.roles, self.ranges)

    @cached_property
    def ranges(self) -> Ranges:
        """The ranges that the program marked with `record_function`."""
        return find_ranges(self.snapshot, self.history)

    @cached_property
    def loops(self) -> Loops:
        """The loops of the script and their passes."""
        bodies = LoopBodies(self.snapshot.recorded.sources)
        return Loops(self.history, self._whole.script, self.roles, bodies)

    @cached_property
    def steps(self) -> Steps:
        """The iterations of the program."""
        return find_steps(self.snapshot, self.history, self.phases, self.loops, self.ranges)

    @cached_property
    def _categorized(self) -> tuple[UInt8Array, str]:
        return categorize(self.snapshot, self.history, self.steps, self.phases, self.roles)

    @property
    def categories(self) -> UInt8Array:
        """uint8[lifetimes], indices into `CATEGORIES`: what each allocation is."""
        return self._categorized[0]

    @property
    def categories_source(self) -> str:
        """``recorded``, ``mixed`` or ``inferred``."""
        return self._categorized[1]

    @cached_property
    def attribution(self) -> Attribution:
        """Which site, caller or reason for having none each allocation belongs to."""
        part = self.part
        kind = "window" if part is not None and part.first else self.history_kind
        return attribute(self.history, self.sites, self.phases, kind=kind)

    def live_by(self, kind: UInt8Array, names: tuple[str, ...], entry: int) -> dict[str, int]:
        """Allocated bytes once `entry` has happened, by `kind`: `phases` or `categories`, with their `names`."""
        live = self.history.lifetimes.allocated_at(entry)
        total = np.zeros(len(names), np.int64)
        np.add.at(total, kind[live], self.history.size[live])
        return dict(zip(names, total.tolist(), strict=True))

    def once(self, question: Hashable, answer: Callable[[], _Answer]) -> _Answer:
        """The answer to `question`, found at most once for this study."""
        if question not in self._answers:
            self._answers[question] = answer()
        return cast("_Answer", self._answers[question])


class HostStudy(DeviceStudy):
    """What is known of pinned host memory: history, stacks and ranges as of a device; the rest asks about cards."""

    @property
    def name(self) -> str:
        """What it is called among devices."""
        return "pinned host memory"

    @cached_property
    def history(self) -> DeviceHistory:
        """What happened there."""
        return pinned_history(self._device)


def study_device(snapshot: Snapshot, index: int) -> DeviceStudy:
    """The study of one device alone.

    Raises:
        RequestError: the snapshot holds nothing about it.
    """
    return SnapshotStudy(snapshot).device(index)
