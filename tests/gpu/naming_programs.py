"""Small programs that name their memory, each ending in an OOM: ``python -m tests.gpu.naming_programs NAME DIR``.

`tests/named/captures` are what they left on a card, under ``per_process_memory_fraction:0.03``; those about pinned
memory without it, and ``async_backend`` under ``backend:cudaMallocAsync``.
"""

# ruff: noqa: PERF401 (what is kept is kept one by one)

from __future__ import annotations

import contextlib
import json
import sys
import threading
from pathlib import Path

import torch
from torch import nn
from torch.profiler import record_function

import oomscope

MIB = 1 << 20


def truth(path, **known):
    stats = torch.cuda.memory_stats() if torch.cuda.get_allocator_backend() == "native" else {}
    known["allocated"] = stats.get("allocated_bytes.all.current")
    Path(path).write_text(json.dumps(known, default=str))


class Mlp(nn.Module):
    def __init__(self, width=1024, layers=6):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(layers)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.nn.functional.gelu(layer(x))
        return x


def ranges(folder):
    """Ranges around each pass and each phase, metadata, a plain-function forward; the batch grows until it fails."""
    weights = [torch.randn(1024, 1024, device="cuda", requires_grad=True) for _ in range(6)]
    optimizer = torch.optim.AdamW(weights)
    for number in range(200):
        torch.cuda.memory._set_memory_metadata(json.dumps({"batch": number}))
        with record_function("train_step"):
            with record_function("forward"):
                x = torch.randn(2048 * (number + 1), 1024, device="cuda")
                for weight in weights:
                    x = torch.tanh(x @ weight)
                loss = x.square().mean()
            with record_function("backward"):
                loss.backward()
            with record_function("update"):
                optimizer.step()
                optimizer.zero_grad()
        torch.cuda.memory._set_memory_metadata("")


def numbered(folder):
    """Ranges with a number in the name, no optimizer: evaluation that keeps its outputs."""
    model, kept = Mlp().cuda(), []
    with torch.no_grad():
        for number in range(2000):
            with record_function(f"batch {number}"):
                kept.append(model(torch.randn(4096, 1024, device="cuda")))


def threads(folder):
    """A range in a thread other than the one that records."""
    kept = [torch.zeros(1, device="cuda")]  # CUDA is up, and recorded, before the range begins

    def work():
        with record_function("worker_phase"):
            while True:
                kept.append(torch.empty(64 * MIB, dtype=torch.uint8, device="cuda"))

    errors = []

    def guarded():
        try:
            work()
        except torch.OutOfMemoryError as error:
            errors.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join()
    raise errors[0]


class Engine:
    def __init__(self):
        self.kv_pool = torch.cuda.MemPool()
        self.weights_pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(self.weights_pool):
            self.weights = [torch.empty(100 * MIB, dtype=torch.uint8, device="cuda") for _ in range(6)]
        with torch.cuda.use_mem_pool(self.kv_pool):
            self.blocks = [torch.empty(64 * MIB, dtype=torch.uint8, device="cuda") for _ in range(40)]

    def sleep(self):
        del self.blocks[4:]


def mempool(folder):
    """A pool whose blocks are free and cannot be used outside it, beside one that is full."""
    engine = Engine()
    engine.sleep()
    scratch = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(scratch):
        small = torch.empty(3 * MIB, dtype=torch.uint8, device="cuda")
    graph = torch.cuda.CUDAGraph()
    x = torch.randn(1024, 1024, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x @ x
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph):
        y = torch.tanh(x @ x)
    truth(
        Path(folder) / "mempool.known.json",
        kv=engine.kv_pool.id,
        weights=engine.weights_pool.id,
        scratch=scratch.id,
        graph=graph.pool(),
    )
    return [small, y, [torch.empty(256 * MIB, dtype=torch.uint8, device="cuda") for _ in range(100)]]


def compiled(folder):
    """A compiled model of two graphs, trained until the batch does not fit."""
    torch._dynamo.config.cache_size_limit = 64
    model = torch.compile(Mlp().cuda(), dynamic=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number in range(200):
        loss = model(torch.randn(2048 * (number + 1), 1024, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def fx(folder):
    """Code that torch.fx generated, with the lines it was made from."""
    import torch.fx.experimental._config as config

    config.enrich_profiler_metadata = True
    model = torch.compile(Mlp().cuda(), backend="aot_eager", dynamic=True)
    kept = []
    for number in range(200):
        kept.append(model(torch.randn(2048 * (number + 1), 1024, device="cuda")))


def fx_eager(folder):
    import torch.fx.experimental._config as config

    config.enrich_profiler_metadata = True
    model = torch.compile(Mlp().cuda(), backend="eager", dynamic=True)
    kept = []
    for number in range(200):
        kept.append(model(torch.randn(2048 * (number + 1), 1024, device="cuda")))


def anomaly(folder):
    """Anomaly mode, which the program itself switched on: an OOM in backward."""
    model = Mlp().cuda()
    with torch.autograd.set_detect_anomaly(True):
        for number in range(200):
            x = torch.randn(2048 * (number + 1), 1024, device="cuda", requires_grad=True)
            model(x).square().mean().backward()


def pinned(folder):
    """Pinned memory in use and cached, then more than any machine has."""
    kept = [torch.empty((index + 1) * 5 * MIB, dtype=torch.uint8, pin_memory=True) for index in range(12)]
    gone = [torch.empty(32 * MIB, dtype=torch.uint8).pin_memory() for _ in range(4)]
    del gone
    x = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    x.copy_(torch.empty(64 * MIB, dtype=torch.uint8, pin_memory=True), non_blocking=True)
    truth(Path(folder) / "pinned.known.json", stats=torch.cuda.host_memory_stats())
    return kept, torch.empty(1 << 42, dtype=torch.uint8, pin_memory=True)


def pinned_copy(folder):
    """The same by Tensor.pin_memory of what the machine's memory holds, until it refuses or a bound is reached."""
    kept = []
    torch.zeros(1, device="cuda")
    data = torch.empty(8 << 30, dtype=torch.uint8)  # never touched: no memory until it is pinned
    with contextlib.suppress(KeyboardInterrupt):
        for _ in range(3):
            kept.append(data.pin_memory())
    return torch.empty(1 << 41, dtype=torch.uint8).pin_memory()


def async_backend(folder):
    """cudaMallocAsync: no history, figures and holders alone."""
    model = Mlp().cuda()
    kept = []
    while True:
        kept.append(model(torch.randn(1 << 18, 1024, device="cuda")))


if __name__ == "__main__":
    name, folder = sys.argv[1:3]
    on = ("oom", "exception")
    with oomscope.record(
        output_dir=folder,
        filename=name + ".{reason}.{sequence}.pickle",
        on=on,
        compress=True,
        max_dumps=1,
        verdict=0,
        max_entries=60_000,
    ):
        globals()[name](folder)
