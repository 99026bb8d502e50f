"""What the program said about its memory, as records.

Bytes are integers; None is unknown, never 0.
"""

from __future__ import annotations

from oomscope.frozen import frozen
from oomscope.model import PoolId


@frozen
class Said:
    """What the program had said when a request was made; empty or None where it had said nothing.

    Attributes:
        ranges: the `record_function` ranges around it that are the program's own, outermost first.
        metadata: the text set by ``torch.cuda.memory._set_memory_metadata`` (torch 2.10+).
        compiled: the region of torch.compile, where ``compile_context`` was recorded (torch 2.8+).
        pool: the private pool that it was routed to, where the entry says so (torch 2.12+); None the default pool.
        pool_name: what the program calls that pool, where the recording knows it.
    """

    ranges: tuple[str, ...] = ()
    metadata: str | None = None
    compiled: str | None = None
    pool: PoolId | None = None
    pool_name: str | None = None

    @property
    def is_silent(self) -> bool:
        """Whether there is nothing to tell."""
        return not (self.ranges or self.metadata or self.compiled or self.pool)


@frozen
class NamedUse:
    """Live bytes under one name that the program gave.

    Attributes:
        kind: ``range``, ``metadata``, ``compiled`` or ``annotation`` (a tensor's, torch 2.14+).
        name: as it was given; of a range with those around it, outermost first: ``train_step > forward``.
        bytes: of blocks that are live at the instant, and were allocated under it.
        blocks: how many those are.
        times: how often a range was entered; None for other kinds.
        peak_allocated: the most that was allocated on the device while the range lasted; None for other kinds.
        rise: by how much allocated bytes rose at most above what they were when the range began.
    """

    kind: str
    name: str
    bytes: int
    blocks: int
    times: int | None = None
    peak_allocated: int | None = None
    rise: int | None = None


@frozen
class PoolFigures:
    """What one private pool holds at the instant: all its streams and size classes together.

    Attributes:
        pool: torch's id.
        kind: ``graph`` (made by a CUDA graph's capture) or ``mempool`` (`torch.cuda.MemPool`, `graph_pool_handle`).
        name: what the program calls it, where the recording knows it.
        peak_reserved: torch's own figure, where the recording has it (torch 2.15+).
    """

    pool: PoolId
    kind: str
    name: str | None
    segments: int
    reserved: int
    active: int
    inactive: int
    largest_inactive: int
    peak_reserved: int | None = None
