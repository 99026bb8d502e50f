"""Weights and gradients fit; AdamW makes its two moments in the first `step()`, and these do not."""

import torch
from gpt import GPT, loss_of


def train():
    model = GPT(layers=18, width=1280, vocabulary=8000).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(100):
        tokens = torch.randint(0, 8000, (1, 128), device="cuda")
        loss = loss_of(model(tokens), tokens)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("step", step, "loss", loss.item())


train()
