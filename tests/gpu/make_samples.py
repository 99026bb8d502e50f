"""Makes the recordings in sample_snapshots. Run as ``python -m tests.gpu.make_samples FOLDER [NAME...]`` on two GPUs.

Each program of tests/gpu/samples runs unchanged under ``oomscope run``, alone on the machine, under a process cap that
stands in for a smaller card. Paths, the machine's name and the device's number are replaced; nothing else is changed.
"""

from __future__ import annotations

import lzma
import os
import pickle
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from tests.gpu.make_fixtures import shared, shortened

HERE = Path(__file__).parent / "samples"
ROOT = HERE.parents[2]
PACKAGES = "/venv/lib/python3.12/site-packages"
CARD = 150_109_880_320  # bytes of an H200, of which a cap is a fraction
CAPS = {
    "oom_activations": 12,
    "oom_backward": 3.5,
    "oom_cuda_graphs": 6,
    "oom_fragmentation": 8,
    "oom_kept_exception": 6,
    "oom_leak_in_validation": 8,
    "oom_leak_total_loss": 8,
    "oom_optimizer_step": 4.5,
    "oom_thread_pool": 4,
}
"""In GiB. The others run to their end, without a cap, and are recorded there."""
RANKS = {"ddp": 2}
FIRST = ("oom_thread_pool",)
"""Programs that go on after their first OOM, which is the one to show; of the others it is the last."""
LAUNCHER = ["-m", "torch.distributed.run", "--no-python", "--master-port=29519"]


def run(name: str, output: Path) -> list[Path]:
    """The dumps of one program, oldest first; of several ranks, the first rank's first."""
    variables = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
        "OOMSCOPE_VERDICT": "0",
        "OOMSCOPE_MIN_INTERVAL": "0",
        "OOMSCOPE_OUTPUT_DIR": str(output),
    }
    if name in CAPS:
        variables["PYTORCH_CUDA_ALLOC_CONF"] = f"per_process_memory_fraction:{CAPS[name] * (1 << 30) / CARD:.5f}"
    else:
        variables["OOMSCOPE_ON"] = "exit"
    program = ["-m", "oomscope", "run", f"{name}.py"]
    if name in RANKS:
        program = [*LAUNCHER, f"--nproc-per-node={RANKS[name]}", sys.executable, *program]
    subprocess.run([sys.executable, *program], cwd=HERE, env=variables, stdin=subprocess.DEVNULL, check=False)
    by_time = sorted(output.glob("*.pickle"), key=lambda path: path.stat().st_mtime_ns)
    return sorted(by_time, key=lambda path: path.name) if name in RANKS else by_time


def anonymous(snapshot: dict[str, Any], output: Path) -> dict[str, Any]:
    """The snapshot with short paths, and without what names this machine and its card."""
    packages = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    packages |= {path for path in sys.path if (Path(path) / "click").is_dir()}
    pairs = [(str(output), "/workspace/train/oom"), (str(HERE), "/workspace/train"), (str(ROOT), PACKAGES)]
    pairs += [(path, PACKAGES) for path in packages]
    pairs += [(sysconfig.get_path("stdlib"), "/usr/lib/python3.12"), (sys.prefix, "/venv")]
    pairs.sort(key=lambda pair: -len(pair[0]))
    key = snapshot["oomscope"]
    pairs += [(device["uuid"], "GPU-00000000-0000-0000-0000-000000000000") for device in key["devices"]]
    key["process"]["host"] = "node1"
    return shortened(snapshot, [pair for pair in pairs if pair[0]])


def make(name: str, folder: Path) -> None:
    """Record one program, and write its sample or, with several ranks, one for each."""
    with tempfile.TemporaryDirectory(prefix="samples") as temporary:
        output = Path(temporary)
        dumps = run(name, output)
        if not dumps:
            raise SystemExit(f"{name} left no dump")
        ranks = RANKS.get(name, 0)
        kept = dumps[:ranks] if ranks else [dumps[0] if name in FIRST else dumps[-1]]
        for rank, path in enumerate(kept):
            target = folder / f"{f'{name}.rank{rank}' if ranks else name}.pickle.xz"
            snapshot = anonymous(pickle.loads(path.read_bytes()), output)
            packed = lzma.compress(pickle.dumps(shared(snapshot), protocol=4), preset=9 | lzma.PRESET_EXTREME)
            target.write_bytes(packed)
            print(f"{target.name}: dump {path.name}, one of {len(dumps)}, {len(packed):,} bytes", flush=True)


if __name__ == "__main__":
    target_folder = Path(sys.argv[1])
    target_folder.mkdir(parents=True, exist_ok=True)
    for sample in sys.argv[2:] or [*CAPS, "train_ok", *RANKS]:
        make(sample, target_folder)
