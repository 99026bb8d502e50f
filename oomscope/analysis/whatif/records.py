"""What the replays found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from oomscope.frozen import frozen
from oomscope.model import Note

RECORDED = "recorded"
"""The name of the setting that the snapshot was recorded under."""
EXPANDABLE = "expandable_segments:True"
"""The setting that is tried first, for it was made against holes."""


@frozen
class SelfCheck:
    """Whether the replay of the recorded setting gives what was recorded.

    Attributes:
        addresses: allocations whose address was compared.
        segment_events: changes of the reserved memory that were compared.
        mismatches: how many of both differ.
        first_mismatch: the first trace entry that differs, None where none does.
        reason: why other settings are not answered, or only some; None where everything is.
        rule: which rule of the allocator decides what differs first, by its slug in `oomscope.allocator.rules`; None
            where nothing differs, or no rule decides it.
    """

    addresses: int
    segment_events: int
    mismatches: int
    first_mismatch: int | None
    reason: Note | None = None
    rule: str | None = None

    @property
    def agrees(self) -> bool | None:
        """Whether nothing differs; None where there was nothing to compare."""
        return self.mismatches == 0 if self.addresses or self.segment_events else None

    @property
    def exact(self) -> bool:
        """Whether everything agreed, and there was something to agree on."""
        return self.addresses > 0 and self.mismatches == 0


@frozen
class WhatIfRow:
    """What became of the recorded program under one setting. Bytes; None: unknown.

    Attributes:
        setting: as written, or ``recorded``.
        limit: what could be reserved; None: no bound.
        peak_reserved, final_reserved, peak_allocated: for the trace's own order of addresses.
        segment_allocs: how often memory was obtained from the device.
        retries: how often all cached blocks were released to serve a request.
        oom: whether a request failed; None where the orders of addresses disagree.
        failed_allocation: how many alloc entries went before the first request that failed.
        served: for each of the last requests that the recorded run was refused, by its entry, whether it is served;
            None where that is not certain.
        conf: all settings of the row, as ``PYTORCH_ALLOC_CONF`` takes them.
        headroom: `limit` less `peak_reserved`, 0 where the last page of an expandable segment goes beyond a cap; where
            a request failed, negative: what was missing for it.
        least_memory: the least cap under which the recorded run lives.
        least_memory_retries: retries under that cap; each of them costs time.
        range: least and most of `peak_reserved` and `final_reserved`, over orders of addresses.
        exact: whether the figures are those of a real run of the same program, as far as is known.
        notes: what holds for this row.
    """

    setting: str
    limit: int | None = None
    peak_reserved: int | None = None
    final_reserved: int | None = None
    peak_allocated: int | None = None
    segment_allocs: int | None = None
    retries: int | None = None
    oom: bool | None = None
    failed_allocation: int | None = None
    served: Mapping[int, bool | None] = field(default_factory=dict)
    conf: str = ""
    headroom: int | None = None
    least_memory: int | None = None
    least_memory_retries: int | None = None
    range: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    exact: bool = False
    notes: tuple[Note, ...] = ()


@frozen
class WhatIf:
    """All rows for one device, the recorded setting first.

    Attributes:
        device: its CUDA index.
        self_check: whether the replay can be trusted.
        rows: what was answered.
        skipped: settings that were left out because the time budget was spent.
        notes: what a reader of all rows should know.
    """

    device: int
    self_check: SelfCheck
    rows: tuple[WhatIfRow, ...]
    skipped: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    def row(self, setting: str) -> WhatIfRow | None:
        """The row of `setting`, if it was asked for."""
        return next((row for row in self.rows if row.setting == setting), None)
