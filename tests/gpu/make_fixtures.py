"""Makes the recordings in tests/recording/fixtures. Run as ``python -m tests.gpu.make_fixtures FOLDER`` on a GPU.

The paths of the machine are shortened; nothing else is changed.
"""

from __future__ import annotations

import json
import lzma
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CAP = "per_process_memory_fraction:0.03"
# name of the fixture: the program, how many entries to keep, the allocator's settings
FIXTURES = {
    "leak_total_loss": ("leak_total_loss", 2500, CAP),
    "leak_hook": ("leak_hook", 2500, CAP),
    "leak_cycle": ("leak_cycle", 2500, CAP),
    "optimizer_step": ("optimizer_step", 1500, CAP),
    "retry_caught": ("retry", 2000, CAP),
    "backward": ("backward", 2000, CAP),
    "forward_expandable": ("forward", 2500, f"{CAP},expandable_segments:True"),
    "two_devices": ("two_devices", 2000, CAP),
}


def shortened(value, replacements):
    if isinstance(value, str):
        for long, short in replacements:
            value = value.replace(long, short)
        return value
    if isinstance(value, dict):
        return {shortened(key, replacements): shortened(item, replacements) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(shortened(item, replacements) for item in value)
    return value


def make(name, folder):
    program, entries, conf = FIXTURES[name]
    with tempfile.TemporaryDirectory() as output:
        variables = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": conf, "OOMSCOPE_VERDICT": "0"}
        command = [sys.executable, "-m", "tests.gpu.programs", program, output, str(entries)]
        subprocess.run(command, cwd=ROOT, env=variables, stderr=subprocess.DEVNULL, check=False)
        dumps = sorted(Path(output).glob("*.pickle"), key=lambda path: path.stat().st_mtime_ns)
        snapshot = pickle.loads(dumps[-1].read_bytes())
        pairs = ((output, "/workspace/train/oom"), (str(ROOT), "/workspace/train"), (sys.prefix, "/usr/local"))
    target = folder / f"{name}.pickle.xz"
    memo = pickle.dumps(shared(shortened(snapshot, pairs)), protocol=4)
    target.write_bytes(lzma.compress(memo, preset=9 | lzma.PRESET_EXTREME))
    holders = [(row["holder"], row["bytes"]) for row in snapshot["oomscope"]["holders"][:3]]
    print(name, len(dumps), target.stat().st_size, json.dumps(holders))


def shared(value, seen=None):
    """Equal frames as one object again, as torch writes them."""
    seen = {} if seen is None else seen
    if isinstance(value, dict):
        built = {key: shared(item, seen) for key, item in value.items()}
        if set(built) != {"filename", "line", "name"}:
            return built
        return seen.setdefault((built["filename"], built["line"], built["name"]), built)
    return [shared(item, seen) for item in value] if isinstance(value, list) else value


if __name__ == "__main__":
    target_folder = Path(sys.argv[1])
    target_folder.mkdir(parents=True, exist_ok=True)
    for fixture in sys.argv[2:] or [name for name in FIXTURES if name != "two_devices"]:
        make(fixture, target_folder)
