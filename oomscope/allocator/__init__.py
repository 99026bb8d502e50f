"""A model of PyTorch's CUDA caching allocator, rule by rule, and the replay of a program through it."""

from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.rounding import allocation_size, round_size, round_sizes, should_split

__all__ = ["AllocatorConfig", "allocation_size", "round_size", "round_sizes", "should_split"]
