"""A rank that is being ended: it dumps in time, and ends as it would have."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest

import oomscope

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="blocks a thread as Linux does")

START = """
import asyncio, ctypes, os, signal, sys, threading, time
from oomscope.recording import observer, peers

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def dump():
    is_main = threading.current_thread() is threading.main_thread()
    say("dump in", "main" if is_main else "thread")

def in_c(seconds):
    # As in a collective: without the GIL, and not interrupted by a signal. It locks a mutex that it holds already.
    libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    libc.pthread_mutex_lock(mutex)
    libc.pthread_mutex_timedlock(mutex, (ctypes.c_long * 2)(int(time.time()) + seconds, 0))

def mine(number, frame):
    say("mine")
    sys.exit(5)
"""
WATCH = "stop = peers.watch(('SIGTERM', 'SIGUSR1'), dump, 20.0)\n"


def run(program: str, *sent: str, pause: float = 0.4) -> tuple[int, list[str], float]:
    """What `program` returns and says when it is sent signals once it is ready, and the seconds that took."""
    command = [sys.executable, "-u", "-c", START + dedent(program)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        said = [process.stdout.readline().strip()]
        assert said == ["ready"]
        start = time.monotonic()
        for name in sent:
            time.sleep(pause)
            process.send_signal(getattr(signal, name))
        try:
            output, _ = process.communicate(timeout=30)
        finally:
            process.kill()
        return process.returncode, output.splitlines(), time.monotonic() - start


def test_a_rank_stuck_in_cpp_dumps_and_ends_by_the_signal():
    code, said, took = run(WATCH + "say('ready'); in_c(60)", "SIGTERM")
    assert (code, said) == (-signal.SIGTERM, ["dump in thread"])
    assert took < 10


def test_a_rank_that_runs_python_dumps_where_it_stands():
    assert run(WATCH + "say('ready'); time.sleep(60)", "SIGTERM")[:2] == (-signal.SIGTERM, ["dump in main"])


def test_another_signal_that_was_asked_for_does_what_it_does():
    assert run(WATCH + "say('ready'); in_c(60)", "SIGUSR1")[:2] == (-signal.SIGUSR1, ["dump in thread"])


def test_a_handler_from_before_runs_after_the_dump():
    program = "signal.signal(signal.SIGTERM, mine)\n" + WATCH + "say('ready'); time.sleep(60)"
    assert run(program, "SIGTERM")[:2] == (5, ["dump in main", "mine"])


def test_a_handler_from_before_runs_once_a_stuck_main_thread_is_back():
    program = "signal.signal(signal.SIGTERM, mine)\n" + WATCH + "say('ready'); in_c(2)\ntime.sleep(60)"
    assert run(program, "SIGTERM")[:2] == (5, ["dump in thread", "mine"])


def test_a_handler_from_after_runs_and_the_dump_is_finished():
    program = (
        WATCH.replace("dump,", "lambda: (time.sleep(1), dump()),")
        + "signal.signal(signal.SIGTERM, mine)\nsay('ready')\ntry:\n    time.sleep(60)\nfinally:\n    stop()"
    )
    assert run(program, "SIGTERM")[:2] == (5, ["mine", "dump in thread"])


def test_a_program_that_goes_on_is_dumped_once():
    program = """
    count = []
    signal.signal(signal.SIGTERM, lambda *_: (say("mine"), count.append(1)))
    peers.watch(("SIGTERM",), dump, 20.0)
    say("ready")
    while len(count) < 2:
        time.sleep(0.1)
    sys.exit(3)
    """
    assert run(program, "SIGTERM", "SIGTERM")[:2] == (3, ["dump in main", "mine", "mine"])


@pytest.mark.parametrize("handler", [False, True])
def test_a_dump_that_is_underway_is_finished_first(handler):
    program = f"""
    if {handler}:
        signal.signal(signal.SIGTERM, mine)
    over = threading.Event()
    peers.watch(("SIGTERM",), lambda: over.wait(10), 20.0)
    with observer.undisturbed():
        say("ready")
        time.sleep(1.5)
        say("finished")
    over.set()
    time.sleep(60)
    """
    expected = (5, ["finished", "mine"]) if handler else (-signal.SIGTERM, ["finished"])
    assert run(program, "SIGTERM")[:2] == expected


def test_a_second_signal_does_not_cut_the_dump_short():
    program = WATCH.replace("dump,", "lambda: (time.sleep(1.5), dump()),") + "say('ready'); in_c(60)"
    code, said, _ = run(program, "SIGTERM", "SIGTERM")
    assert (code, said) == (-signal.SIGTERM, ["dump in thread"])


def test_a_dump_that_hangs_does_not_keep_the_rank_alive():
    program = "peers.watch(('SIGTERM',), lambda: time.sleep(60), 1.0)\nsay('ready'); in_c(60)"
    code, said, took = run(program, "SIGTERM")
    assert (code, said) == (-signal.SIGTERM, [])
    assert took < 10


def test_a_signal_to_a_forked_child_is_none_to_its_parent():
    program = (
        WATCH
        + """
child = os.fork()
if not child:
    time.sleep(60)
