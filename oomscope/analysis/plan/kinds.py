"""What the name of a parameter says of it: a batch, a length, the side of an image, or nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

BATCH, LENGTH, SIDE, UNKNOWN = "batch", "length", "side", "unknown"
_NAMES = (
    (BATCH, re.compile(r"batch|^bs$|^b$|^n$|micro|samples?$|images$|sequences$|requests$", re.IGNORECASE)),
    (SIDE, re.compile(r"side|image|img|resolution|^res$|crop|^size$|pixels", re.IGNORECASE)),
    (LENGTH, re.compile(r"seq|len|tokens|context|^ctx$|^[stlhw]$|steps$|frames|time|height|width|points|nodes",
                        re.IGNORECASE)),
)  # fmt: skip
_BATCH_ITSELF = re.compile(r"batch|^bs$|^b$|micro", re.IGNORECASE)


def kind_of(parameter: str, beside: Iterable[str] = ()) -> str:
    """What the name of a parameter says of it: `BATCH`, `LENGTH`, `SIDE` or `UNKNOWN`.

    Args:
        parameter: its name.
        beside: the names of all parameters. Samples beside a batch are those of a waveform or of a ray, a length.
    """
    kind = next((kind for kind, pattern in _NAMES if pattern.search(parameter)), UNKNOWN)
    if kind == BATCH and not _BATCH_ITSELF.search(parameter) and any(map(_BATCH_ITSELF.search, beside)):
        return LENGTH
    return kind


def batch_among(shapes: Iterable[Mapping[str, int]]) -> str | None:
    """The name of the parameter that is the batch; None where there is none."""
    return next((name for shape in shapes for name in shape if kind_of(name, shape) == BATCH), None)


def guessable(parameters: Sequence[str], varied: Mapping[str, bool]) -> list[str]:
    """The parameters that the recordings do not vary and whose names do not say how sizes depend on them."""
    return [name for name in parameters if not varied[name] and kind_of(name, parameters) == UNKNOWN]
