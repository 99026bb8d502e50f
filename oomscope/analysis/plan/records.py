"""What a plan says, as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from oomscope.frozen import frozen
from oomscope.model import Note


@frozen
class Estimate:
    """Bytes that were predicted, and how far they may be off.

    Attributes:
        bytes: the prediction.
        low, high: the true figure is expected between them.
    """

    bytes: int
    low: int
    high: int


@frozen
class CardFit:
    """Whether a shape fits a card.

    Attributes:
        gpu: as it was asked for.
        capacity: bytes of the card.
        fits: whether the replay survives on it even at the upper end of the range; None where only the lower end does,
            or where the recording ended early.
        headroom: where it may fit, bytes of the card beside the CUDA context that the replay on it leaves unreserved;
            where it does not, by how much the request that fails was short, negative.
        retries: how often all cached blocks had to be released to serve a request, which costs time; None where it
            does not fit for certain.
    """

    gpu: str
    capacity: int
    fits: bool | None
    headroom: int
    retries: int | None = None


@frozen
class Prediction:
    """The peaks at one shape.

    Attributes:
        shape: the value of each parameter.
        setting: of the allocator, as it was asked for; None: as recorded.
        peak_allocated, peak_reserved: bytes.
        at_peak: bytes by category at the peak of allocated memory, largest first; what is 0 is left out.
        phase: in which phase of the program that peak lies.
        cards: one for each card that was asked for.
        notes: on this shape alone.
    """

    shape: Mapping[str, int]
    setting: str | None
    peak_allocated: Estimate
    peak_reserved: Estimate
    at_peak: Mapping[str, int]
    phase: str
    cards: tuple[CardFit, ...] = ()
    notes: tuple[Note, ...] = ()


@frozen
class Largest:
    """The largest value of a parameter that fits a card.

    Attributes:
        gpu: the card.
        parameter: its name.
        value: the largest that fits even at the upper end of the range; None: not even 1 does.
        others: what the other parameters are.
        setting: of the allocator; None: as recorded.
        headroom: bytes of the card beside the CUDA context that the replay at that value leaves unreserved; None where
            no value fits.
        retries: of that replay: how often all cached blocks had to be released to serve a request.
        at_peak: bytes by category at the peak of the first value that may not fit: what then sets the limit.
        phase: in which phase that peak lies.
        bound: whether the search ended at its own bound: larger values may fit as well.
        uncertain_from: a smaller value that is not certain to fit, where what fits is not in order; None: it is.
    """

    gpu: str
    parameter: str
    value: int | None
    others: Mapping[str, int]
    setting: str | None
    headroom: int | None
    retries: int | None
    at_peak: Mapping[str, int]
    phase: str
    bound: bool = False
    uncertain_from: int | None = None


@frozen
class Alignment:
    """How the recordings fit together.

    Attributes:
        matched: requests of the recording that is scaled that were found at another shape, or whose size follows from
            what they are.
        unmatched: requests that only one recording has.
        unmatched_bytes: of those, the most that is live at once in the recording that is scaled.
        notes: what does not fit, and where.
    """

    matched: int
    unmatched: int
    unmatched_bytes: int = 0
    notes: tuple[Note, ...] = ()


@frozen
class Source:
    """A recording that the plan rests on.

    Attributes:
        name: the file.
        shapes: the shapes in it: one that was told, or those that the recording knows.
        steps: how many steps it holds.
        ends_early: whether it ends with a request that failed, so that its peaks are lower bounds.
    """

    name: str
    shapes: tuple[Mapping[str, int], ...]
    steps: int
    ends_early: bool


@frozen
class Plan:
    """What fits.

    Attributes:
        device: CUDA index.
        sources: what it rests on.
        parameters: the names of the parameters of the shape.
        predictions: one for each shape and setting that was asked for.
        largest: one for each card, setting and parameter.
        alignment: how the recordings fit together.
        notes: on all of it.
    """

    device: int
    sources: tuple[Source, ...]
    parameters: tuple[str, ...]
    predictions: tuple[Prediction, ...]
    largest: tuple[Largest, ...]
    alignment: Alignment
    notes: tuple[Note, ...] = field(default=())

    @property
    def at_least(self) -> bool:
        """Whether every recording ends with a request that failed, so that all peaks are lower bounds."""
        return all(one.ends_early for one in self.sources)
