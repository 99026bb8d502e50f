"""Models that one line makes again and again, with work in between."""

from __future__ import annotations

import pytest

from oomscope.analysis.passes.models_made_anew import made_anew
from tests.analysis.asking import diagnose
from tests.analysis.programs import MIB
from tests.passes.scripts import MAKING, Script


def older(copies: int, *, layers: int = 3, works: bool = True, sizes: tuple[float, ...] = (8, 8, 8, 8)) -> float:
    """MiB of parameters whose line has made others like them since."""
    script = Script()
    for copy in range(copies):
        for _ in range(layers):
            script.at(20, sizes[copy], *MAKING)
        if works:
            script.layer(141, 7, 2)
    script.layer(141, 7, 2)
    script.fails(141, 100)
    made = diagnose(script.snapshot())
    return made_anew(made.study, made.at) / MIB


@pytest.mark.parametrize(("copies", "expected"), [(1, 0), (2, 24), (4, 72)])
def test_all_but_the_newest_copy_may_be_done_with(copies: int, expected: float) -> None:
    assert older(copies) == expected


def test_the_layers_of_one_model_are_made_at_once() -> None:
    assert older(4, works=False) == 0


def test_models_of_other_sizes_are_others() -> None:
    assert older(3, sizes=(8, 9, 10)) == 0
