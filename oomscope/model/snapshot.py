"""A whole snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, NamedTuple, TypeAlias

from oomscope.frozen import frozen
from oomscope.model.cut import Cut
from oomscope.model.layout import Layout
from oomscope.model.note import Note
from oomscope.model.recorded import RecordedContext
from oomscope.model.recorded_parsing import parse_context
from oomscope.model.stacks import StackTable
from oomscope.model.trace import Trace
from oomscope.model.window import WindowPart
from oomscope.notebooks import html_of

PoolId: TypeAlias = tuple[int, int]
"""torch's mempool id: (0, 0) the default pool, (n, 0) a CUDA graph's, (0, n) a `torch.cuda.MemPool`'s."""


class Annotation(NamedTuple):
    """One end of a `record_function` range (torch 2.5+)."""

    stage: str
    """``START`` or ``END``."""
    name: str
    device: int
    time_us: int


@frozen(eq=False)
class Device:
    """What the snapshot holds about one device: its memory at the end, and the trace that led there.

    Attributes:
        index: CUDA index.
        layout: its segments and blocks.
        trace: its entries.
        cut: whether the file was cut off before the end of the trace, which then does not lead to `layout`.
    """

    index: int
    layout: Layout
    trace: Trace
    cut: bool = False


@frozen(eq=False)
class Snapshot:
    """A memory snapshot, whatever wrote it.

    Attributes:
        devices: those that hold segments or trace entries, by index.
        stacks: every call stack, shared by all devices.
        pools: the memory pools that numbers in `pool` columns stand for; the first is the default pool (0, 0).
        settings: torch's ``allocator_settings`` as written; None where the file has none (torch before 2.3).
        annotations: `record_function` ranges in the order of the file.
        context: the dump's own ``oomscope`` key as it was read, else None: for redacting it and passing it on. Its
            contents are a stranger's; questions are asked of `recorded`.
        schema: which releases of torch write this layout, such as ``2.10-2.11``.
        notes: what was odd about the file, for the reader of the report.
        host: pinned host memory (torch 2.14+), else None.
        ring_entries: the bound of the trace (``max_entries``) where the file says it, else None.
        cut: what is missing, where the file was cut off; else None.
        window: the part of the recording that this is, by device; empty where it is all of it.
    """

    devices: tuple[Device, ...]
    stacks: StackTable
    pools: tuple[PoolId, ...] = ((0, 0),)
    settings: Mapping[str, Any] | None = None
    annotations: tuple[Annotation, ...] = ()
    context: Mapping[str, Any] | None = None
    schema: str = "unknown"
    notes: tuple[Note, ...] = field(default=())
    host: Device | None = None
    ring_entries: int | None = None
    cut: Cut | None = None
    window: tuple[WindowPart, ...] = ()
    _recorded: RecordedContext | None = field(default=None, init=False, repr=False)

    @property
    def recorded(self) -> RecordedContext:
        """The dump's own key, checked and typed; an empty record where oomscope did not record."""
        if self._recorded is None:
            object.__setattr__(self, "_recorded", parse_context(self.context))
        assert self._recorded is not None
        return self._recorded

    def device(self, index: int) -> Device:
        """The device with CUDA index `index`.

        Raises:
            KeyError: the snapshot holds nothing about it.
        """
        for device in self.devices:
            if device.index == index:
                return device
        raise KeyError(index)

    def window_of(self, index: int) -> WindowPart | None:
        """The part of the recording of the device `index`; None where this is the whole recording."""
        return next((part for part in self.window if part.device == index), None)

    @property
    def entries(self) -> int:
        """Trace entries of all devices together."""
        return sum(len(device.trace) for device in self.devices)

    def _repr_html_(self) -> str | None:
        return html_of("Snapshot", self)
