"""The batch that a recording ran at, where nobody told: from shapes that it knows, or from factors of its inputs."""

from __future__ import annotations

from collections import Counter
from math import isqrt

import numpy as np

from oomscope.analysis.labels.kinds import INPUT
from oomscope.analysis.labels.stack_roles import Role
from oomscope.analysis.study import DeviceStudy

LEAST_ALIKE, MOST_AGREE = 3, 0.5
"""Recorded tensors that must agree about the batch, in number and as a share of all."""
LABEL = 8
"""Bytes of a class label, which torch's losses take as int64."""
PIXELS = (12, 6, 4, 2)
"""Bytes of a pixel: three channels or one, in 32 or in 16 bits."""
SMALLEST_SIDE = 16


def batch_of(study: DeviceStudy) -> tuple[int, int]:
    """The batch, and how many tensors tell it; 0 tensors: it is not known."""
    told = _of_tensors(study)
    return told if told[1] else _of_images(study)


def _of_tensors(study: DeviceStudy) -> tuple[int, int]:
    """The first side that most recorded inputs and activations share."""
    first = [
        tensor.shape[0]
        for tensor in study.snapshot.recorded.tensors
        if tensor.device == study.index and tensor.category in ("input", "activation") and tensor.shape
    ]
    if not first:
        return 0, 0
    batch, count = Counter(first).most_common(1)[0]
    return (batch, count) if batch > 1 and count >= LEAST_ALIKE and count >= len(first) * MOST_AGREE else (0, 0)


def _of_images(study: DeviceStudy) -> tuple[int, int]:
    """The number of labels beside square images: of all factors of the inputs only the batch leaves a square."""
    lifetimes = study.history.lifetimes
    in_steps = lifetimes.born >= (study.steps.boundaries[0] if study.steps.boundaries else 0)
    images = np.unique(lifetimes.requested[in_steps & (study.categories == INPUT)])
    own = in_steps & (study.roles.role[lifetimes.stack] == Role.NEUTRAL)
    if not len(images):
        return 0, 0
    small = np.unique(lifetimes.requested[own & (lifetimes.requested < images[-1])]).tolist()
    found = [size for size in small if _are_labels(size, int(images[-1]))]
    if len(found) != 1:
        return 0, 0
    return found[0] // LABEL, int(np.count_nonzero(own & (lifetimes.requested == found[0])))


def _are_labels(size: int, images: int) -> bool:
    batch, rest = divmod(size, LABEL)
    return not rest and batch > 1 and any(_is_square(images, batch * pixel) for pixel in PIXELS)


def _is_square(size: int, divisor: int) -> bool:
    area, rest = divmod(size, divisor)
    return not rest and area >= SMALLEST_SIDE**2 and isqrt(area) ** 2 == area
