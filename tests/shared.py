"""The real snapshots beside the repository, for tests that need them."""

from __future__ import annotations

import json
import lzma
import tempfile
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pytest

from oomscope.model import Snapshot
from oomscope.reading import load

SHARED = Path(__file__).resolve().parents[2] / "shared" / "snapshots"

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"the real snapshots are not here ({SHARED})")


def captures() -> list[str]:
    """The names of our own captures, without the large one."""
    return sorted(
        name for path in SHARED.glob("*.pickle.xz") if (name := path.name[: -len(".pickle.xz")]) != "big_history"
    )


def public() -> list[str]:
    """The names of the files that other people made public."""
    return sorted(f"public/{path.name[: -len('.xz')]}" for path in SHARED.glob("public/*.xz"))


def recorded() -> list[str]:
    """The names of captures that oomscope itself recorded."""
    return sorted(f"recorded/{path.name[: -len('.pickle.xz')]}" for path in SHARED.glob("recorded/*.xz"))


def packed(name: str) -> Path:
    """The compressed file of `name`: one of `captures()`, `public()` or `recorded()`."""
    return SHARED / (f"{name}.xz" if name.startswith("public/") else f"{name}.pickle.xz")


@lru_cache(maxsize=2)
def raw(name: str) -> bytes:
    """The pickle of `name`."""
    return lzma.decompress(packed(name).read_bytes())


@lru_cache(maxsize=1)
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="oomscope-tests-")


@cache
def unpacked(name: str) -> Path:
    """A plain pickle of `name` on disk."""
    path = Path(_folder().name) / name.replace("/", "__")
    path.write_bytes(raw(name))
    return path


@cache
def shared_snapshot(name: str) -> Snapshot:
    """`name`, loaded once a process."""
    return load(unpacked(name))


@cache
def truth(name: str) -> dict[str, Any]:
    """What the process itself knew when `name` was taken; see the README beside the snapshots."""
    return json.loads((SHARED / f"{name}.truth.json").read_text())
