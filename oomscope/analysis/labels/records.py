"""What labels are told by: drivers and the bill of a model.

Bytes are integers; None is unknown, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from oomscope.analysis.records import Location
from oomscope.frozen import frozen


@frozen
class Driver:
    """What the live bytes are.

    Attributes:
        slug: its name.
        bytes: of the live blocks that it names; all drivers sum to what is allocated.
        site: the line that holds most of them; None where next to nothing has frames.
        categories: its bytes by category; over all drivers they sum to the table of categories.
    """

    slug: str
    bytes: int
    site: Location | None = None
    categories: Mapping[str, int] = field(default_factory=dict)


@frozen
class Bill:
    """What the model must cost, against what is there. Bytes at the instant of attribution; None is unknown."""

    parameters: int
    parameter_bytes: int
    rows: tuple[tuple[str, int | None, int], ...]
    """(what, a slug; expected bytes or None; bytes that are there)."""
    source: str
    """``recorded`` or ``inferred``."""
