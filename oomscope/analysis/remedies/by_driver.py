"""What is known to shrink each kind of live bytes, from PyTorch's documentation."""

from __future__ import annotations

from typing import NamedTuple

MEMORY = "PyTorch documentation, CUDA semantics: memory management"
CONF = "PyTorch documentation, CUDA semantics: optimizing memory usage with PYTORCH_ALLOC_CONF"
GRAPHS = "PyTorch documentation, CUDA semantics: graph memory management"
FAQ = "PyTorch documentation, FAQ: my model reports out of memory"
CHECKPOINT = "PyTorch documentation, torch.utils.checkpoint"
SDPA = "PyTorch documentation, torch.nn.functional.scaled_dot_product_attention"
SHARDING = "PyTorch documentation, FullyShardedDataParallel and ZeroRedundancyOptimizer"
OPTIMIZERS = "PyTorch documentation, torch.optim"
LOADING = "PyTorch documentation, torch.load"


class Remedy(NamedTuple):
    """What to do about a driver. `share`: how much of its bytes that saves, about."""

    action: str
    why: str
    share: float
    price: str
    source: str


REMEDIES = {
    "activations": Remedy(
        "Checkpoint the blocks of the model (torch.utils.checkpoint), or run smaller micro-batches and accumulate "
        "gradients.",
        "Checkpointing drops about half of the activations; a smaller batch, in proportion.",
        0.5,
        "Checkpointing computes the forward pass twice",
        CHECKPOINT,
    ),
    "logits": Remedy(
        "Compute the loss in chunks, or by a fused linear cross-entropy, and do not upcast all logits at once.",
        "Logits, their float copy and their gradient are alive together.",
        0.5,
        "A loop over chunks",
        FAQ,
    ),
    "attention_scores": Remedy(
        "Use scaled_dot_product_attention instead of building the scores.",
        "Scores grow with the square of the length.",
        1.0,
        "none where a fused kernel exists",
        SDPA,
    ),
    "optimizer_state": Remedy(
        "Shard the optimizer state over the ranks (FSDP, ZeroRedundancyOptimizer), or use an optimizer with less state "
        "(8-bit, Adafactor, SGD).",
        "The state is as large as a multiple of the parameters, whatever the batch.",
        0.5,
        "Communication, or less precise state",
        SHARDING,
    ),
    "optimizer_temporaries": Remedy(
        "Use fused=True, or foreach=False, in the optimizer.",
        "The foreach implementation holds temporaries as large as the parameters.",
        1.0,
        "foreach=False is slower",
        OPTIMIZERS,
    ),
    "gradients": Remedy(
        "Call optimizer.zero_grad(set_to_none=True) right after the step.",
        "Gradients that are set to None are not there during the next forward pass.",
        1.0,
        "none; it is the default since torch 2.0",
        OPTIMIZERS,
    ),
    "parameters": Remedy(
        "Keep the parameters in a smaller type, or shard the model (FSDP).",
        "They are there all the time.",
        0.5,
        "Precision, or communication",
        SHARDING,
    ),
    "duplicate_model": Remedy(
        "Load the weights on the CPU (map_location='cpu'), or on the meta device with assign=True.",
        "Two sets of equal tensors are alive.",
        1.0,
        "none",
        LOADING,
    ),
    "kv_cache": Remedy(
        "Bound the cache: a smaller share for it, shorter contexts, fewer sequences at once, or a smaller type.",
        "It is a budget chosen by the program.",
        0.5,
        "Fewer or shorter sequences",
        FAQ,
    ),
    "accumulated_tensors": Remedy(
        "Move collected results to the CPU as they come.",
        "They are kept on the device and not used there.",
        1.0,
        "A copy for each step",
        FAQ,
    ),
    "retained_graph": Remedy(
        "Detach what is kept from step to step.",
        "A tensor that requires gradients keeps the graph that made it.",
        1.0,
        "none",
        FAQ,
    ),
}
