"""A checkpoint on the card beside what was copied from it, by the trace alone."""

from __future__ import annotations

import pytest

from oomscope.analysis.passes.loaded_copies import LEAST_TENSORS, MOSTLY, LoadedCopies, find_loaded_copies
from oomscope.analysis.study import study_device
from tests.analysis.programs import MIB, TORCH
from tests.builders import frame
from tests.passes.scripts import MAKING, Script

LOADING = (
    frame("restore_location", 1915, f"{TORCH}/serialization.py"),
    frame("load", 1570, f"{TORCH}/serialization.py"),
)
SAFETENSORS = (frame("load_file", 381, "/usr/lib/python3/dist-packages/safetensors/torch.py"),)
COPYING = (frame("load_state_dict", 2600, f"{TORCH}/nn/modules/module.py"),)
SIZES = (12, 3, 12, 5)


def found(model, loaded, *, by=LOADING, asks=()) -> LoadedCopies | None:
    script = Script()
    for size in model:
        script.at(5, size, *MAKING)
    for size in loaded:
        script.at(6, size, *by)
    script.layer(20, 7, 3)
    script.at(9, 100, *asks)
    study = study_device(script.snapshot(), 0)
    return find_loaded_copies(study, study.history.entries - 1)


@pytest.mark.parametrize("by", [LOADING, SAFETENSORS])
def test_what_comes_again_is_counted_and_the_line_that_loaded_it_told(by):
    left = found(SIZES, (*SIZES, 7), by=by)
    assert left is not None
    assert left.bytes == sum(SIZES) * MIB
    assert left.place is not None
    assert left.place.line == 6


def test_a_model_that_is_in_use_as_it_was_loaded_is_no_copy():
    assert found((), SIZES) is None
    assert found((40, 2, 9, 1), SIZES) is None


@pytest.mark.parametrize(("more", "is_told"), [(sum(SIZES) / MOSTLY - sum(SIZES), True), (40, False)])
def test_most_of_it_must_come_again(more, is_told):
    assert (found(SIZES, (*SIZES, more)) is not None) is is_told


def test_a_checkpoint_with_several_copies_of_the_model():
    left = found(SIZES, SIZES * 4)
    assert left is not None
    assert left.bytes == 4 * sum(SIZES) * MIB
    assert found((*SIZES, 30, 31), SIZES * 4) is None


def test_a_few_tensors_of_equal_size_may_be_chance():
    assert found(SIZES[: LEAST_TENSORS - 1], SIZES[: LEAST_TENSORS - 1]) is None
    assert found((8,) * LEAST_TENSORS, (8,) * LEAST_TENSORS) is None


@pytest.mark.parametrize("asks", [LOADING, COPYING])
def test_what_is_being_loaded_or_copied_from_is_in_use(asks):
    assert found(SIZES, SIZES, asks=asks) is None
