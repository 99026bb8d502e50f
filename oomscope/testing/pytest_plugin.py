"""The hooks that pytest loads in every session of an environment with oomscope: they cost nothing until asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from oomscope.testing import MARKER, SAVE

if TYPE_CHECKING:
    from oomscope.testing.gpu_memory import GpuMemory

_HELP = (
    f"{MARKER}(max_peak=None, max_reserved=None, max_fragmentation=None, max_growth=None, max_site=None, "
    "max_category=None, baseline=None, tolerance=None): record the test's GPU memory and fail it beyond the budget"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--save-gpu-memory-baselines``."""
    parser.getgroup("oomscope").addoption(
        SAVE, action="store_true", help="write the baselines of tests with the marker gpu_memory instead of checking"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, for ``--strict-markers``."""
    config.addinivalue_line("markers", _HELP)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test with the marker where there is nothing to measure, before its fixtures ask for a GPU."""
    if item.get_closest_marker(MARKER) is not None:
        from oomscope.testing.gpu_memory import skip_without_gpu

        skip_without_gpu()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Measure a test that has the marker, and fail it where it passed beyond its budget."""
    marker = item.get_closest_marker(MARKER)
    if marker is None:
        yield
        return
    from oomscope.testing.gpu_memory import checked

    with checked(item, marker) as verdict:
        outcome: Any = yield
        verdict.passed = outcome.excinfo is None
    if verdict.failure is not None:
        outcome.force_exception(verdict.failure)


@pytest.fixture
def gpu_memory(request: pytest.FixtureRequest) -> Iterator[GpuMemory]:
    """What the test allocates, to ask figures of: ``gpu_memory.peak``, ``gpu_memory.figures()``."""
    from oomscope.testing.gpu_memory import GpuMemory, skip_without_gpu

    skip_without_gpu()
    with GpuMemory.of(request.node) as memory:
        yield memory
