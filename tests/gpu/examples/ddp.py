import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import oomscope


@oomscope.record(output_dir="oom")
def train():
    local_rank = int(os.environ["LOCAL_RANK"])
    device = local_rank % torch.cuda.device_count()
    torch.cuda.set_device(device)
    dist.init_process_group("nccl" if torch.cuda.device_count() >= dist_size() else "gloo")
    model = DistributedDataParallel(torch.nn.Linear(4096, 4096).cuda(), device_ids=[device])
    kept = []
    for _ in range(1000):
        output = model(torch.randn(4096, 4096, device="cuda"))
        output.mean().backward()
        if dist.get_rank() == 1:
            kept.append(output.detach())  # only one rank leaks


def dist_size():
    return int(os.environ["WORLD_SIZE"])


train()
