"""An evaluation without `no_grad()` adds up the losses as tensors: their sum keeps the graph of every pass."""

import torch
from gpt import GPT, loss_of


def batch():
    return torch.randint(0, 16_000, (4, 256), device="cuda")


def train(model, optimizer, steps):
    for _ in range(steps):
        tokens = batch()
        loss = loss_of(model(tokens), tokens)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluate(model, passes):
    total_loss = 0
    for _ in range(passes):
        tokens = batch()
        loss = loss_of(model(tokens), tokens)
        total_loss = total_loss + loss
    return total_loss.item() / passes


model = GPT(layers=6).cuda()
optimizer = torch.optim.AdamW(model.parameters())
train(model, optimizer, steps=4)
print("loss", evaluate(model, passes=500))
