"""Who made a block and who keeps it, as records.

Bytes are integers; None is unknown, never 0.
"""

from __future__ import annotations

from oomscope.analysis.records import Location
from oomscope.frozen import frozen


@frozen
class SiteUse:
    """Live bytes of one site (or of one reason for having none).

    Attributes:
        site: None where there is none; then `label` says why.
        label: a slug of `oomscope.analysis.attribution.by_site`; None where there is a site.
        caller: the reader's own code that led there; None where there is none.
        category: the one most of the bytes belong to.
        stack: the stack that most of the bytes share, as ``file:line function``, innermost first.
        stacks: the largest distinct stacks, as (stack number, bytes, blocks).
    """

    site: Location | None
    caller: Location | None
    label: str | None
    bytes: int
    blocks: int
    category: str = "unknown"
    stack: tuple[str, ...] = ()
    stacks: tuple[tuple[int, int, int], ...] = ()


@frozen
class NamedTensor:
    """A block that the recording could name."""

    name: str
    category: str
    bytes: int
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    holders: tuple[str, ...] = ()


@frozen
class Holder:
    """A Python object that keeps memory alive, as the recording found it.

    Attributes:
        holder: the path to it from something a person knows, such as ``train: total_loss``.
        kind: what it is: ``collection``, ``graph``, ``cycle``, ``parameter``, …
        bytes: all it reaches.
        retained: what would come free with it alone, as a dominator tree gives it.
        tensors: how many tensors those are.
    """

    holder: str
    kind: str
    bytes: int
    retained: int
    tensors: int
