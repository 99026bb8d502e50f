from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items):
    here = [item for item in items if item.get_closest_marker("gpu")]
    if not here:
        return
    torch = pytest.importorskip("torch", reason="needs torch")
    if not torch.cuda.is_available():
        for item in here:
            item.add_marker(pytest.mark.skip(reason="there is no CUDA device"))
