# In [1]
import torch

import oomscope

model = torch.nn.Linear(4096, 4096).cuda()
history = []

# In [2]
with oomscope.record(output_dir="oom") as recording:
    for _ in range(1000):
        output = model(torch.randn(8192, 4096, device="cuda"))
        history.append(output)

# In [3]
print("the snapshot:", recording.files[-1])
