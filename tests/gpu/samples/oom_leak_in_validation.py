"""The metric keeps what the model predicted, on the GPU and with its graph, and is never reset between epochs."""

import torch
from gpt import GPT, loss_of


class Perplexity:
    def __init__(self):
        self.outputs = []

    def update(self, logits, tokens):
        self.outputs.append({"logits": logits, "tokens": tokens})

    def compute(self):
        losses = [loss_of(output["logits"], output["tokens"]).item() for output in self.outputs]
        return 2.718 ** (sum(losses) / len(losses))


def batch():
    return torch.randint(0, 8000, (8, 512), device="cuda")


def train(model, optimizer, steps):
    for _ in range(steps):
        tokens = batch()
        loss = loss_of(model(tokens), tokens)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def validate(model, metric, passes):
    model.eval()
    for _ in range(passes):
        tokens = batch()
        metric.update(model(tokens), tokens)
    model.train()


def main():
    model = GPT(layers=4, width=256, vocabulary=8000).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    metric = Perplexity()
    for epoch in range(10):
        train(model, optimizer, steps=4)
        validate(model, metric, passes=6)
        print("epoch", epoch, "perplexity", metric.compute())


main()
