"""What a larger pass will need: each line by as much as it has grown itself."""

from __future__ import annotations

import pytest

from oomscope.analysis.passes.larger_pass import needs_as_larger
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
    assert needs_as_larger(made.study, made.at, 9.0) == pytest.approx((grown + backward) * MIB, rel=0.001)


def test_without_a_pass_that_fitted_there_is_none() -> None:
    made = larger(3, fails_before=True)
    assert needs_as_larger(made.study, made.at, 9.0) is None
    script = Script()
    script.fails(3, 100)
    alone = diagnose(script.snapshot())
    assert needs_as_larger(alone.study, alone.at, 2.0) is None
