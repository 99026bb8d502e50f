"""Many files on several engines: the same result by all of them, whatever happens to a worker on the way."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from oomscope.commands.common.engines import LostWorkerError, results, run_all
from oomscope.commands.common.errors import DONE, FAILED, run
from oomscope.commands.common.many import digest_file, read_all
from tests.commands.test_commands import one_line_error
from tests.samples import sample_path

ROOT = Path(__file__).resolve().parents[2]
COUNT = 12


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(COUNT):
        shutil.copy(sample_path(("train_ok", "oom_fragmentation")[rank % 2]), folder / f"oom_rank{rank}.pickle.xz")
    return folder


def end_at_three(path: str) -> str:
    if path == "3":
        os.kill(os.getpid(), signal.SIGKILL)
    return f"read {path}"


def test_a_file_whose_process_is_killed_keeps_none_of_the_others():
    found = dict(run_all(end_at_three, list("01234567"), processes=2))
    assert isinstance(found.pop(3), LostWorkerError)
    assert found == {at: f"read {at}" for at in range(8) if at != 3}


@pytest.mark.thorough
def test_any_executor_gives_what_one_process_gives(job: Path):
    files = sorted(map(str, job.iterdir()))
    with ThreadPoolExecutor(4) as threads:
        by_threads = dict(results(threads, digest_file, files))
    alone = dict(run_all(digest_file, files, processes=1))
    assert [by_threads[at] for at in range(COUNT)] == [alone[at] for at in range(COUNT)]


def test_a_lost_file_is_among_the_bad_ones(job: Path, monkeypatch: pytest.MonkeyPatch):
    lost = str(job / "oom_rank3.pickle.xz")

    def run_some(work, files, **_: object):
        for at, file in enumerate(files):
            yield at, LostWorkerError("ended") if file == lost else work(file)

    monkeypatch.setattr("oomscope.commands.common.many.run_all", run_some)
    digests, bad = read_all([str(job)])
    assert len(digests) == COUNT - 1
    assert [one.file for one in bad] == [lost]


@pytest.mark.parametrize("command", ["ranks", "triage", "digest"])
def test_without_a_scheduler_it_says_so(command: str, job: Path, capsys: pytest.CaptureFixture[str], monkeypatch):
    pytest.importorskip("distributed", reason="needs Dask")
    monkeypatch.setattr("oomscope.commands.common.engines._PATIENCE", "1s")
    assert run([command, str(job), "--scheduler", "tcp://127.0.0.1:9"]) == FAILED
    assert "no Dask scheduler answers" in one_line_error(capsys)


def test_without_dask_it_says_what_to_install(job: Path, capsys: pytest.CaptureFixture[str], monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert run(["ranks", str(job), "--scheduler", "tcp://127.0.0.1:9"]) == FAILED
    assert "oomscope[dask]" in one_line_error(capsys)


class Cluster:
    """A real scheduler and real workers, each a process of its own; none is started again when it dies."""

    def __init__(self, folder: Path) -> None:
        self._environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        self._file = folder / "scheduler.json"
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", self._file)
        wait_for(self._file.exists)

    @property
    def address(self) -> str:
        import json

        return str(json.loads(self._file.read_text())["address"])

    def _start(self, *words: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *map(str, words)]
        with (self._folder / f"{len(self._started)}.log").open("wb") as log:
            self._started.append(subprocess.Popen(command, env=self._environment, stdout=log, stderr=log))
        return self._started[-1]

    def add_worker(self, threads: int = 1) -> subprocess.Popen[bytes]:
        return self._start("worker", self.address, "--no-nanny", "--nthreads", threads, "--no-dashboard")

    def end(self) -> None:
        for process in self._started:
            process.kill()
            process.wait()


def wait_for(holds, seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    pytest.importorskip("distributed", reason="needs Dask")
    made = Cluster(tmp_path)
    yield made
    made.end()


def test_dask_gives_the_same_though_a_worker_is_killed_half_way(job: Path, cluster: Cluster, capsys):
    import distributed

    (job / "oom_rank99.pickle").write_text("no snapshot")
    assert run(["ranks", str(job), "-f", "json", "--processes", "1"]) == DONE
    expected = capsys.readouterr()
    assert run(["ranks", str(job), "--scheduler", cluster.address]) == FAILED
    assert "no workers" in one_line_error(capsys)
    victim, _ = cluster.add_worker(), cluster.add_worker(threads=2)
    with distributed.Client(cluster.address, set_as_default=False) as client, ThreadPoolExecutor(1) as threads:
        client.wait_for_workers(2, timeout=90)
        address = next(one for one, pid in client.run(os.getpid).items() if pid == victim.pid)
        done = threads.submit(run, ["ranks", str(job), "-f", "json", "--scheduler", cluster.address])

        def is_half_way() -> bool:
            """The victim has read some file, and has others to read."""
            state = client.run_on_scheduler(told, address=address)
            return bool(state["in memory"] and state["to do"])

        wait_for(is_half_way)
        victim.kill()
        assert done.result(timeout=120) == DONE
        assert len(client.scheduler_info(n_workers=-1)["workers"]) == 1
    assert capsys.readouterr() == expected


def told(address: str, dask_scheduler=None) -> dict[str, int]:
    state = dask_scheduler.workers[address]
    return {"in memory": len(state.has_what), "to do": len(state.processing)}
