"""What a remedy says, and where it is documented."""

from __future__ import annotations

from typing import NamedTuple

from oomscope.wording.template import Sentence

SOURCES = {
    "": "",
    "memory": "PyTorch documentation, CUDA semantics: memory management",
    "conf": "PyTorch documentation, CUDA semantics: optimizing memory usage with PYTORCH_ALLOC_CONF",
    "graphs": "PyTorch documentation, CUDA semantics: graph memory management",
    "torchmetrics": "torchmetrics documentation, torchmetrics.Metric: compute_on_cpu",
    "faq": "PyTorch documentation, FAQ: my model reports out of memory",
    "checkpoint": "PyTorch documentation, torch.utils.checkpoint",
    "sdpa": "PyTorch documentation, torch.nn.functional.scaled_dot_product_attention",
    "sharding": "PyTorch documentation, FullyShardedDataParallel and ZeroRedundancyOptimizer",
    "optimizers": "PyTorch documentation, torch.optim",
    "types": "PyTorch documentation, torch.Tensor: data types, and type promotion",
    "loading": "PyTorch documentation, torch.load",
    "extending": "PyTorch documentation, extending PyTorch",
    "gc": "Python documentation, gc",
    "traceback": "Python documentation, traceback.clear_frames",
    "issue": "PyTorch issue 189504",
}


class RemedyWords(NamedTuple):
    """What to do, why, what it costs, and a key of `SOURCES`."""

    action: Sentence
    why: Sentence = ""
    price: Sentence = ""
    source: str = ""
