"""Programs that run out of GPU memory, each in its own way. Run as ``python -m tests.gpu.programs NAME OUTPUT_DIR``.

Every program is capped (the caller sets ``per_process_memory_fraction``), so that it ends quickly and beside others.
What it knows itself goes into the dump's metadata, where tests compare it with what the walk found.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections import deque
from pathlib import Path

import torch
from torch import nn

import oomscope
from oomscope import recording

DEVICE = "cuda"


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.mlp(self.norm_2(x))


class GPT(nn.Module):
    def __init__(self, layers=8, width=512, vocabulary=8192, length=512):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.register_buffer("positions", torch.arange(length).float()[:, None] / length)
        self.blocks = nn.ModuleList([Block(width, 8) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens) + self.positions[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def tokens_of(batch_size, length=512):
    return torch.randint(0, 8192, (batch_size, length), device=DEVICE)


def loss_of(model, tokens):
    logits = model(tokens)
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def forward(autocast=True):
    """An OOM in forward: the batch grows until it does not fit."""
    model = GPT(layers=12).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters())
    recording.track(model=model, optimizer=optimizer)
    for size in (2, 2, 512):
        tokens = tokens_of(size)
        with recording.step(), torch.autocast(DEVICE, torch.bfloat16, enabled=autocast):
            loss = loss_of(model, tokens)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def backward():
    """An OOM in backward: the dense gradient of a large embedding comes last and does not fit."""
    model = GPT(layers=4, vocabulary=8192).to(DEVICE)
    model.embed = nn.Embedding(1_200_000, 512, device=DEVICE)
    for _ in range(2):
        loss_of(model, tokens_of(2)).backward()


def optimizer_step(layers=62, width=256):
    """An OOM in optimizer.step: Adam's state for a transformer of about 1,000 tensors does not fit."""
    model = GPT(layers=layers, width=width).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    loss_of(model, tokens_of(1, 64)).backward()
    total = torch.cuda.get_device_properties(0).total_memory
    free = int(torch.cuda.get_per_process_memory_fraction() * total) - torch.cuda.memory_reserved()
    state = sum(parameter.numel() * 8 for parameter in model.parameters())
    # Room for the state and half of what the step needs beside it.
    ballast = torch.empty(free - state * 5 // 4, dtype=torch.uint8, device=DEVICE)
    _note_names(model, optimizer)
    optimizer.step()
    del ballast


def _note_names(model, optimizer):
    """What the program itself calls its tensors, for comparison; the state is looked up by the reader by size."""
    names = {}
    for name, parameter in model.named_parameters():
        names[parameter.data_ptr()] = [f"model.{name}", "parameter"]
        if parameter.grad is not None:
            names[parameter.grad.data_ptr()] = [f"model.{name}.grad", "gradient"]
        for key, value in optimizer.state.get(parameter, {}).items():
            if value.is_cuda:
                names[value.data_ptr()] = [f"model.{name}.{key}", "optimizer_state"]
    _truth["names"] = {str(address): row for address, row in names.items()}


def train_then_run_out():
    """Names of everything after full training steps, then an OOM outside of them."""
    model = GPT(layers=40).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    for _ in range(3):
        loss_of(model, tokens_of(2)).backward()
        optimizer.step()
    _note_names(model, optimizer)
    torch.empty(1 << 40, dtype=torch.uint8, device=DEVICE)


def leak_total_loss():
    """The graph of every step, kept by the sum of their losses."""
    model = GPT(layers=4).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters())
    total_loss = 0
    for step in range(1000):
        with recording.step():
            loss = loss_of(model, tokens_of(4))
            optimizer.zero_grad()
            loss.backward(retain_graph=True)
            optimizer.step()
            total_loss = total_loss + loss
        if step == 2:
            recording.mark("warm")
    return total_loss


def leak_hook():
    """Activations of one layer, kept by a list that a forward hook fills."""
    model = GPT(layers=4).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters())
    model.blocks[2].captured = []
    model.blocks[2].register_forward_hook(lambda block, _, output: block.captured.append(output.detach()))
    for _ in range(10_000):
        with recording.step():
            loss = loss_of(model, tokens_of(16))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


class Sample:
    def __init__(self, activation):
        self.activation = activation
        self.owner = self.back = None


