"""What a larger pass will need: each line by as much as it has grown itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oomscope.analysis.passes.larger_pass import FINE, LargerPass, larger_pass
from tests.analysis.asking import Diagnosis, diagnose
from tests.analysis.programs import MIB
from tests.passes.scripts import BACKWARD_CALL, Script


def larger(times: int, layers: int = 1, *, fails_before: bool = False) -> Diagnosis:
    """Passes of four layers: each makes 3 MiB that grow with a length and 2 MiB that grow with its square.

    The last one is `times` as long, and fails after some layers.
    """
    script = Script()
    with script.call(50, "train"):
        batch = script.at(31, 1)
        kept = [script.layer(32, line, mib) for _ in range(4) for line, mib in ((10, 3), (11, 2))]
        if fails_before:
            script.fails(33, 500)
        script.free(script.at(34, 8, *BACKWARD_CALL), batch, *kept)
        script.at(31, times)
        for _ in range(layers):
            script.layer(32, 10, 3 * times)
            script.layer(32, 11, 2 * times**2)
        script.fails(32, 3 * times)
    return diagnose(script.snapshot())


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_scores_grow_with_the_square_and_the_layers_around_them_do_not(layers: int) -> None:
    made = larger(3, layers)
    grown = 3 * 1 + 4 * (3 * 3 + 9 * 2)
    backward = 8 * grown / 21  # by as much as all that is known together
    found = larger_pass(made.study, made.at, 9.0)
    assert found is not None
    assert found.needs() == pytest.approx((grown + backward) * MIB, rel=0.001)


def test_without_a_pass_that_fitted_there_is_none() -> None:
    made = larger(3, fails_before=True)
    assert larger_pass(made.study, made.at, 9.0) is None
    script = Script()
    script.fails(3, 100)
    alone = diagnose(script.snapshot())
    assert larger_pass(alone.study, alone.at, 2.0) is None


PARTS = LargerPass(past=5 * MIB, size=np.array([3.0, 2.0]) * MIB, growth=np.array([3.0, 9.0]), ratio=3.0)
"""A batch three times as long: 3 MiB grow with the length, 2 MiB with its square."""


def test_the_share_that_fits_counts_what_grows_with_the_square_by_the_square() -> None:
    assert PARTS.needs() == 27 * MIB
    assert PARTS.needs(2 / 3) == pytest.approx((3 * 2 + 2 * 4) * MIB)
    assert PARTS.share_that_fits(14 * MIB) == pytest.approx(2 / 3, abs=FINE)
    assert PARTS.needs(PARTS.share_that_fits(20 * MIB) or 1) <= 20 * MIB


def test_there_is_no_share_where_all_of_it_fits_or_not_even_the_pass_before() -> None:
    assert PARTS.share_that_fits(27 * MIB) is None
    assert PARTS.share_that_fits(4 * MIB) is None


def test_of_a_pass_that_is_hardly_larger_what_it_needs_is_known_and_no_share() -> None:
    alike = replace(PARTS, ratio=1.0, growth=np.ones(2))
    assert alike.needs() == 5 * MIB
    assert alike.share_that_fits(4 * MIB) is None
    assert replace(PARTS, ratio=0.9).share_that_fits(20 * MIB) is None
