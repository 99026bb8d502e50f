"""Bare captures of torch, of which many tests know the figures, with their findings; and the bundled snapshots."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from oomscope.analysis import Findings, analyze
from oomscope.model import Snapshot
from oomscope.reading import load
from oomscope.resources import folder

_SUFFIX = ".pickle.xz"

_BARE = Path(__file__).parent / "bare_samples"

SAMPLES = sorted(path.name[: -len(_SUFFIX)] for path in _BARE.glob(f"*{_SUFFIX}"))
BUNDLED = sorted(path.name[: -len(_SUFFIX)] for path in folder("sample_snapshots").glob(f"*{_SUFFIX}"))


def sample_path(name: str) -> Path:
    """The file of the sample `name`."""
    return _BARE / f"{name}{_SUFFIX}"


def bundled_path(name: str) -> Path:
    """The file of `name`, one of the snapshots that come with oomscope."""
    return folder("sample_snapshots") / f"{name}{_SUFFIX}"


@cache
def sample(name: str) -> Snapshot:
    """The sample `name`, loaded."""
    return load(sample_path(name))


@cache
def sample_findings(name: str) -> Findings:
    """The findings about the sample `name`, without replays under other settings."""
    return analyze(sample(name), whatif=False)
