"""What drivers are called: one entry each, a label in tables and a phrase in sentences."""

from __future__ import annotations

from oomscope.frozen import frozen


@frozen
class DriverWords:
    """The words of one driver.

    Attributes:
        label: in a table, under a heading that says what the column is.
        phrase: in a sentence, followed by a size.
    """

    label: str
    phrase: str


DRIVERS = {
    "activations": DriverWords("activations", "activations"),
    "parameters": DriverWords("parameters", "parameters"),
    "gradients": DriverWords("gradients", "gradients"),
    "optimizer_state": DriverWords("optimizer state", "optimizer state"),
    "optimizer_temporaries": DriverWords("optimizer temporaries", "temporaries of the optimizer step"),
    "logits": DriverWords("logits", "logits and their loss"),
    "attention_scores": DriverWords("attention scores", "attention scores"),
    "kv_cache": DriverWords("key-value cache", "key-value cache"),
    "retained_graph": DriverWords("autograd graphs kept from earlier passes", "autograd graphs of earlier passes"),
    "accumulated_tensors": DriverWords("tensors kept from earlier passes", "tensors kept from earlier passes"),
    "duplicate_model": DriverWords("second model", "a second model"),
    "cuda_graphs": DriverWords("memory of CUDA graphs", "memory of CUDA graphs"),
    "workspace": DriverWords("workspaces", "library workspaces"),
    "unknown": DriverWords("unknown", "tensors of unknown kind"),
}
DRIVER_LABELS = {slug: words.label for slug, words in DRIVERS.items()}
DRIVER_PHRASES = {slug: words.phrase for slug, words in DRIVERS.items()}
