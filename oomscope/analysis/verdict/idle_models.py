"""Models whose parameters are there while another model runs: encoders beside a decoder, a second engine."""

from __future__ import annotations

from typing import NamedTuple

from oomscope.analysis.attribution.held_blocks import holders_in_blocks
from oomscope.analysis.study import DeviceStudy


class IdleModel(NamedTuple):
    """A model that takes no part, and the bytes of its parameters."""

    holder: str
    bytes: int


def find_idle_models(study: DeviceStudy) -> tuple[IdleModel, ...]:
    """Those of which no call was underway while one of another model was, as the recording saw it; largest first."""
    found = (
        IdleModel(one.holder, one.bytes or 0)
        for one in holders_in_blocks(study)
        if one.kind == "parameter" and one.running is False and one.holder
    )
    return tuple(sorted(found, key=lambda one: -one.bytes))
