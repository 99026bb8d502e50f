"""Windows of images: how many tokens one has, and by how much an image is padded that they do not divide."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from oomscope.model import Snapshot
from oomscope.model.recorded_holders import RecordedTensor

TABLE, IMAGE_KERNEL = 2, 4
"""Sides of a table of relative places: one of differences, one of heads. And of the weight of a convolution."""
MOST_HEADS = 64
_WINDOW = "window"


def has_windows(snapshot: Snapshot) -> bool:
    """Whether pixels attend to one another within windows, by weights or a function's name: scores grow as they do."""
    return bool(windows(snapshot.recorded.tensors)) or any(_WINDOW in frame.name for frame in snapshot.stacks.frames)


def windows(tensors: Iterable[RecordedTensor]) -> set[int]:
    """How many tokens a window has, as tables of relative places tell: of w × w there are (2w − 1)² differences."""
    found = set()
    for tensor in tensors:
        if tensor.category == "parameter" and tensor.shape and len(tensor.shape) == TABLE:
            root = math.isqrt(max(tensor.shape))
            if root * root == max(tensor.shape) and root % 2 and min(tensor.shape) <= MOST_HEADS:
                found.add(((root + 1) // 2) ** 2)
    return found


def padding(tensors: Sequence[RecordedTensor], recorded: Iterable[int], side: int) -> float:
    """The share by which the tokens of an image of this side are more in windows than without them.

    Where windows divide every recorded side: what is padded there already has grown in proportion. Later stages have
    fewer tokens, of which they pad more, and little memory.
    """
    kernels = [one.shape for one in tensors if one.category == "parameter" and one.shape]
    patches = [shape[-1] for shape in kernels if len(shape) == IMAGE_KERNEL]
    if not patches:
        return 0.0
    patch, found = min(patches), 0.0
    for tokens in windows(tensors):
        width = math.isqrt(tokens) * patch
        if not any(one % width for one in recorded):
            found = max(found, (math.ceil(side / width) * width / side) ** 2 - 1)
    return found
