"""Which cards a shape fits, and the largest value of a parameter that does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd

from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.replay import Replay
from oomscope.analysis.plan.kinds import BATCH, LENGTH, SIDE, UNKNOWN, kind_of
from oomscope.analysis.plan.predicting import Peaks, at_peak, slack, survives
from oomscope.analysis.plan.recordings import Shape
from oomscope.analysis.plan.records import CardFit, Largest
from oomscope.analysis.plan.scaling import LIKELY, Scaled
from oomscope.analysis.whatif.gpus import capacity
from oomscope.frozen import frozen
from oomscope.units import MIB, format_bytes

OUTSIDE = 768 * MIB
"""What the CUDA context and the libraries take of a card beside the allocator, where the recording does not tell: 0.5
GiB and more on current cards."""
FAR = 1.5
"""From how many times a length or side on nothing is said to fit, where no recording varies that."""
MOST_TIMES = 1 << 12
"""How far beyond the recorded values the largest is searched for."""
_FINEST = 64
"""Lengths and sides are searched in steps of at most so many."""


@frozen
class Card:
    """A card, or a cap of the process.

    Attributes:
        name: as it was asked for.
        capacity: bytes in all.
        is_cap: whether all of it is for the allocator, as ``set_per_process_memory_fraction`` counts; of a card
            something is taken beside it.
    """

    name: str
    capacity: int
    is_cap: bool = False

    def usable(self, scaled: Scaled) -> int:
        """What is left for the allocator, where as much is taken beside it as the recorded process held outside."""
        return self.capacity if self.is_cap else max(self.capacity - _outside(scaled), 0)


def card(name: str) -> Card:
    """The card `name`.

    Raises:
        RequestError: it is neither a size nor a known card.
    """
    return Card(name, capacity(name))


def cap(limit: int) -> Card:
    """A cap of `limit` bytes."""
    return Card(f"cap {format_bytes(limit)}", limit, is_cap=True)


def _outside(scaled: Scaled) -> int:
    """What the recorded card held beside this allocator, if that looks like a context alone; else `OUTSIDE`."""
    study = scaled.recording.study
    known = study.snapshot.recorded.device(study.index)
    if known.total is None or known.free is None:
        return OUTSIDE
    outside = known.total - known.free - study.history.layout.reserved
    return outside if OUTSIDE // 2 < outside < 2 * OUTSIDE else OUTSIDE


def fit(scaled: Scaled, shape: Shape, peaks: Peaks, config: AllocatorConfig, on: Card) -> CardFit:
    """Whether a shape fits a card: certain only if it does at the upper end, or does not at the lower one."""
    usable = on.usable(scaled)
    worst = survives(scaled, peaks.most, config, usable - slack(scaled, shape, peaks.most))
    if worst.survived:
        fits = None if scaled.recording.ends_early or too_far(scaled, shape) else True
        return CardFit(on.name, on.capacity, fits, usable - worst.peak_reserved, worst.retries)
    best = survives(scaled, peaks.likely, config, on.capacity)
    headroom = on.capacity - best.peak_reserved if best.survived else -best.failures[0].missing
    return CardFit(on.name, on.capacity, None if best.survived else False, headroom)


def too_far(scaled: Scaled, shape: Shape) -> bool:
    """Whether a length or a side that no recording varies is so much larger that one law of growth missed tells all."""
    return any(shape[name] >= FAR * value for name, value in _unvaried(scaled).items())


def _unvaried(scaled: Scaled) -> dict[str, int]:
    """The lengths and sides that no recording varies, with their largest recorded values."""
    return {
        name: max(shape[name] for shape in scaled.recording.shapes if name in shape)
        for name in scaled.parameters
        if name not in scaled.varied and kind_of(name, scaled.parameters) in (LENGTH, SIDE)
    }


def largest(
    scaled: Callable[[Shape], Scaled],
    config: AllocatorConfig,
    setting: str | None,
    on: Card,
    parameter: str,
    base: Shape,
    known: Sequence[int] = (),
) -> Largest:
    """The largest value of `parameter`, the others as in `base`, that fits a card for certain.

    Of `known` values each is known to fit. Where some smaller value need not, the result says which.
    """

    def on_card(value: int) -> Replay:
        shape = {**base, parameter: value}
        subject = scaled(shape)
        _, _, most = subject.sizes(shape)
        return survives(subject, most, config, on.usable(subject) - slack(subject, shape, most))

    subject = scaled(base)
    step = _step(subject, parameter, base[parameter])
    start = max(base[parameter] // step, 1)
    recorded = _unvaried(subject).get(parameter)
    most = MOST_TIMES * start if recorded is None else max(int(FAR * recorded - 1) // step, 1)
    value, bound = _search(lambda value: on_card(value).survived, min(start, most), step, most)
    uncertain = None
    if max(known, default=0) > (value or 0):
        uncertain, value, bound = (value or 0) + step, max(known), False
    others = {name: other for name, other in base.items() if name != parameter}
    beyond = {**base, parameter: (value or 0) + step}
    failing, phase = at_peak(scaled(beyond).recording, scaled(beyond).sizes(beyond)[LIKELY])
    replay = None if value is None else on_card(value)
    return Largest(
        gpu=on.name,
        parameter=parameter,
        value=value,
        others=others,
        setting=setting,
        headroom=None if replay is None else on.usable(subject) - replay.peak_reserved,
        retries=None if replay is None else replay.retries,
        at_peak=failing,
        phase=phase,
        bound=bound,
        uncertain_from=uncertain,
    )


def _step(scaled: Scaled, parameter: str, value: int) -> int:
    """In what steps a value is searched for: of a length, as fine as those that were recorded."""
    if kind_of(parameter, scaled.parameters) in (BATCH, UNKNOWN):
        return 1
    known = [shape[parameter] for shape in scaled.recording.shapes if parameter in shape]
    common = gcd(value, *known)
    return min(common & -common, _FINEST)


def _search(fits: Callable[[int], bool], start: int, step: int, most: int) -> tuple[int | None, bool]:
    """The largest multiple of `step` that fits, and whether the search ended before one failed.

    It begins with `start` steps and ends with `most`; None where not one fits.
    """
    low, high = 0, start
    while fits(high * step):
        if high >= most:
            return high * step, True
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle * step):
            low = middle
        else:
            high = middle
    return (low * step or None), False
