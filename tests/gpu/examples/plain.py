import torch

import oomscope


@oomscope.record(output_dir="oom")
def evaluate():
    model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(16)]).cuda()
    total_loss = 0
    for _ in range(1000):
        batch = torch.randn(4096, 2048, device="cuda")
        total_loss += model(batch).pow(2).mean()  # keeps every step's graph
    return total_loss.item()


evaluate()
