"""cuDNN's benchmark tries a convolution, gives back all that is cached, and no frame says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomscope.allocator.program import Op
from oomscope.analysis.plan import plan_of
from oomscope.analysis.study import study_device
from oomscope.analysis.whatif.releases import emptied_by_libraries, release_runs
from oomscope.reading import load
from tests.whatif.subjects import subject_of

BENCHMARK = Path(__file__).parent / "fixtures" / "benchmark.pickle.xz"
PEAKS = {
    (32, 192): (1667184128, 1835008000),
    (96, 192): (4127495168, 4424990720),
    (160, 192): (6586968576, 7023362048),
    (64, 224): (3804112896, 4037017600),
    (64, 256): (4801808384, 5089787904),
    (128, 160): (3844779520, 4320133120),
}
"""torch's own peaks of the program, really run at other batches and sides: allocated and reserved."""


def test_a_request_that_asked_for_less_than_was_given_later_was_not_refused():
    snapshot = load(BENCHMARK)
    subject = subject_of(snapshot)
    assert subject.check.exact
    assert int((subject.extraction.program.op == Op.EMPTY_CACHE).sum()) > 10
    runs = release_runs(subject.device.trace, snapshot.stacks)
    assert not all(run.by_empty_cache for run in runs)
    assert all(run.by_empty_cache for run in emptied_by_libraries(subject.device, runs))


def test_peaks_at_other_shapes_follow_from_it():
    study = study_device(load(BENCHMARK), 0)
    wanted = [{"batch": batch, "side": side} for batch, side in PEAKS]
    answer = plan_of([("benchmark", study)], wanted=wanted)
    for row, (allocated, reserved) in zip(answer.predictions, PEAKS.values(), strict=True):
        assert row.peak_allocated.bytes == pytest.approx(allocated, rel=0.02)
        assert row.peak_reserved.bytes == pytest.approx(reserved, rel=0.05)
        assert row.peak_reserved.low <= reserved <= row.peak_reserved.high
