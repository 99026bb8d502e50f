"""oomscope explains CUDA out-of-memory errors from PyTorch's memory snapshots.

The names below are loaded when they are first used, so that ``import oomscope`` costs nothing in a training script
and needs neither torch nor matplotlib.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from oomscope.notebooks import show_with
from oomscope.version import __version__

if TYPE_CHECKING:
    from oomscope.analysis import Findings, analyze
    from oomscope.analysis.ledger import remedies
    from oomscope.analysis.plan import plan
    from oomscope.errors import OomscopeError
    from oomscope.model import Snapshot
    from oomscope.reading import load
    from oomscope.recording import record
    from oomscope.rendering import write_report

__all__ = [
    "Findings", "OomscopeError", "Snapshot", "__version__", "analyze", "load", "plan", "record", "remedies",
    "write_report",
]  # fmt: skip

_HOME = {
    "Findings": "oomscope.analysis",
    "OomscopeError": "oomscope.errors",
    "Snapshot": "oomscope.model",
    "analyze": "oomscope.analysis",
    "load": "oomscope.reading",
    "plan": "oomscope.analysis.plan",
    "record": "oomscope.recording",
    "remedies": "oomscope.analysis.ledger",
    "write_report": "oomscope.rendering",
}


show_with("Findings", lambda findings: str(import_module("oomscope.rendering.html.notebook").findings_html(findings)))
show_with("Snapshot", lambda snapshot: str(import_module("oomscope.rendering.html.notebook").snapshot_html(snapshot)))


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'oomscope' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
