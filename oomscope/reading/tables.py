"""What all parts of one snapshot share while it is read."""

from __future__ import annotations

from dataclasses import field

from oomscope.frozen import frozen
from oomscope.reading.notes import Notes
from oomscope.reading.pools import PoolInterner
from oomscope.reading.stacks import StackInterner


@frozen
class Tables:
    """The numbering of stacks and pools, and the notes."""

    stacks: StackInterner = field(default_factory=StackInterner)
    pools: PoolInterner = field(default_factory=PoolInterner)
    notes: Notes = field(default_factory=Notes)
