"""A recording leaves activation checkpointing alone, whose recomputation ends by an exception."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.gpu

from tests.gpu.test_programs import start  # noqa: E402

PROGRAM = """
import sys
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
import oomscope


class Block(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.modulate = nn.Linear(width, 6 * width)
        self.inner = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, condition):
        shift, scale, gate, shift2, scale2, gate2 = self.modulate(condition).chunk(6, -1)
        x = x + gate[:, None] * self.inner(self.norm(x) * (1 + scale[:, None]) + shift[:, None])
        return x + gate2[:, None] * self.mlp(self.norm(x) * (1 + scale2[:, None]) + shift2[:, None])


def train():
    torch.manual_seed(0)
    blocks = nn.ModuleList(Block() for _ in range(4)).cuda()
    optimizer = torch.optim.SGD(blocks.parameters(), lr=1e-2)
    for _ in range(4):
        x, condition = torch.randn(8, 64, 256, device="cuda"), torch.randn(8, 256, device="cuda")
        for block in blocks:
            x = checkpoint(block, x, condition, use_reentrant=False)
        loss = x.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"{loss.item():.10f}")


if sys.argv[1] == "recorded":
    with oomscope.record():
        train()
else:
    train()
"""


def run(how, folder):
    (folder / "job.py").write_text(PROGRAM)
    return start(["job.py", how], folder)


def test_a_recorded_job_is_the_same(tmp_path):
    plain, recorded = run("plain", tmp_path), run("recorded", tmp_path)
    assert plain.returncode == 0, plain.stderr
    assert (recorded.returncode, recorded.stdout) == (0, plain.stdout), recorded.stderr
