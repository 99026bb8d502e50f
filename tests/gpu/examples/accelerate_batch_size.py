import torch
from accelerate.utils import find_executable_batch_size

import oomscope


@oomscope.record(output_dir="oom")  # outside: it sees the OOMs that are caught inside
def main():
    @find_executable_batch_size(starting_batch_size=65536)
    def train(batch_size):
        model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)]).cuda()
        for _ in range(3):
            model(torch.randn(batch_size, 2048, device="cuda")).pow(2).mean().backward()
        return batch_size

    print("batch size", train())


main()
