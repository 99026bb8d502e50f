"""A cache of tensors of all sizes is thinned out: what is freed lies in holes between what stays."""

import random

import torch


def fill_cache(count):
    sizes = random.Random(0)
    return [torch.empty(sizes.randint(2 << 20, 9 << 20), dtype=torch.uint8, device="cuda") for _ in range(count)]


def drop_every_other(cache):
    del cache[::2]


def main():
    cache = fill_cache(1300)
    drop_every_other(cache)
    print("cached:", sum(tensor.numel() for tensor in cache) >> 20, "MiB")
    large = torch.empty(1200 << 20, dtype=torch.uint8, device="cuda")
    print("never reached:", large.shape, len(cache))


main()
