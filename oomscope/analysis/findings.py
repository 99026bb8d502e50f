"""The findings: everything a report shows about a snapshot, device by device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from oomscope.analysis.attribution.records import Holder, NamedTensor, SiteUse
from oomscope.analysis.labels.drivers import categories_at
from oomscope.analysis.labels.records import Bill
from oomscope.analysis.memory.pinned_memory import PinnedMemory
from oomscope.analysis.memory.records import Fragmentation, Peak, Pin, Reconciliation, Totals, Usage
from oomscope.analysis.passes.records import Growth, Steps
from oomscope.analysis.records import At, RecordingQuality
from oomscope.analysis.said.records import NamedUse, PoolFigures
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.verdict.records import Oom
from oomscope.analysis.verdict.refused import Refused
from oomscope.analysis.whatif.records import WhatIf
from oomscope.frozen import frozen
from oomscope.history import DeviceHistory
from oomscope.model import Action, Snapshot, UInt8Array, WindowPart
from oomscope.notebooks import html_of


@frozen(eq=False)
class DeviceFindings:
    """Everything about one device. `at_entry` is the entry of this device that the attribution is about."""

    device: int
    study: DeviceStudy
    at_entry: int
    usage: Usage
    at: Totals
    peak: Peak | None
    reconciliation: Reconciliation
    fragmentation: Fragmentation
    sites: tuple[SiteUse, ...]
    categories: Mapping[str, int] = field(default_factory=dict)
    categories_source: str = "inferred"
    phases: Mapping[str, int] = field(default_factory=dict)
    names: tuple[NamedTensor, ...] = ()
    holders: tuple[Holder, ...] = ()
    pins: tuple[Pin, ...] = ()
    growth: tuple[Growth, ...] = ()
    steps: Steps = field(default_factory=lambda: Steps(0, "none"))
    passes: Steps | None = None
    """Of the loop that failed; None where the steps are those, or say more."""
    oom: Oom | None = None
    ooms: tuple[Oom, ...] = ()
    bill: Bill | None = None
    device_total: int | None = None
    """Bytes of the card, where the recording knows them."""
    named: tuple[NamedUse, ...] = ()
    pools: tuple[PoolFigures, ...] = ()
    outside: int | None = None
    """Bytes of the card that neither this allocator holds nor are free, where known."""

    @property
    def name(self) -> str:
        """What torch calls the device: ``cuda:0``."""
        return self.study.name

    @property
    def rounds(self) -> Steps:
        """What a report counts in and draws: the passes of the loop that failed, else the steps."""
        return self.steps if self.passes is None else self.passes

    @property
    def part(self) -> WindowPart | None:
        """The part of its trace that this is about; None where that is all of it."""
        return self.study.part

    @property
    def first_entry(self) -> int:
        """What entry 0 is called: its number in the whole recording."""
        return 0 if self.part is None else self.part.first

    @property
    def exact(self) -> bool:
        """Whether nothing speaks against the figures before the end: no replay departed from the recording."""
        return self.reconciliation.replay_agrees is not False

    @property
    def failures(self) -> int:
        """How many requests of the trace failed; `ooms` are the last of them."""
        return len(self.history.trace.entries(Action.OOM))

    @property
    def history(self) -> DeviceHistory:
        """What happened on the device."""
        return self.study.history

    @property
    def category_of(self) -> UInt8Array:
        """uint8[lifetimes], indices into `CATEGORIES`, as the drivers of `at_entry` see them."""
        return categories_at(self.study, self.at_entry, self.growth)

    @property
    def phase_of(self) -> UInt8Array:
        """uint8[lifetimes], indices into `PHASES`."""
        return self.study.phases


@frozen(eq=False)
class Findings:
    """What `analyze` found; `write_report` and the renderers make text of it."""

    snapshot: Snapshot
    recording: RecordingQuality
    at: At
    devices: tuple[DeviceFindings, ...]
    whatif: tuple[WhatIf, ...] = ()
    pinned: PinnedMemory | None = None
    refused: Refused | None = None

    def device(self, index: int) -> DeviceFindings:
        """The findings about the device with CUDA index `index`.

        Raises:
            KeyError: the snapshot holds nothing about it.
        """
        for device in self.devices:
            if device.device == index:
                return device
        raise KeyError(index)

    @property
    def main(self) -> DeviceFindings | None:
        """The device that the report begins with: the one of `at`."""
        return next((device for device in self.devices if device.device == self.at.device), None)

    def _repr_html_(self) -> str | None:
        return html_of("Findings", self)
