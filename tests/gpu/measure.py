"""What recording costs on a GPU, as a table. Run as ``python -m tests.gpu.measure`` on a quiet machine.

1. The time of a training step without recording, with ``_record_memory_history`` called by hand, and under
   ``oomscope.record``, in turns so that drift hits all alike.
2. From the OOM to the file on disk, beside a bare ``_dump_snapshot`` of the same state.
3. The walk over a heap of half a million objects.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import torch

import oomscope
from oomscope.recording.nvml import Nvml
from tests.gpu.programs import GPT, loss_of, tokens_of

ENTRIES = 200_000
MODES = {
    "state": {"history": "state", "stacks": "python"},
    "python": {"history": "all", "stacks": "python"},
    "all": {"history": "all", "stacks": "all"},
}


@contextlib.contextmanager
def by_hand(history, stacks):
    torch.cuda.memory._record_memory_history(history, context="all", stacks=stacks, max_entries=ENTRIES)
    try:
        yield
    finally:
        torch.cuda.memory._record_memory_history(None)


def recorded(history, stacks):
    return oomscope.record(history=history, stacks=stacks, max_entries=ENTRIES)


def steps(train, count):
    times = []
    for _ in range(count):
        torch.cuda.synchronize()
        start = perf_counter()
        train()
        torch.cuda.synchronize()
        times.append(perf_counter() - start)
    return times


def measure_steps(name, train, rounds, count):
    """The median step of every mode, over all rounds."""
    times = {"off": []}
    steps(train, 10)
    for _ in range(rounds):
        times["off"] += steps(train, count)
        for mode, settings in MODES.items():
            for way, opened in (("by hand", by_hand), ("oomscope", recorded)):
                with opened(**settings):
                    steps(train, 2)
                    times.setdefault(f"{mode} {way}", []).extend(steps(train, count))
    off = statistics.median(times["off"])
    print(f"\n{name}: {off * 1e3:.2f} ms a step without recording")
    for mode in MODES:
        hand, ours = (statistics.median(times[f"{mode} {way}"]) for way in ("by hand", "oomscope"))
        print(
            f"  {mode:7} by hand {hand * 1e3:8.2f} ms ({hand / off - 1:+6.1%})   oomscope {ours * 1e3:8.2f} ms"
            f" ({ours / off - 1:+6.1%} to off, {ours / hand - 1:+6.1%} to by hand)"
        )


def trainer(layers, width, batch, length):
    model = GPT(layers=layers, width=width, length=length).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    tokens = tokens_of(batch, length)

    def train():
        with torch.autocast("cuda", torch.bfloat16):
            loss = loss_of(model, tokens)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return train


def measure_dump(stacks, entries, train):
    """An OOM with full history, then a bare dump of the same."""
    folder = Path(tempfile.mkdtemp())
    with oomscope.record(output_dir=folder, max_entries=entries, stacks=stacks, verdict=0, walk_budget=20):
        while True:
            for _ in range(20):
                train()
            if sum(map(len, torch.cuda.memory._snapshot()["device_traces"])) >= entries:
                break
        seen = {}
        make = sys.modules["oomscope.recording.dump"].make

        def keep(*arguments):
            seen["dump"] = make(*arguments)
            return seen["dump"]

        sys.modules["oomscope.recording.dump"].make = keep
        try:
            torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            pass
        finally:
            sys.modules["oomscope.recording.dump"].make = make
        bare = []
        for index in range(2):
            start = perf_counter()
            torch.cuda.memory._dump_snapshot(str(folder / f"bare{index}.pickle"))
            bare.append(perf_counter() - start)
    dump = seen["dump"]
    walk = dump.key["walk"]["seconds"]
    size = dump.path.stat().st_size
    print(
        f"  stacks={stacks:6} {entries:7,} entries, {size / 2**20:6.1f} MiB: bare _dump_snapshot "
        f"{min(bare):6.2f} s; oomscope {dump.seconds - walk:6.2f} s ({(dump.seconds - walk) / min(bare):.2f} x)"
        f" and the walk {walk:.2f} s over {dump.key['walk']['objects']:,} objects; of that {dump.key['seconds']}"
    )
    shutil.rmtree(folder)


def measure_first():
    """The first dump of fresh processes, where libraries are still to be loaded."""
    for name in ("forward", "leak_hook", "retry"):
        with tempfile.TemporaryDirectory() as folder:
            variables = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": "per_process_memory_fraction:0.03"}
            command = [sys.executable, "-m", "tests.gpu.programs", name, folder]
            subprocess.run(command, env=variables, stderr=subprocess.DEVNULL, check=False)
            for path in sorted(Path(folder).glob("*.pickle")):
                key = pickle.loads(path.read_bytes())["oomscope"]
                print(f"  {name}: walk {key['walk']['seconds']:.2f} s, {key['seconds']}, {path.stat().st_size:,} bytes")


def measure_walk(train):
    """The walk over half a million objects."""
    from oomscope.recording.census.walk import take_census

    ballast = []
    import gc

    while len(gc.get_objects()) < 500_000:
        ballast.append([{"index": index, "rows": [index]} for index in range(10_000)])
    train()
    for _ in range(2):
        walk = take_census(torch).walk
    print(f"  {walk['seconds']:.2f} s for {walk['objects']:,} objects, {walk['tensors']} tensors ({len(ballast)})")


def main():
    os.environ.setdefault("OOMSCOPE_VERDICT", "0")
    print(torch.__version__, torch.cuda.get_device_name(0), "Python", sys.version.split()[0])
    start = perf_counter()
    Nvml()
    print(f"NVML answers after {perf_counter() - start:.3f} s")
    large = trainer(24, 1024, 8, 512)
    measure_steps("GPT, 24 layers of 1024, batch 8 x 512, bf16", large, rounds=8, count=12)
    small = trainer(12, 256, 2, 64)
    measure_steps("GPT, 12 layers of 256, batch 2 x 64 (bound by launches)", small, rounds=8, count=40)
    print("\nThe first dump of a process")
    measure_first()
    print("\nFrom the OOM to the file")
    measure_dump("python", 20_000, large)
    measure_dump("python", 200_000, large)
    measure_dump("all", 5_000, large)
    print("\nThe walk")
    measure_walk(large)


if __name__ == "__main__":
    main()
