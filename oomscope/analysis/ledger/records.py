"""What the ledger says of each remedy."""

from __future__ import annotations

from oomscope.analysis.plan.records import Estimate
from oomscope.frozen import frozen
from oomscope.model import Note

REPLAYED, ESTIMATED = "replayed", "estimated"


@frozen
class RemedyRow:
    """One remedy.

    Attributes:
        slug: its name; for a setting of the allocator the setting as it is written.
        value: its number, such as the micro-batches; None where it has none.
        peak_allocated: bytes at the highest point of the edited run, wherever that lies.
        saves_bytes: by how much the peak is lower; for a setting, the peak of reserved memory.
        enough: whether every request that failed is served, at the upper end of the range and up to the last recorded
            entry; None where nothing failed, or it is not certain.
        basis: ``replayed``: the trace was edited and replayed; ``estimated``: the edit rests on sizes that the
            recording does not show, such as those of copies in 16 bits.
    """

    slug: str
    value: int | None
    peak_allocated: Estimate
    saves_bytes: int
    enough: bool | None
    basis: str = REPLAYED


@frozen
class RemedyPair:
    """Two remedies that are enough together, where none is alone.

    Attributes:
        first, second: each as it is alone.
        peak_allocated: bytes at the highest point of the run that follows both.
        saves_bytes: by how much the peak is lower.
    """

    first: RemedyRow
    second: RemedyRow
    peak_allocated: Estimate
    saves_bytes: int


@frozen
class Effect:
    """What a remedy makes of one request that failed.

    Attributes:
        saves_bytes: by how much the peak up to it is lower.
        serves: whether the request is served, at the upper end of the range; None where that is not certain. What the
            program would have asked for afterwards is another question.
    """

    saves_bytes: int
    serves: bool | None


@frozen
class Ledger:
    """All remedies of a run.

    Attributes:
        device: CUDA index.
        peak_allocated: bytes at the peak of the recorded run, with the request that failed, if one did.
        failed: whether a request failed.
        limit: bytes that were asked for in place of the recorded limit; None: the recorded one holds.
        rows: what saves most first.
        skipped: slugs that were asked for and that the run leaves nothing to do for.
        notes: on all rows.
        pairs: two remedies that are enough together, where none is alone; what saves most first.
    """

    device: int
    peak_allocated: int
    failed: bool
    rows: tuple[RemedyRow, ...]
    skipped: tuple[str, ...] = ()
    limit: int | None = None
    notes: tuple[Note, ...] = ()
    pairs: tuple[RemedyPair, ...] = ()
