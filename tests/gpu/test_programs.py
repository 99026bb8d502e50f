"""Real OOMs on a real GPU: the job ends as it would have, and the dump names who held the memory."""

from __future__ import annotations

import json
import os
import pickle
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
pytestmark = pytest.mark.gpu

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = Path(__file__).parent / "examples"
SEARCH = os.pathsep.join([str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]).rstrip(os.pathsep)
CAP_BYTES = 0.03 * 150_109_880_320  # what the programs were written for: 4.2 GiB of an H200


def cap():
    """The allocator's setting that gives the programs the bytes that they were written for, whatever card this is."""
    return f"per_process_memory_fraction:{CAP_BYTES / torch.cuda.get_device_properties(0).total_memory:.6f}"


def start(arguments, cwd, *, conf=None, before=None, **environment):
    conf = cap() if conf is None else conf
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
    variables = {name: value for name, value in os.environ.items() if name not in names}
    variables |= {"PYTHONPATH": SEARCH, "PYTORCH_CUDA_ALLOC_CONF": conf, "OOMSCOPE_VERDICT": "0", **environment}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=variables,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        preexec_fn=before,
    )


def run_program(name, tmp_path, **more):
    done = start(["-m", "tests.gpu.programs", name, str(tmp_path)], ROOT, **more)
    dumps = sorted(tmp_path.glob("*.pickle"), key=lambda path: path.stat().st_mtime_ns)
    return done, [pickle.loads(path.read_bytes()) for path in dumps]


def allocated_bytes(dump):
    return dump["oomscope"]["devices"][0]["memory_stats"]["allocated_bytes.all.current"]


def explained(dump):
    """The share of live bytes whose block has a name or a holder."""
    rows = dump["oomscope"]["tensors"]
    return sum(row["bytes"] for row in rows if row["name"] or row["holders"]) / allocated_bytes(dump)


def top(dump):
    return dump["oomscope"]["holders"][0]["holder"]


@pytest.mark.parametrize(
    ("name", "holder", "least"),
    [
        ("forward", None, 0.95),
        ("backward", "model", 0.0),
        ("optimizer_step", None, 0.95),
        ("train_then_run_out", None, 0.95),
        ("leak_total_loss", "leak_total_loss: total_loss", 0.95),
        ("leak_hook", "leak_hook: model.blocks[2].captured", 0.95),
        ("leak_cycle", "reference cycle: Sample.", 0.95),
        ("retry", "the OutOfMemoryError being handled", 0.95),
    ],
)
def test_the_exception_is_torchs_and_the_holder_the_true_one(tmp_path, name, holder, least):
    done, dumps = run_program(name, tmp_path)
    assert done.returncode == 1
    assert re.search(r"^torch\.OutOfMemoryError: CUDA out of memory\. Tried to allocate", done.stderr, re.MULTILINE)
    key = dumps[-1]["oomscope"]
    assert (key["reason"], key["captured_at"]) == ("oom", "observer")
    assert key["exception"]["message"].strip().startswith("CUDA out of memory. Tried to allocate")
    assert key["walk"]["complete"], key["walk"]
    assert "failures" not in key
    assert dumps[-1]["device_traces"][0][-1]["action"] == "oom"
    assert key["devices"][0]["cap"] < key["devices"][0]["total"]
    print(name, f"explained {explained(dumps[-1]):.3f}", key["walk"], [row["holder"] for row in key["holders"][:4]])
    assert explained(dumps[-1]) >= least
    if holder is not None:
        assert top(dumps[-1]).startswith(holder)


def test_the_stack_of_backward_is_the_main_threads(tmp_path):
    _, dumps = run_program("backward", tmp_path)
    stacks = dumps[-1]["oomscope"]["stacks"]
    assert any(frame["name"] == "backward" for frame in stacks["main"])


@pytest.mark.parametrize("name", ["optimizer_step", "train_then_run_out"])
def test_parameters_gradients_and_state_have_their_right_names(tmp_path, name):
    _, dumps = run_program(name, tmp_path)
    key = dumps[-1]["oomscope"]
    names = key["metadata"]["names"]
    rows = {str(row["address"]): row for row in key["tensors"]}
    total = sum(rows[address]["bytes"] for address in names)
    right = [address for address, row in names.items() if [rows[address]["name"], rows[address]["category"]] == row]
    print(name, len(names), "tensors named")
    assert len(names) > 300
    assert sum(rows[address]["bytes"] for address in right) >= 0.99 * total


def test_an_oom_in_a_dataloader_worker_is_said_to_be_elsewhere(tmp_path):
    done, dumps = run_program("worker", tmp_path)
    assert done.returncode == 1
    assert "the OOM was in DataLoader worker process 0, another process" in done.stderr
    assert "Caught OutOfMemoryError in DataLoader worker process 0" in done.stderr
    assert dumps == []


