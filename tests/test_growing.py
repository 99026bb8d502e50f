"""A capture that is grown is one that the allocator could have written."""

from __future__ import annotations

import io
import lzma
import pickle

import numpy as np
import pytest

from oomscope.analysis.study import SnapshotStudy
from oomscope.reading import load
from tests.benchmarks.grow import grow, longest_return
from tests.reading.comparing import assert_same
from tests.reading.ways import plain, streamed
from tests.samples import bundled_path


@pytest.mark.parametrize("name", ["train_ok", "oom_leak_in_validation"])
def test_a_grown_trace_ends_where_it_did_with_the_same_peak(name: str) -> None:
    document = pickle.loads(lzma.decompress(bundled_path(name).read_bytes()))
    begin, end = longest_return(document["device_traces"][0])
    assert end - begin > 100
    grown = grow(document, 40_000)
    data = pickle.dumps(grown, 4)
    small, large = load(bundled_path(name)), load(io.BytesIO(data))
    assert large.entries >= 40_000
    before, after = (SnapshotStudy(snapshot).devices[0].history.curves for snapshot in (small, large))
    assert int(before.allocated.max()) == int(after.allocated.max())
    assert int(before.allocated[-1]) == int(after.allocated[-1])
    assert np.all(np.diff(large.devices[0].trace.time_us) >= -1_000_000)
    assert_same(streamed(data), plain(data))
