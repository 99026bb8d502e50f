"""Who calls a line, by the stacks of the trace."""

from __future__ import annotations

import pytest

from oomscope.analysis.passes.callers import called_at
from oomscope.analysis.records import Location
from oomscope.analysis.study import study_device
from tests.passes.scripts import Script

UPDATE = Location("/workspace/train/train.py", 30, "update")


@pytest.mark.parametrize(("lines", "expected"), [((94,), 94), ((94, 94), 94), ((94, 95), None), ((), None)])
def test_a_line_that_one_other_calls(lines: tuple[int, ...], expected: int | None) -> None:
    script = Script()
    script.at(3)
    for line in lines:
        with script.call(line, "update"):
            script.at(30)
    script.fails(4, 50)
    study = study_device(script.snapshot(), 0)
    found = called_at(study, [UPDATE])
    assert (None if found is None else found.line) == expected
    assert called_at(study, [UPDATE, UPDATE]) is None
    assert called_at(study, []) is None
