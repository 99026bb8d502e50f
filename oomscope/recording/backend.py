"""What is asked of torch, by device: the one place that imports it, and only when a recording starts.

Tests put their own `Backend` in place of torch's.
"""

from __future__ import annotations

import importlib

from oomscope.recording.cuda_backend import Backend, Observer
from oomscope.recording.other_backends import instead_of_cuda

__all__ = ["Backend", "Observer", "current", "use"]

_backend: Backend | None = None


def current() -> Backend | None:
    """The backend of this process; None where torch is not installed."""
    global _backend
    if _backend is None:
        try:
            torch = importlib.import_module("torch")
        except ImportError:
            return None
        _backend = instead_of_cuda(torch) or Backend(torch)
    return _backend


def use(backend: Backend | None) -> None:
    """Put another backend in place; None goes back to torch."""
    global _backend
    _backend = backend
