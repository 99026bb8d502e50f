"""The batch, where nobody told it."""

from __future__ import annotations

from itertools import count

import pytest

from oomscope.analysis.plan.inference import batch_of
from tests import builders
from tests.plan.programs import Clocked, forward, load, study

DATA = [builders.frame("batches", 5, "/workspace/train/data.py")]


def run(inputs: list[int], **top: object):
    """Three steps on inputs of these bytes."""
    device, names = Clocked(), count()

    def make(size: int, frames: list[builders.Dict]) -> int:
        name = next(names)
        device.malloc(name, size, frames=frames)
        return name

    make(1 << 20, load(1))
    for _ in range(3):
        given = [make(size, DATA) for size in inputs]
        made = make(1 << 20, forward("forward", 30, "block"))
        for name in (made, *given):
            device.free(name)
    return study(device.snapshot(**top))


@pytest.mark.parametrize(("batch", "pixel"), [(32, 12), (6, 6), (50, 4)])
def test_labels_beside_square_images_tell_it(batch: int, pixel: int):
    assert batch_of(run([batch * 224 * 224 * pixel, batch * 8])) == (batch, 3)


@pytest.mark.parametrize("inputs", [[4 * 512 * 8], [32 * 224 * 224 * 12], [32 * 1000 * 4, 32 * 8], [32 * 8, 32 * 8]])
def test_else_nothing_is_guessed(inputs: list[int]):
    assert batch_of(run(inputs))[1] == 0


def test_shapes_of_recorded_tensors_tell_it():
    tensors = [{"device": 0, "category": "activation", "shape": [16, side]} for side in (64, 128, 256)]
    assert batch_of(run([512], oomscope={"schema_version": 1, "tensors": tensors})) == (16, 3)
