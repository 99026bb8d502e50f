"""What an object keeps besides the graphs that made it: numbers, tensors, or the state of a recurrent layer."""

from __future__ import annotations

import math
import re

from oomscope.analysis.attribution.held_blocks import first_ways, is_within
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.verdict.suspects import own_rows
from oomscope.frozen import frozen

_STATE = re.compile(r"\((?:hx|cx)\)$")
"""What the nodes of recurrent layers and cells call the state that they were given."""


@frozen
class KeptValues:
    """What a person has put into an object, as far as the recording saw it.

    Attributes:
        numbers: whether all of it are tensors of one element; None where none was seen.
        recurrent: whether its graphs lead through layers that were given a state.
        own: bytes of blocks of the values themselves, which stay without their graphs.
    """

    numbers: bool | None = None
    recurrent: bool = False
    own: int = 0


def kept_values(study: DeviceStudy, entry: int, holder: str) -> KeptValues:
    """What `holder` keeps once `entry` has happened."""
    within = [one for one, way in first_ways(study) if is_within(way, holder)]
    values = [one.shape for one in within if one.saved_for is None and one.shape is not None]
    return KeptValues(
        all(math.prod(shape) == 1 for shape in values) if values else None,
        any(_STATE.search(one.saved_for or "") for one in within),
        int(study.history.size[own_rows(study, entry, holder)].sum()),
    )