def test_torchs_own_viewers_open_the_dump(tmp_path):
    run_program("leak_hook", tmp_path)
    (dump,) = tmp_path.glob("*.pickle")
    for command in ("trace_plot", "segment_plot"):
        done = start(["-m", "torch.cuda._memory_viz", command, str(dump), "-o", str(tmp_path / "plot.html")], tmp_path)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "plot.html").stat().st_size > dump.stat().st_size
    for command in ("stats", "trace"):
        done = start(["-m", "torch.cuda._memory_viz", command, str(dump)], tmp_path)
        assert done.returncode == 0, done.stderr
    assert done.stdout


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


def test_a_disk_that_is_full(tmp_path):
    done, dumps = run_program("leak_hook", tmp_path, before=limit_files)
    assert done.returncode == 1
    assert "torch.OutOfMemoryError: CUDA out of memory" in done.stderr
    assert "the dump is not whole (File too large" in done.stderr
    assert dumps or list(tmp_path.glob("oom*.json")) or "nothing could be written" in done.stderr
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_file_system_that_is_full(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(folder)], check=False)
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        done, dumps = run_program("leak_hook", folder)
        assert done.returncode == 1
        assert "torch.OutOfMemoryError: CUDA out of memory" in done.stderr
        assert "No space left on device" in done.stderr
        assert "held by leak_hook: model.blocks[2].captured" in done.stderr
        print(done.stderr[-600:], list(folder.iterdir()), len(dumps))
        assert not list(folder.glob(".*.tmp"))
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_folder_that_cannot_be_written(tmp_path):
    done = start(["-m", "tests.gpu.programs", "leak_hook", "/proc/oomscope"], ROOT)
    assert done.returncode == 1
    assert "dumps cannot be written: /proc/oomscope" in done.stderr
    assert "torch.OutOfMemoryError: CUDA out of memory" in done.stderr
    assert "held by leak_hook: model.blocks[2].captured" in done.stderr


def test_another_allocator_is_said_and_the_job_runs(tmp_path):
    (tmp_path / "job.py").write_text(
        "import torch, oomscope\n"
        "with oomscope.record(on=('oom', 'exit')):\n    print(torch.ones(3, device='cuda').sum().item())\n"
    )
    done = start(["job.py"], tmp_path, conf="backend:cudaMallocAsync")
    assert (done.returncode, done.stdout) == (0, "3.0\n")
    assert done.stderr.count("the cudaMallocAsync allocator keeps no history") == 1


def test_no_device_is_said_and_the_job_runs(tmp_path):
    (tmp_path / "job.py").write_text("import oomscope\nwith oomscope.record():\n    print('ran')\n")
    done = start(["job.py"], tmp_path, CUDA_VISIBLE_DEVICES="")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert (
        done.stderr == "oomscope: nothing is recorded: no CUDA device is visible, so there is no GPU memory to record\n"
    )


QUIET = """
import gc, torch, oomscope
from oomscope import recording

with oomscope.record() as recorder:
    assert not torch.cuda.is_initialized(), "recording initialised CUDA"
    torch.zeros(1, device="cuda")
    assert torch._C._cuda_isHistoryEnabled()
    gc.collect()
    gc.disable()
    before = torch.cuda.memory_allocated()

    def attempt():
        kept = [torch.zeros(1 << 28, device="cuda") for _ in range(100)]

    try:
        attempt()
    except torch.OutOfMemoryError:
        pass
    assert torch.cuda.memory_allocated() == before, "a tensor outlived the handler"
    batch = torch.zeros(1 << 20, device="cuda")
    try:
        torch.zeros(1 << 40, device="cuda")
    except torch.OutOfMemoryError as error:
        assert len(error.args) == 1 and error.__cause__ is None
    del batch
    assert torch.cuda.memory_allocated() == before, "a deleted local outlived the handler"
assert not torch._C._cuda_isHistoryEnabled()
torch.cuda.memory._record_memory_history(stacks="python")
with oomscope.record(on="exit"):
    pass
assert torch._C._cuda_isHistoryEnabled(), "someone else's recording was stopped"
try:
    torch.zeros(1 << 40, device="cuda")
except torch.OutOfMemoryError:
    pass
print(len(recorder.files), recorder.ooms)
"""


