"""Sixteen requests are answered at once, each with what it has encoded so far; together they need too much."""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

encoder = nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), nn.Linear(2048, 1024)).cuda().eval()


@torch.no_grad()
def answer(request):
    encoded = []
    for _ in range(20):
        page = torch.randn(4096, 1024).cuda()
        encoded.append(encoder(page))
    return torch.cat(encoded).mean().item()


with ThreadPoolExecutor(16) as pool:
    print(sum(pool.map(answer, range(64))))
