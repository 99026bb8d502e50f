"""The first OOM is kept for a message; its traceback keeps what the failed step had, and no smaller batch fits."""

import torch
from gpt import GPT, loss_of


def train_step(model, batch_size):
    tokens = torch.randint(0, 16_000, (batch_size, 512), device="cuda")
    loss = loss_of(model(tokens), tokens)
    loss.backward()
    return loss.item()


def largest_batch(model, sizes):
    failures = []
    for batch_size in sizes:
        try:
            print("batch size", batch_size, "loss", train_step(model, batch_size))
            return batch_size
        except torch.OutOfMemoryError as error:
            failures.append(error)
    raise RuntimeError("no batch size fits") from failures[0]


print(largest_batch(GPT(layers=6).cuda(), sizes=[96, 16]))