def leak_cycle():
    """Activations that wait for the collector in reference cycles."""
    import gc

    gc.disable()
    model = GPT(layers=4).to(DEVICE)
    for _ in range(10_000):
        with recording.step(), torch.no_grad():
            first, second = Sample(model(tokens_of(4))), Sample(None)
            first.owner, second.back = second, first


def retry():
    """A retry under the exception of the first OOM, which keeps what the first attempt had."""
    model = GPT(layers=4).to(DEVICE)

    def attempt(batch_size):
        loss = loss_of(model, tokens_of(batch_size))
        loss.backward()

    try:
        attempt(96)
    except torch.OutOfMemoryError:
        attempt(48)


def serve(model, tokens, here):
    """One request: it reads its tokens with others at its side, and keeps what it makes until it is done."""
    with torch.no_grad():
        made = [model(tokens)]
        here.wait(60)
        while True:
            made.append(model(tokens))


def serve_threads(calls=16):
    """Many calls of one function at once, each in a thread of its own with activations of its own."""
    model = GPT(layers=4).to(DEVICE)
    here = threading.Barrier(calls)
    threads = [threading.Thread(target=serve, args=(model, tokens_of(2), here)) for _ in range(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate: in a thread")


def attempt_and_reject(model):
    """A step whose result is found wanting only once its graph is there."""
    loss = loss_of(model, tokens_of(2))
    raise ValueError(f"a loss of {loss.item():.3f} is no good")


def exception_list():
    """Tries again and again, with the errors kept for the log: each holds the frames that it went through."""
    model, errors = GPT(layers=4).to(DEVICE), []
    for _ in range(10_000):
        try:
            attempt_and_reject(model)
        except ValueError as error:
            errors.append(error)


def prefetch_deque():
    """A queue of batches that is filled faster than it is emptied."""
    window = deque(maxlen=100_000)
    for _ in range(100_000):
        window.append(torch.empty(8 << 20, dtype=torch.uint8, device=DEVICE))


def metric_outputs():
    """Validation without no_grad: an object keeps every prediction with its graph."""
    metric = Metric()
    model = GPT(layers=4).to(DEVICE)
    for _ in range(10_000):
        metric.update(model(tokens_of(2)))


class Metric:
    def __init__(self):
        self.outputs = []

    def update(self, prediction):
        self.outputs.append({"prediction": prediction})


def backward_anomaly():
    """An OOM in backward while anomaly mode keeps where forward was."""
    with torch.autograd.detect_anomaly():
        backward()


def worker():
    """An OOM in a DataLoader worker: another process."""
    from torch.utils.data import DataLoader

    torch.zeros(1, device=DEVICE)
    list(DataLoader(_OnDevice(), num_workers=1, multiprocessing_context="spawn"))


class _OnDevice(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.zeros(1 << 40, dtype=torch.uint8, device=DEVICE)


def two_devices():
    """A model on two devices, of which the second one fills."""
    torch.cuda.set_per_process_memory_fraction(0.03, 1)
    first, second = nn.Linear(2048, 2048).to("cuda:0"), nn.Linear(2048, 2048).to("cuda:1")
    outputs = []
    for _ in range(10_000):
        with recording.step():
            outputs.append(second(first(torch.randn(2048, 2048, device="cuda:0")).to("cuda:1")))


PROGRAMS = {
    function.__name__: function
    for function in (
        forward,
        backward,
        optimizer_step,
        train_then_run_out,
        leak_total_loss,
        leak_hook,
        leak_cycle,
        retry,
        serve_threads,
        exception_list,
        prefetch_deque,
        metric_outputs,
        backward_anomaly,
        worker,
        two_devices,
    )
}
_truth = {}


def main(name, output_dir, max_entries=200_000):
    """Run one program under recording, so that its OOM leaves a dump with what the program knows in its metadata."""
    options = {"output_dir": output_dir, "max_entries": int(max_entries), "min_interval": 0, "metadata": _truth}
    _truth["program"] = name
    with oomscope.record(**options) as recorder:
        try:
            PROGRAMS[name]()
        finally:
            Path(output_dir).mkdir(parents=True, exist_ok=True)
            facts = {"ooms": recorder.ooms, "allocated": torch.cuda.memory_allocated()}
            with contextlib.suppress(OSError):
                (Path(output_dir) / f"{name}.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main(*sys.argv[1:])
