"""What differs between two recordings, as records.

Bytes are integers, and those of a change are signed: AFTER − BEFORE. None is unknown, never 0. The names are those of
the JSON document (`oomscope/rendering/diff.schema.json`).
"""

from __future__ import annotations

from collections.abc import Mapping

from oomscope.analysis.memory.records import Totals
from oomscope.analysis.records import Location
from oomscope.frozen import frozen

UNCHANGED = "unchanged"
RATIO = "ratio"
"""The same blocks, each larger by the one factor."""
ROUNDING = "rounding"
"""The same requests; the allocator made blocks of another size for them."""
INSTANT = "instant"
"""The two instants lie at other points of the program: as many were live at once in both recordings."""
BLOCKS = "blocks"
"""More blocks, or fewer."""
SIZES = "sizes"
"""As many blocks of other sizes."""
NEW, GONE = "new", "gone"
"""The line is in one recording only."""
REASONS = (NEW, GONE, BLOCKS, SIZES, RATIO, ROUNDING, INSTANT, UNCHANGED)


@frozen
class Side:
    """One of the two recordings, at the instant that is compared.

    Attributes:
        file: what the reader calls it.
        device: CUDA index.
        kind: ``oom``, ``peak`` or ``end``; ``end`` as well where only the end was recorded.
        entry: the instant.
        totals: reserved, allocated and active bytes then.
        passes: how many steps were found; None where none could be looked for.
        history: how complete the recording is, as in the report.
        unaccounted: bytes that the trace and the final segments say differently.
    """

    file: str
    device: int
    kind: str
    entry: int
    totals: Totals
    passes: int | None
    history: str
    unaccounted: int = 0


@frozen
class SiteChange:
    """The change of one site; the bytes are those that were live.

    Attributes:
        site, caller: as in AFTER, where it is there; else as in BEFORE.
        old_site, old_caller: as in BEFORE, where they are called otherwise there, if only by another folder; else None.
        label: why there is no site; a slug as in the report.
        category: what most of its bytes are.
        matched: ``same``, ``moved``, ``renamed``, ``new`` or ``gone``.
        reason: one of `REASONS`: what most of the change is.
        by_ratio: bytes of the change that are the one factor's.
        by_square: bytes of it that are its square's, as those of attention scores are when the length changes.
        by_rounding: bytes that the same requests take more.
        factor: by what the blocks are larger that the change is of; None where it is another change, or none.
        stack: the largest stack, innermost first.
    """

    site: Location | None
    caller: Location | None
    label: str | None
    before: int
    after: int
    before_blocks: int
    after_blocks: int
    category: str
    matched: str
    reason: str
    by_ratio: int = 0
    by_square: int = 0
    by_rounding: int = 0
    factor: float | None = None
    old_site: Location | None = None
    old_caller: Location | None = None
    stack: tuple[str, ...] = ()

    @property
    def change(self) -> int:
        """Bytes."""
        return self.after - self.before

    @property
    def is_of_program(self) -> bool:
        """Whether the program does something else here, beyond one factor, rounding and the choice of the instants."""
        return self.reason in (NEW, GONE, BLOCKS, SIZES)

    @property
    def rest(self) -> int:
        """Bytes of the change that neither the factor nor its square nor rounding explains."""
        return self.change - self.by_ratio - self.by_square - self.by_rounding


@frozen
class Scaling:
    """One factor by which blocks differ, as after a change of batch or length.

    Attributes:
        factor: AFTER / BEFORE.
        category: the categories that it explains.
        uniform: whether all that changed is explained by it, but for one byte in twenty.
        explained: bytes of the change that are its, or its square's.
        squared: those that are its square's.
        sites: how many sites it explains.
    """

    factor: float
    category: Mapping[str, float]
    uniform: bool
    explained: int
    squared: int
    sites: int


@frozen
class NamedChange:
    """The bytes of a name: a tensor's or a holder's. An empty name stands for all without one."""

    name: str
    kind: str
    before: int
    after: int

    @property
    def change(self) -> int:
        """Bytes."""
        return self.after - self.before


@frozen
class StackChange:
    """The bytes of one stack, innermost frame first; empty where nothing was recorded, None for all other stacks."""

    stack: tuple[str, ...] | None
    before: int
    after: int

    @property
    def change(self) -> int:
        """Bytes."""
        return self.after - self.before


@frozen
class GrowthChange:
    """What a site leaves behind every pass; None: it does not grow."""

    site: Location | None
    caller: Location | None
    label: str | None
    before: int | None
    after: int | None


@frozen
class ValueChange:
    """A setting or a version; None where the recording does not tell it."""

    name: str
    before: str | None
    after: str | None


@frozen
class Diff:
    """What differs between two recordings.

    Attributes:
        at: which instant was asked for; ``auto`` is settled.
        sites: what changed first, then what the factor, rounding and the choice of the instants explain, then the
            rest; they sum to the change of allocated bytes.
        categories, phases: the change of each; with `unaccounted` they sum to the same.
        names, holders: None where not both recordings tell them. They are those of the moment of the dump.
        peak: change of the most that was allocated, and reserved, in the recorded windows; None without a timeline.
    """

    at: str
    before: Side
    after: Side
    sites: tuple[SiteChange, ...]
    categories: Mapping[str, int]
    phases: Mapping[str, int]
    stacks: tuple[StackChange, ...]
    fragmentation: Mapping[str, int | None]
    peak: Mapping[str, int] | None
    scaling: Scaling | None = None
    names: tuple[NamedChange, ...] | None = None
    holders: tuple[NamedChange, ...] | None = None
    growth: tuple[GrowthChange, ...] = ()
    settings: tuple[ValueChange, ...] = ()
    versions: tuple[ValueChange, ...] = ()

    @property
    def change(self) -> Totals:
        """Change of reserved, allocated and active bytes."""
        before, after = self.before.totals, self.after.totals
        return Totals(
            reserved=after.reserved - before.reserved,
            allocated=after.allocated - before.allocated,
            active=after.active - before.active,
        )

    @property
    def unaccounted(self) -> int:
        """Change of what no block explains."""
        return self.after.unaccounted - self.before.unaccounted

    @property
    def nothing_changed(self) -> bool:
        """Whether no figure, setting or version differs."""
        change = self.change
        figures = (change.reserved, change.allocated, change.active, *self.categories.values(), *self.phases.values())
        return not (
            any(figures)
            or any(row.change for row in (*(self.names or ()), *(self.holders or ())))
            or any(row.change for row in self.stacks)
            or any((row.before, row.before_blocks) != (row.after, row.after_blocks) for row in self.sites)
            or any(self.fragmentation.values())
            or any((self.peak or {}).values())
            or self.before.passes != self.after.passes
            or self.before.history != self.after.history
            or any(row.before != row.after for row in self.growth)
            or self.settings
            or self.versions
        )
