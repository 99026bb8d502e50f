"""Recording where everything else goes wrong: the job goes on as it would have, and no half a file is left."""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import oomscope

torch = pytest.importorskip("torch", reason="the backend needs torch")
pytestmark = pytest.mark.torch

from oomscope.recording import observer, writing  # noqa: E402
from tests.recording.fake import FakeBackend  # noqa: E402

ROOT = Path(__file__).parents[2]
MANY = int(os.environ.get("OOMSCOPE_OOMS", "20000"))
"""OOMs that one run catches; by hand a million."""

needs_posix = pytest.mark.skipif(os.name != "posix", reason="limits, forks and these signals are POSIX's")


def large(backend: FakeBackend, entries: int = 200_000) -> None:
    """Have a snapshot of some 10 MB."""
    trace = [{"action": "alloc", "addr": row << 9, "size": 512, "stream": 0, "frames": []} for row in range(entries)]
    small = backend.snapshot
    backend.snapshot = lambda: {**small(), "device_traces": [trace, []]}


def run_out(fake: FakeBackend) -> None:
    with pytest.raises(torch.OutOfMemoryError):
        fake.run_out()


@contextlib.contextmanager
def files_of_at_most(size: int):
    """Let no file grow beyond so many bytes, as a full disk does: writes fail half-way. So would pytest's own log."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@needs_posix
def test_a_disk_that_is_full_half_way_leaves_a_smaller_dump_and_no_other_file(fake, dumps, tmp_path):
    large(fake)
    with files_of_at_most(1 << 20), oomscope.record():
        run_out(fake)
    (made,) = dumps()
    assert made["device_traces"] == []
    assert len(made["segments"]) == 2
    assert os.strerror(errno.EFBIG) in made["oomscope"]["failures"][0]
    assert len(list(tmp_path.iterdir())) == 1


@needs_posix
def test_a_disk_that_is_full_from_the_first_byte_leaves_nothing(fake, tmp_path, capfd):
    with oomscope.record(), files_of_at_most(0):
        run_out(fake)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_too_slow_costs_its_budget_and_no_more(fake, dumps, tmp_path, monkeypatch, capfd):
    large(fake)
    real = writing._Timed.write

    def slow(self, data):
        time.sleep(0.02)
        return real(self, data)

    monkeypatch.setattr(writing._Timed, "write", slow)
    started = time.monotonic()
    with oomscope.record(write_budget=0.2):
        run_out(fake)
    assert time.monotonic() - started < 5
    (made,) = dumps()
    assert made["device_traces"] == []
    assert "not written within 0.2 s" in made["oomscope"]["failures"][0]
    assert "not written within 0.2 s" in capfd.readouterr().err
    assert len(list(tmp_path.iterdir())) == 1


def test_a_compressed_dump_has_the_same_budget(fake, tmp_path):
    large(fake)
    with oomscope.record(write_budget=0, compress=True):
        run_out(fake)
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]


def test_ooms_that_are_all_caught_cost_next_to_nothing(fake, tmp_path):
    with oomscope.record(max_dumps=2) as recorder:
        run_out(fake)
        dumped = len(list(tmp_path.iterdir()))
        started = time.process_time()
        for _ in range(MANY):
            fake.notify()
        took = time.process_time() - started
        assert len(list(tmp_path.iterdir())) - dumped <= took / 5 + 1  # one in five seconds at most
    assert took / MANY < 100e-6
    assert len(recorder.files) <= 2
    assert len(list(tmp_path.iterdir())) <= 2
    assert fake.calls.count("start all python alloc 200000") == 1


def test_without_a_pause_between_dumps_only_the_first_and_the_last_stay(fake, dumps, tmp_path):
    with oomscope.record(min_interval=0, max_dumps=3):
        for _ in range(40):
            run_out(fake)
    assert [made["oomscope"]["recording"]["ooms"] for made in dumps()] == [1, 2, 40]
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("method", ["snapshot", "segments", "memory_stats", "memory_info", "allocator", "levels"])
@pytest.mark.parametrize(
    "problem", [MemoryError(), RecursionError(), RuntimeError("driver")], ids=lambda one: type(one).__name__
)
def test_whatever_fails_inside_the_handler_the_oom_stays_what_it_was(fake, tmp_path, monkeypatch, method, problem):
    def fail(*_):
        raise problem("in the handler")

    monkeypatch.setattr(fake, method, fail)
    with oomscope.record():
        run_out(fake)
    assert all(pickle.loads(path.read_bytes()) for path in tmp_path.glob("*.pickle"))
    assert not list(tmp_path.glob(".*"))


def test_ooms_inside_the_handler_however_deep_are_left_alone(fake, dumps):
    small = fake.snapshot

    def again():
        fake.notify()
        with pytest.raises(torch.OutOfMemoryError):
            fake.run_out()
        return small()

    fake.snapshot = again
    with oomscope.record(min_interval=0):
        run_out(fake)
    assert len(dumps()) == 1


@needs_posix
def test_a_signal_during_a_dump_is_served_after_it(fake, dumps):
    small = fake.snapshot

    def interrupted():
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(0.01)
        return small()

    fake.snapshot = interrupted
    with oomscope.record(signal="SIGUSR1"):
        run_out(fake)
        fake.snapshot = small
        # The exit is the safe point.
    assert sorted(made["oomscope"]["reason"] for made in dumps()) == ["oom", "signal"]


@needs_posix
def test_control_c_during_a_dump_ends_the_program_after_it(fake, tmp_path):
    small = fake.snapshot

    def interrupted():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        return small()

    fake.snapshot = interrupted

    @oomscope.record
    def job():
        run_out(fake)
        time.sleep(5)

    # What is started in the background of a shell ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            job()
    finally:
        signal.signal(signal.SIGINT, before)
    assert not list(tmp_path.glob(".*"))


@needs_posix
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_dumps_nothing_and_ends_nothing(fake, dumps):
    with oomscope.record(on=("oom", "exit")):
        child = os.fork()
        if not child:
            try:
                fake.notify()
            finally:
                os._exit(0 if observer.active() == [] else 3)
        assert os.waitpid(child, 0)[1] == 0
        assert dumps() == []
        run_out(fake)
    assert {made["oomscope"]["reason"] for made in dumps()} == {"oom", "exit"}
    assert fake.calls.count("stop") == 1


@needs_posix
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_another_thread_dumps_does_not_hang_the_child(fake, dumps):
    small, is_dumping, may_go_on = fake.snapshot, threading.Event(), threading.Event()

    def slow():
        is_dumping.set()
        may_go_on.wait(10)
        return small()

    fake.snapshot = slow
    with oomscope.record(min_interval=0):
        thread = threading.Thread(target=lambda: run_out(fake))
        thread.start()
        assert is_dumping.wait(10)
        child = os.fork()
        if not child:
            fake.snapshot = small
            with oomscope.record(min_interval=0):
                fake.notify()
            os._exit(0)
        deadline = time.monotonic() + 10
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        if ended[0] == 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        may_go_on.set()
        thread.join()
    assert ended == (child, 0)
    assert len(dumps()) == 2


PROGRAM = """
import atexit, os, sys, threading, time
import oomscope
from oomscope.recording import backend
from tests.recording.fake import FakeBackend
fake = FakeBackend()
backend.use(fake)
recording = oomscope.record()
recording.__enter__()
{body}
"""
BODIES = {
    "an exit handler": "atexit.register(fake.notify)",
    "a thread that outlives the main one": (
        "threading.Thread(target=lambda: (time.sleep(0.3), fake.notify())).start()"
    ),
    "a daemon": "threading.Thread(target=lambda: [fake.notify() for _ in iter(int, 1)], daemon=True).start()",
    "an object that is dropped at the very end": (
        "class Late:\n    def __del__(self, notify=fake.notify): notify()\nsys.late = Late()"
    ),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_an_oom_while_the_interpreter_shuts_down_changes_nothing(tmp_path, body):
    environment = {**os.environ, "OOMSCOPE_OUTPUT_DIR": str(tmp_path), "OOMSCOPE_VERDICT": "0"}
    environment |= {"OOMSCOPE_WALK_BUDGET": "0", "PYTHONPATH": str(ROOT)}
    program = PROGRAM.format(body=body + "\nsys.exit(7)")
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 7, done.stderr
    assert "Traceback" not in done.stderr
    for path in tmp_path.glob("*.pickle"):
        assert pickle.loads(path.read_bytes())["oomscope"]["reason"] == "oom"
