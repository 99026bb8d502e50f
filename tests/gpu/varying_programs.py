"""Programs whose requests vary in size, computing for real. Run by `test_whatif`, one process a run.

Run as ``python -m tests.gpu.varying_programs NAME CAP [SNAPSHOT]`` with the settings in ``PYTORCH_ALLOC_CONF``: prints
what the allocator counted, as JSON. CAP is in bytes, 0 for none; a SNAPSHOT is recorded from before the first request.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = "cuda"


class Speech(nn.Module):
    """A convolutional front end, a GRU, and a transformer over it."""

    def __init__(self, width: int = 768) -> None:
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv1d(80, width, 5, padding=2), nn.GELU(), nn.Conv1d(width, width, 3, 2, 1), nn.GELU()
        )
        self.recurrent = nn.GRU(width, width, batch_first=True)
        layer = nn.TransformerEncoderLayer(width, 12, 4 * width, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
        self.out = nn.Linear(width, 4096)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.recurrent(self.front(x).transpose(1, 2))
        return self.out(self.encoder(hidden))


def speech(rng: random.Random) -> None:
    """Training with batches of about as many frames each, gradients clipped, an evaluation now and then."""
    model = Speech().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(24):
        frames = rng.randrange(200, 2400)
        x = torch.randn(max(48_000 // frames, 1), 80, frames, device=DEVICE)
        loss = F.cross_entropy(model(x).flatten(0, 1), torch.zeros(1, dtype=torch.long, device=DEVICE).expand(
            x.shape[0] * ((frames + 1) // 2)))  # fmt: skip
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 8 == 7:
            with torch.no_grad():
                kept = [model(torch.randn(4, 80, n, device=DEVICE)).softmax(-1) for n in range(300, 1500, 300)]
            del kept


def stage(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(),
        nn.Conv2d(after, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(),
    )  # fmt: skip


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = (3, 48, 96, 192, 384)
        self.down = nn.ModuleList(stage(*pair) for pair in itertools.pairwise(widths))
        self.up = nn.ModuleList(stage(a + b, b) for a, b in ((384, 192), (192, 96), (96, 48)))
        self.out = nn.Conv2d(48, 8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for part in self.down:
            x = part(x)
            kept.append(x)
            x = F.max_pool2d(x, 2)
        x = kept.pop()
        for part in self.up:
            skip = kept.pop()
            x = part(torch.cat([F.interpolate(x, skip.shape[-2:]), skip], 1))
        return self.out(x)


def segmentation(rng: random.Random) -> None:
    """Mixed precision, images of all sizes, an average of the weights beside them."""
    model = UNet().to(DEVICE)
    average = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    for step in range(24):
        height, width = (16 * rng.randrange(12, 48) for _ in range(2))
        x = torch.randn(rng.choice((2, 4, 6)), 3, height, width, device=DEVICE)
        with torch.autocast(DEVICE, torch.bfloat16):
            logits = model(x)
        loss = F.cross_entropy(logits.float(), torch.zeros(x.shape[0], height, width, dtype=torch.long, device=DEVICE))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 4 == 3:
            average.update_parameters(model)


def serving(rng: random.Random) -> None:
    """Generation for requests that come and go, each with a cache that is made anew, a little longer, every token."""
    width, heads = 2048, 16
    layers = [nn.Linear(width, 3 * width, bias=False, device=DEVICE, dtype=torch.bfloat16) for _ in range(6)]
    running: list[dict] = []
    with torch.inference_mode():
        for _ in range(150):
            if len(running) < 8 and rng.random() < 0.5:
                prompt = torch.randn(
                    rng.randrange(1, 5), rng.randrange(100, 6000), width, device=DEVICE, dtype=torch.bfloat16
                )
                running.append({"x": prompt, "cache": [None] * len(layers), "left": rng.randrange(5, 60)})
            for one in running:
                x = one["x"]
                for number, layer in enumerate(layers):
                    q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in layer(x).chunk(3, -1))
                    if one["cache"][number] is not None:
                        old_k, old_v = one["cache"][number]
                        k, v = torch.cat([old_k, k], 2), torch.cat([old_v, v], 2)
                    one["cache"][number] = k, v
                    x = x + F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)
                one["x"], one["left"] = x[:, -1:], one["left"] - 1
            running = [one for one in running if one["left"]]


PROGRAMS: dict[str, Callable[[random.Random], None]] = {
    "speech": speech,
    "segmentation": segmentation,
    "serving": serving,
}


def main(name: str, cap: int, snapshot: str | None) -> None:
    torch.manual_seed(7)
    if cap:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction((cap + 0.5) / total)
    if snapshot:
        torch.cuda.memory._record_memory_history(max_entries=4_000_000, stacks="python")
    oom = False
    try:
        PROGRAMS[name](random.Random(11))
    except torch.cuda.OutOfMemoryError as error:
        oom = True
        error.__traceback__ = None
    stats = torch.cuda.memory_stats()
    if snapshot:
        torch.cuda.memory._dump_snapshot(snapshot)
    print(json.dumps({
        "oom": oom, "peak_reserved": stats["reserved_bytes.all.peak"],
        "peak_allocated": stats["allocated_bytes.all.peak"],
        "retries": stats["num_alloc_retries"], "allocations": stats["allocation.all.allocated"],
    }))  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
