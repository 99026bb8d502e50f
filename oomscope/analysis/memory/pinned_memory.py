"""Pinned host memory: what torch's allocator of it held, over time and by line of code (torch 2.14+)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from oomscope.analysis.attribution.records import SiteUse
from oomscope.analysis.attribution.site_uses import site_uses
from oomscope.analysis.instants import entry_at
from oomscope.analysis.memory.records import Peak, Totals, Usage
from oomscope.analysis.memory.usage import peak, totals_at, usage
from oomscope.analysis.records import At
from oomscope.analysis.study import DeviceStudy, SnapshotStudy
from oomscope.frozen import frozen


@frozen(eq=False)
class PinnedMemory:
    """Pinned host memory. Recorded by torch 2.14+; of older releases oomscope's recording has the counters alone.

    Attributes:
        usage: at the end; None where no history of it was recorded.
        at: at the instant of the report, by time.
        peak: over the recorded window; None without a course of events.
        sites: who holds it at that instant, largest first; they sum to `at.allocated`.
        stats: ``torch.cuda.host_memory_stats()``, where oomscope recorded them.
        study: of its history; None where there is none.
        entry: the entry of its trace that `at` and `sites` are about; -1: before the first.
    """

    usage: Usage | None
    at: Totals | None
    peak: Peak | None
    sites: tuple[SiteUse, ...] = ()
    stats: Mapping[str, int] = field(default_factory=dict)
    study: DeviceStudy | None = None
    entry: int = -1

    @property
    def held(self) -> int | None:
        """Bytes that torch has pinned, in use or cached; at the end."""
        if self.usage is not None:
            return self.usage.reserved
        return self.stats.get("reserved_bytes.current", self.stats.get("allocated_bytes.current"))

    @property
    def in_use(self) -> int | None:
        """Bytes of it that the program uses, or that a stream still reads or writes; at the end.

        None where torch's counter is more than it has pinned: it counts what `Tensor.item` takes, and not that it is
        given back (2.11).
        """
        if self.usage is not None:
            return self.usage.active
        counted = self.stats.get("active_bytes.current")
        return None if counted is None or (self.held is not None and counted > self.held) else counted

    @property
    def most_held(self) -> int | None:
        """The most that torch has had pinned: over the recorded window, else as torch counted it."""
        if self.peak is not None:
            return self.peak.reserved
        return self.stats.get("reserved_bytes.peak", self.stats.get("allocated_bytes.peak"))


def pinned_memory(whole: SnapshotStudy, at: At) -> PinnedMemory | None:
    """What the snapshot tells of pinned host memory at the instant `at`; None where it tells nothing."""
    stats = whole.snapshot.recorded.pinned_stats
    study = whole.host
    if study is None:
        return PinnedMemory(None, None, None, stats=stats) if any(stats.values()) else None
    history = study.history
    entry = entry_at(history, at) if len(history.trace) else -1
    # Its categories are none of a card's: what matters is who asked.
    unknown = np.zeros(len(history.lifetimes), np.uint8)
    return PinnedMemory(
        usage=usage(history.layout),
        at=totals_at(history, entry),
        peak=peak(history),
        sites=site_uses(study, entry, unknown),
        stats=stats,
        study=study,
        entry=entry,
    )
