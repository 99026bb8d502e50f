"""Four steps of a small GPT with AdamW under bf16 autocast."""

import torch
from gpt import GPT, loss_of

model = GPT(layers=8).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(4):
    tokens = torch.randint(0, 16_000, (8, 1024), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = loss_of(model(tokens), tokens)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, "loss", loss.item())
