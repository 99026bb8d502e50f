"""A server captures a CUDA graph for each batch size; each gets a private pool, which no other graph may use."""

import torch
from gpt import GPT


@torch.no_grad()
def capture(model, batch_size):
    tokens = torch.randint(0, 16_000, (batch_size, 512), device="cuda")
    model(tokens[:1]).argmax(-1)  # libraries want to be warm before a capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        answer = model(tokens).argmax(-1)
    return graph, tokens, answer


def main():
    model = GPT(layers=6).cuda().eval()
    graphs = {}
    for batch_size in range(8, 257, 8):
        graphs[batch_size] = capture(model, batch_size)
        print("captured", batch_size)


main()
