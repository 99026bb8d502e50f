from __future__ import annotations

import pickle

import pytest

from oomscope.recording import backend, history, observer, saying, session
from oomscope.recording.census import walk


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Let a walk go on for as long as it needs: a test is about what it finds, and the machine may be busy."""
    monkeypatch.setitem(walk.take_census.__kwdefaults__, "seconds", 300.0)


@pytest.fixture
def place(monkeypatch, tmp_path):
    """Put a fake backend in place; everything a process keeps is as new before and after."""
    from tests.recording.fake import FakeBackend  # needs torch, which not every test of this folder does

    def put(**behaviour):
        fake = FakeBackend(**behaviour)
        backend.use(fake)
        return fake

    def forget():
        backend.use(None)
        history.forget()
        saying.forget()
        observer._active.clear()
        observer._attached_to = None
        session._waiting_for = None

    forget()
    monkeypatch.setenv("OOMSCOPE_VERDICT", "0")
    monkeypatch.setenv("OOMSCOPE_WALK_BUDGET", "0")  # a second each; what needs the walk asks for it
    monkeypatch.setenv("OOMSCOPE_OUTPUT_DIR", str(tmp_path))
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    yield put
    forget()


@pytest.fixture
def fake(place):
    return place()


@pytest.fixture
def dumps(tmp_path):
    """The dumps in the output folder, oldest first."""

    def read():
        paths = sorted(tmp_path.glob("*.pickle"), key=lambda path: path.stat().st_mtime_ns)
        return [pickle.loads(path.read_bytes()) for path in paths]

    return read
