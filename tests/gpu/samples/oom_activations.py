"""Five batches of 8 × 512 tokens fit; the sixth, of 96 × 2048, does not."""

import torch
from gpt import GPT, loss_of


def batches():
    for shape in [(8, 512)] * 5 + [(96, 2048)]:
        yield torch.randint(0, 16_000, shape, device="cuda")


def train():
    model = GPT(layers=8).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step, tokens in enumerate(batches()):
        loss = loss_of(model(tokens), tokens)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("step", step, "loss", loss.item())


train()
