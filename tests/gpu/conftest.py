from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items):
    """Skip, item by item, what needs a CUDA device: a hook that raises a skip ends the whole session."""
    here = [item for item in items if item.get_closest_marker("gpu")]
    reason = _why_not() if here else None
    if reason:
        for item in here:
            item.add_marker(pytest.mark.skip(reason=reason))


def _why_not() -> str | None:
    try:
        import torch
    except ImportError:
        return "torch is not installed"
    return None if torch.cuda.is_available() else "there is no CUDA device"