time.sleep(0.5)
os.kill(child, signal.SIGTERM)
say("ready")
say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
time.sleep(1)
"""
    )
    assert run(program)[:2] == (0, [str(-signal.SIGTERM)])


def test_asyncio_keeps_its_descriptor():
    """A loop that handles another signal hears of it, and SIGTERM still makes a dump."""
    program = """
    async def main():
        heard = asyncio.Event()
        loop = asyncio.get_running_loop()
        if sys.argv:
            loop.add_signal_handler(signal.SIGUSR1, heard.set)
        peers.watch(("SIGTERM",), dump, 20.0)
        say("ready")
        await heard.wait()
        say("heard")
        await asyncio.sleep(60)
    asyncio.run(main())
    """
    assert run(program, "SIGUSR1", "SIGTERM")[:2] == (-signal.SIGTERM, ["heard", "dump in main"])
    after = program.replace("        peers.watch", "        pass #").replace(
        "    async def main():", "    peers.watch(('SIGTERM',), dump, 20.0)\n    async def main():"
    )
    assert run(after, "SIGUSR1", "SIGTERM")[:2] == (-signal.SIGTERM, ["heard", "dump in main"])


def test_at_the_end_everything_is_as_before():
    program = """
    before = signal.getsignal(signal.SIGTERM)
    stop = peers.watch(("SIGTERM",), dump, 20.0)
    stop()
    assert signal.getsignal(signal.SIGTERM) == before == signal.SIG_DFL
    assert signal.set_wakeup_fd(-1) == -1
    time.sleep(0.3)
    assert threading.active_count() == 1
    say("ready")
    """
    assert run(program)[0] == 0


def test_an_ignored_signal_stays_ignored():
    program = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WATCH + "say('ready'); time.sleep(1.5); sys.exit(4)"
    assert run(program, "SIGTERM")[:2] == (4, [])


GLOO = "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.7]:41283"


@pytest.mark.torch
def test_a_collective_that_fails_makes_the_dump_and_the_signal_behind_it_no_other(fake, dumps):
    """As gloo on a card did it: the exception first, then the launcher's signal."""
    with oomscope.record(on=("oom", "peers")) as outer:
        with pytest.raises(RuntimeError, match="Connection closed"), oomscope.record(on=("oom", "peers")):
            raise RuntimeError(GLOO)
        outer._last.dump_for_peers()
    assert [(dump["oomscope"]["reason"], dump["oomscope"]["captured_at"]) for dump in dumps()] == [("peers", "except")]
    with oomscope.record(on=("oom", "peers")) as later:
        later._last.dump_for_peers()
    assert len(dumps()) == 2


@pytest.mark.torch
def test_other_errors_are_none_of_a_peers(fake, dumps):
    with pytest.raises(RuntimeError), oomscope.record(on=("oom", "peers")):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
    assert dumps() == []


JOB = """
import os, sys, time
import torch.distributed as dist
import oomscope, torch
from oomscope.recording import backend
from tests.recording import fake as made_up
fake = made_up.FakeBackend()
backend.use(fake)
rank = int(os.environ["RANK"])

def train():
    dist.init_process_group("gloo")
    dist.barrier()
    if rank == 0:
        dist.distributed_c10d._get_default_store().wait(["ready"])
        time.sleep(0.5)
        fake.run_out()
    if rank == 1:
        dist.all_reduce(torch.ones(4))  # gloo tells it that rank 0 is gone
    dist.distributed_c10d._get_default_store().set("ready", "1")
    dist.distributed_c10d._get_default_store().get("never")  # blocked in C++

with oomscope.record():
    train()
"""


@pytest.mark.torch
def test_torchrun_ends_ranks_that_wait_and_each_leaves_a_dump(tmp_path):
    """Real processes, a real launcher, a real collective; only the memory is made up."""
    pytest.importorskip("torch", reason="needs torch")
    (tmp_path / "job.py").write_text(JOB)
    plain, _ = launch(tmp_path, "oom")
    reported, took = launch(tmp_path, "oom,peers")
    assert took < 60
    assert reported == plain, "the launcher's report changed"
    keys = {}
    for path in (tmp_path / "oom,peers").glob("*.pickle"):
        key = pickle.loads(path.read_bytes())["oomscope"]
        keys[key["process"]["rank"]] = key
    assert {rank: key["reason"] for rank, key in keys.items()} == {0: "oom", 1: "peers", 2: "peers"}
    assert keys[2]["captured_at"] == "call"
    assert keys[2]["stacks"]["failing"] == []
    assert not any(row["failing"] for row in keys[2]["stacks"]["threads"])
    stuck = [(frame["name"], Path(frame["filename"]).name) for frame in keys[2]["stacks"]["main"]]
    assert ("train", "job.py") in stuck


def launch(folder: Path, on: str) -> tuple[list[tuple[str, str]], float]:
    """How the launcher says that each rank ended, and the seconds it took."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OOMSCOPE_ON": on,
        "OOMSCOPE_OUTPUT_DIR": str(folder / on),
        "OOMSCOPE_VERDICT": "0",
        "OOMSCOPE_WALK_BUDGET": "0",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=3", "job.py"]
    start = time.monotonic()
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 1, done.stderr
    ended = re.findall(r"rank +: (\d+) \(local_rank: \d+\)\s+exitcode +: (-?\d+)", done.stderr)
    assert ended, done.stderr
    return sorted(ended), time.monotonic() - start
