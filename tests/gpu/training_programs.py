"""Ordinary programs, healthy and leaking, with what they know of their own tensors. Run by `test_diagnosis`.

Run as ``python -m tests.gpu.training_programs NAME OUTPUT_DIR``: one process a program, so that each begins alone.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import gc
import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

VOCABULARY = 16_000
GIB = 1 << 30


class Attention(nn.Module):
    def __init__(self, width: int, naive: bool) -> None:
        super().__init__()
        self.qkv, self.out, self.naive = nn.Linear(width, 3 * width), nn.Linear(width, width), naive

    def forward(self, x: torch.Tensor, past: dict[str, torch.Tensor] | None = None) -> torch.Tensor:
        q, k, v = (part.unflatten(-1, (8, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        if past is not None:
            if "k" in past:
                k = torch.cat([past["k"], k], 2)
                v = torch.cat([past["v"], v], 2)
            past["k"], past["v"] = k, v
        if self.naive:
            scores = q @ k.transpose(-1, -2)
            y = scores.softmax(-1) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).flatten(-2))


class Block(nn.Module):
    def __init__(self, width: int, naive: bool) -> None:
        super().__init__()
        self.attention, self.norm = Attention(width, naive), nn.LayerNorm(width)
        wide = 4 * width
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, wide), nn.GELU(), nn.Linear(wide, width))

    def forward(self, x: torch.Tensor, past: dict[str, torch.Tensor] | None = None) -> torch.Tensor:
        x = x + self.attention(self.norm(x), past)
        return x + self.mlp(x)


class Model(nn.Module):
    def __init__(self, layers: int = 4, width: int = 512, *, naive: bool = False, saving: bool = False) -> None:
        super().__init__()
        self.embedding, self.saving = nn.Embedding(VOCABULARY, width), saving
        self.blocks = nn.ModuleList(Block(width, naive) for _ in range(layers))
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        self.register_buffer("mask", torch.ones(1024, 1024))

    def forward(self, tokens: torch.Tensor, past: list[dict[str, torch.Tensor]] | None = None) -> torch.Tensor:
        x = self.embedding(tokens)
        for number, block in enumerate(self.blocks):
            x = checkpoint(block, x, use_reentrant=False) if self.saving else block(x, past[number] if past else None)
        return self.head(x)


class Run:
    """What a program has made; writes the snapshot and the truth beside it."""

    def __init__(self, path: Path) -> None:
        self.path, self.modules, self.optimizers, self.written = path, [], [], False

    def model(self, **options: Any) -> Model:
        self.modules.append(Model(**options).cuda())
        return self.modules[-1]

    def adam(self, model: nn.Module, **options: Any) -> torch.optim.Optimizer:
        self.optimizers.append(torch.optim.AdamW(model.parameters(), lr=1e-4, **options))
        return self.optimizers[-1]

    def labels(self) -> list[list[Any]]:
        found: dict[int, list[Any]] = {}

        def add(tensor: object, category: str) -> None:
            if isinstance(tensor, torch.Tensor) and tensor.is_cuda:
                storage = tensor.untyped_storage()
                found.setdefault(storage.data_ptr(), [storage.data_ptr(), storage.nbytes(), category, ""])

        for module in self.modules:
            for parameter in module.parameters():
                add(parameter, "parameter")
                add(parameter.grad, "gradient")
            for buffer in module.buffers():
                add(buffer, "buffer")
        for optimizer in self.optimizers:
            for state in optimizer.state.values():
                for value in state.values():
                    add(value, "optimizer_state")
        return list(found.values())

    def write(self, *_: object) -> None:
        if not self.written:
            self.written = True
            self.path.with_suffix(".pickle").write_bytes(pickle.dumps(torch.cuda.memory._snapshot()))
            self.path.with_suffix(".json").write_text(json.dumps(self.labels()))


def cap(size: float) -> None:
    torch.cuda.set_per_process_memory_fraction(size * GIB / torch.cuda.get_device_properties(0).total_memory)


def tokens(batch: int = 8, length: int = 256) -> torch.Tensor:
    return torch.randint(0, VOCABULARY, (batch, length), device="cuda")


def loss_of(model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model(batch).flatten(0, 1), batch.flatten())


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 4, batch: int = 8) -> None:
    for _ in range(steps):
        loss_of(model, tokens(batch)).backward()
        optimizer.step()
        optimizer.zero_grad()


def steady(run: Run) -> None:
    model = run.model()
    train(model, run.adam(model))
    loss_of(model, tokens()).backward()


def fused_half(run: Run) -> None:
    model = run.model().bfloat16()
    train(model, run.adam(model, fused=True))
    loss_of(model, tokens()).backward()


def accumulation(run: Run) -> None:
    model = run.model()
    optimizer = run.adam(model)
    for _ in range(3):
        for _ in range(4):
            loss_of(model, tokens()).backward()
        optimizer.step()
        optimizer.zero_grad()
    loss_of(model, tokens()).backward()


def checkpointing(run: Run) -> None:
    model = run.model(saving=True)
    train(model, run.adam(model))
    loss_of(model, tokens()).backward()


def inference(run: Run) -> None:
    model = run.model().half()
    with torch.inference_mode():
        for _ in range(10):
            model(tokens()).argmax(-1).cpu()


def window(run: Run) -> None:
    model, kept = run.model(layers=2), collections.deque(maxlen=5)
    optimizer = run.adam(model)
    for _ in range(14):
        batch = tokens()
        out = model(batch)
        kept.append(out.detach().clone())
        F.cross_entropy(out.flatten(0, 1), batch.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()


def first_forward(run: Run) -> None:
    model = run.model(layers=12)
    optimizer = run.adam(model)
    cap(3)
    train(model, optimizer, batch=64)


def scores(run: Run) -> None:
    model = run.model(naive=True)
    train(model, run.adam(model), 2)
    cap(5)
    loss_of(model, tokens(4, 4096)).backward()


def teacher(run: Run) -> None:
    model = run.model()
    frozen = copy.deepcopy(model).requires_grad_(False)
    run.modules.append(frozen)
    train(model, run.adam(model))


def hook_list(run: Run) -> None:
    model, features = run.model(), []
    for block in model.blocks:
        block.register_forward_hook(lambda _module, _inputs, out: features.append(out.detach().clone()))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    run.optimizers.append(optimizer)
    train(model, optimizer, 60)


def results(run: Run) -> None:
    model, kept = run.model(), []
    train(model, run.adam(model), 3)
    cap(4)
    with torch.no_grad():
        while True:
            kept.append(model(tokens()))


def graphs(run: Run) -> None:
    model, kept = run.model(), []
    train(model, run.adam(model), 3)
    cap(6)
    while True:
        kept.append(model(tokens()).mean())


def cycles(run: Run) -> None:
    gc.disable()
    model = run.model(layers=2)
    optimizer = run.adam(model)
    cap(4)
    while True:
        holder = collections.UserDict()
        holder["self"], holder["out"] = holder, model(tokens())
        holder["out"].mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def generation(run: Run) -> None:
    model = run.model()
    cap(2)
    with torch.no_grad():
        past: list[dict[str, torch.Tensor]] = [{} for _ in model.blocks]
        batch = tokens(64, 16)
        while True:
            batch = model(batch, past)[:, -1:].argmax(-1)


PROGRAMS: dict[str, Callable[[Run], None]] = {
    program.__name__: program
    for program in (
        steady, fused_half, accumulation, checkpointing, inference, window, first_forward, scores, teacher,
        hook_list, results, graphs, cycles, generation,
    )
}  # fmt: skip


def main(name: str, folder: str) -> None:
    run = Run(Path(folder) / name)
    torch.cuda.memory._record_memory_history(max_entries=400_000, stacks="python")
    torch._C._cuda_attach_out_of_memory_observer(run.write)
    with contextlib.suppress(torch.OutOfMemoryError):
        PROGRAMS[name](run)
        run.write()


if __name__ == "__main__":
    main(*sys.argv[1:])
