"""Data-parallel training on two GPUs: the second rank is given batches three times as large as the first's."""

import os

import torch
import torch.distributed as dist
from gpt import GPT, loss_of
from torch.nn.parallel import DistributedDataParallel

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(GPT(layers=6).cuda(), device_ids=[rank])
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    tokens = torch.randint(0, 16_000, ((8, 24)[rank], 512), device="cuda")
    loss = loss_of(model(tokens), tokens)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("rank", rank, "step", step, "loss", loss.item())
dist.destroy_process_group()