def test_nothing_is_kept_begun_early_or_stopped_for_others(tmp_path):
    (tmp_path / "job.py").write_text(QUIET)
    done = start(["job.py"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "2 2\n"  # the second fails on a line of its own, so that it is dumped, however soon it comes
    assert len(list(tmp_path.glob("*.pickle"))) == 3


# The examples of the README, as they stand there


def run_example(name, tmp_path, launcher=(), **more):
    done = start([*launcher, str(EXAMPLES / name)], tmp_path, **more)
    paths = sorted((tmp_path / "oom").glob("*.pickle"), key=lambda path: path.stat().st_mtime_ns)
    dumps = [pickle.loads(path.read_bytes()) for path in paths]
    print(name, done.returncode, [(top(dump), round(explained(dump), 3)) for dump in dumps], done.stderr[-1500:])
    return done, dumps


@pytest.mark.parametrize(
    ("name", "holder"),
    [
        ("plain.py", "evaluate: total_loss"),
        ("hf_trainer.py", None),
        ("lightning_fit.py", None),
    ],
)
def test_examples_that_run_out(tmp_path, name, holder):
    done, dumps = run_example(name, tmp_path)
    assert done.returncode == 1
    assert "torch.OutOfMemoryError: CUDA out of memory" in done.stderr
    # Lightning takes every device there is, a process for each.
    ranks = torch.cuda.device_count() if name == "lightning_fit.py" else 1
    assert len({dump["oomscope"]["process"]["rank"] for dump in dumps}) == len(dumps) == ranks
    assert explained(dumps[0]) > 0.9
    if holder is not None:
        assert top(dumps[0]) == holder


def test_lightnings_list_is_found(tmp_path):
    _, dumps = run_example("lightning_fit.py", tmp_path)
    assert top(dumps[0]).endswith(".outputs")


def test_accelerates_batch_size_is_found_as_without_recording(tmp_path):
    source = (EXAMPLES / "accelerate_batch_size.py").read_text()
    (tmp_path / "plain.py").write_text(re.sub(r"^(@oomscope|import oomscope).*$", "", source, flags=re.MULTILINE))
    plain = start(["plain.py"], tmp_path)
    done, dumps = run_example("accelerate_batch_size.py", tmp_path)
    assert (done.returncode, done.stdout) == (0, plain.stdout)
    assert done.stdout.startswith("batch size ")
    assert len(dumps) >= 1


def test_torchrun_with_one_rank_that_dies(tmp_path):
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--master-port=29517"]
    done, dumps = run_example("ddp.py", tmp_path, launcher)
    assert done.returncode == 1
    assert {dump["oomscope"]["process"]["rank"] for dump in dumps} == {1}
    assert top(dumps[0]) == "train: kept"
    assert "oomscope [rank 1]: held by train: kept" in done.stderr
    assert list((tmp_path / "oom").glob("oom_*_rank1_*.pickle"))


def test_torchrun_with_the_launcher(tmp_path):
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--master-port=29518", "--no-python"]
    command = [*launcher, sys.executable, "-m", "oomscope", "run", "-o", "oom", str(EXAMPLES / "unchanged.py")]
    done = start(command, tmp_path)
    assert done.returncode == 1
    dumps = [pickle.loads(path.read_bytes()) for path in (tmp_path / "oom").glob("*.pickle")]
    assert 1 <= len({dump["oomscope"]["process"]["rank"] for dump in dumps}) <= 2
    assert all(top(dump) == "unchanged.py: features" for dump in dumps)


def test_an_unchanged_program(tmp_path):
    plain = start([str(EXAMPLES / "unchanged.py")], tmp_path)
    done = start(["-m", "oomscope", "run", "-o", "oom", str(EXAMPLES / "unchanged.py")], tmp_path)
    assert done.returncode == plain.returncode == 1
    shown = [line for line in done.stderr.splitlines() if not line.startswith("oomscope: ")]
    assert shown[: len(shown) - 1][:-2] == plain.stderr.splitlines()[: len(shown) - 1][:-2]
    (path,) = (tmp_path / "oom").glob("*.pickle")
    assert top(pickle.loads(path.read_bytes())) == "unchanged.py: features"


COMPILED = """
import torch, oomscope
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.AdamW(model.parameters())

@torch.compile
def step(x):
    model(x).sum().backward()
    optimizer.step()

with oomscope.record(on="exit") as recording:
    for _ in range(3):
        step(torch.randn(8, 64, device="cuda"))
print("done")
"""


def test_a_compiled_step_runs_as_without_recording(tmp_path):
    (tmp_path / "job.py").write_text(COMPILED)
    done = start(["job.py"], tmp_path)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    (path,) = tmp_path.glob("exit_*.pickle")
    assert "model.weight" in {row["name"] for row in pickle.loads(path.read_bytes())["oomscope"]["tensors"]}


POOLS = """
import torch, oomscope
from oomscope import recording

x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

def capture():
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 1
        z = torch.zeros(1 << 40, device="cuda")

def pool():
    kept = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(kept):
        torch.zeros(1 << 40, device="cuda")

for attempt in (capture, pool):
    with oomscope.record(min_interval=0) as recorder:
        try:
            attempt()
        except torch.OutOfMemoryError as error:
            print(attempt.__name__, type(error).__name__, recorder.ooms, len(recorder.files))
        except RuntimeError as error:
            print(attempt.__name__, type(error).__name__, str(error)[:100], recorder.ooms, len(recorder.files))
    torch.cuda.synchronize()
print((x + 1).sum().item())
"""


def test_ooms_while_a_graph_is_captured_and_in_a_pool(tmp_path):
    (tmp_path / "job.py").write_text(POOLS)
    done = start(["job.py"], tmp_path)
    print(done.stdout, done.stderr[-1500:])
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["capture OutOfMemoryError 1 1", "pool OutOfMemoryError 1 1", "1000.0"]


def test_accelerate_launch(tmp_path):
    pytest.importorskip("accelerate", reason="needs accelerate")
    launcher = ["-m", "accelerate.commands.launch", "--num_processes", "1", "--num_machines", "1"]
    launcher += ["--mixed_precision", "no", "--dynamo_backend", "no", "-m", "oomscope", "run", "-o", "oom"]
    done = start([*launcher, str(EXAMPLES / "unchanged.py")], tmp_path)
    assert done.returncode == 1
    assert "torch.OutOfMemoryError: CUDA out of memory" in done.stderr
    (path,) = (tmp_path / "oom").glob("*.pickle")
    assert top(pickle.loads(path.read_bytes())) == "unchanged.py: features"


def test_a_model_on_two_devices(tmp_path):
    if torch.cuda.device_count() < 2:
        pytest.skip("there is one device")
    done, dumps = run_program("two_devices", tmp_path)
    assert done.returncode == 1
    key = dumps[-1]["oomscope"]
    assert key["request"]["device"] == 1
    assert [device["device"] for device in key["devices"]] == [0, 1]
    assert top(dumps[-1]) == "two_devices: outputs"
    assert {row["device"] for row in key["tensors"]} == {0, 1}
    assert len(key["steps"][-2]["allocated"]) == 2


LOOP = """
import time, torch
weight = torch.zeros(1000, 1000, device="cuda")
print("ready", flush=True)
for _ in range(3000):
    weight.add_(1)
    time.sleep(0.01)
"""


def test_a_signal_asks_a_running_job_for_a_snapshot(tmp_path):
    (tmp_path / "loop.py").write_text(LOOP)
    variables = {**os.environ, "PYTHONPATH": SEARCH}
    command = [sys.executable, "-m", "oomscope", "run", "-o", str(tmp_path), "loop.py"]
    with subprocess.Popen(command, cwd=tmp_path, env=variables, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout.readline() == "ready\n"
        job.send_signal(signal.SIGUSR1)
        end = time.monotonic() + 60
        while not list(tmp_path.glob("signal_*.pickle")) and time.monotonic() < end:
            time.sleep(0.1)
        assert job.poll() is None
        job.terminate()
        assert job.wait(30) == -signal.SIGTERM
    (path,) = tmp_path.glob("signal_*.pickle")
    names = [row["holders"] for row in pickle.loads(path.read_bytes())["oomscope"]["tensors"]]
    assert ["loop.py: weight"] in names


def test_the_verdict_and_the_report(tmp_path):
    """The three lines with the analysis' headline, and the HTML made by a process without the GPU."""
    done = start(
        ["-m", "tests.gpu.programs", "leak_hook", str(tmp_path)], ROOT, OOMSCOPE_VERDICT="60", OOMSCOPE_REPORT="1"
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("oomscope: ")]
    print("\n".join(lines))
    assert any("held by leak_hook: model.blocks[2].captured" in line for line in lines)
    (page,) = tmp_path.glob("*.html")
    assert page.stat().st_size > 10_000


def test_a_notebook(tmp_path):
    pytest.importorskip("IPython", reason="needs IPython")
    cells = re.split(r"^# In \[\d+\]\n", (EXAMPLES / "notebook.py").read_text(), flags=re.MULTILINE)[1:]
    (tmp_path / "kernel.py").write_text(
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        f"results = [shell.run_cell(cell, store_history=True) for cell in {cells!r}]\n"
        "import json\n"
        "print(json.dumps([type(result.error_in_exec).__name__ for result in results]))\n"
    )
    done = start(["kernel.py"], tmp_path)
    assert json.loads(done.stdout.splitlines()[-1]) == ["NoneType", "OutOfMemoryError", "NoneType"], done.stderr
    assert "the snapshot: oom/oom_" in done.stdout
    (path,) = (tmp_path / "oom").glob("*.pickle")
    assert top(pickle.loads(path.read_bytes())) == "__main__: history"
