"""What drivers are called: a label in tables, a phrase in sentences."""

from __future__ import annotations

DRIVER_PHRASES = {
    "activations": "activations",
    "parameters": "parameters",
    "gradients": "gradients",
    "optimizer_state": "optimizer state",
    "optimizer_temporaries": "temporaries of the optimizer step",
    "logits": "logits and their loss",
    "attention_scores": "attention scores",
    "kv_cache": "key-value cache",
    "retained_graph": "autograd graphs of earlier passes",
    "accumulated_tensors": "tensors kept from earlier passes",
    "duplicate_model": "second copy of the model",
    "workspace": "library workspaces",
    "unknown": "tensors of unknown kind",
}
