"""The table fits once; its gradient, as large and dense, does not fit beside it."""

import torch
from torch import nn


class Recommender(nn.Module):
    def __init__(self, items=2_000_000, width=256):
        super().__init__()
        self.table = nn.Embedding(items, width)
        self.score = nn.Sequential(nn.Linear(width, 1024), nn.ReLU(), nn.Linear(1024, 1))

    def forward(self, items):
        return self.score(self.table(items).mean(1))


def train():
    model = Recommender().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(100):
        items = torch.randint(0, 2_000_000, (1024, 50), device="cuda")
        loss = model(items).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("step", step, "loss", loss.item())


train()
