"""Models whose parameters are there while another model runs or is trained, such as encoders beside a decoder."""

from __future__ import annotations

from typing import NamedTuple

from oomscope.analysis.attribution.held_blocks import holders_in_blocks
from oomscope.analysis.labels.categories import GRADIENT, PARAMETER
from oomscope.analysis.study import DeviceStudy


class IdleModel(NamedTuple):
    """A model that takes no part, and the bytes of its parameters.

    Where it is `untrained`, no more is known than that it has no gradients while another model has.
    """

    holder: str
    bytes: int
    untrained: bool = False


def find_idle_models(study: DeviceStudy) -> tuple[IdleModel, ...]:
    """Those of which no call was underway while one of another model was, as the recording saw it; largest first."""
    found = (
        IdleModel(one.holder, one.bytes or 0)
        for one in holders_in_blocks(study)
        if one.kind == "parameter" and one.running is False and one.holder
    )
    return tuple(sorted(found, key=lambda one: -one.bytes))


def find_untrained_models(study: DeviceStudy) -> tuple[IdleModel, ...]:
    """Those without gradients, as the recording saw them, where others have some; largest first."""
    holders = holders_in_blocks(study)
    trained = {one.holder for one in holders if one.kind == "gradient"}
    found = (
        IdleModel(one.holder, one.bytes or 0, untrained=True)
        for one in holders
        if trained and one.kind == "parameter" and one.holder and one.holder not in trained
    )
    return tuple(sorted(found, key=lambda one: -one.bytes))


def bytes_without_gradients(study: DeviceStudy, entry: int) -> int:
    """Bytes of parameters beyond those of all gradients, by the trace, where there are gradients at `entry`."""
    size, there = study.history.size, study.history.lifetimes.allocated_at(entry)
    parameters, gradients = (int(size[there & (study.categories == one)].sum()) for one in (PARAMETER, GRADIENT))
    return max(parameters - gradients, 0) if gradients else 0
