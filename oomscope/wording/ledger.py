"""What the ledger says: what each remedy is called, how it is switched on, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from oomscope.analysis.ledger.records import Ledger, RemedyRow
from oomscope.units import format_bytes
from oomscope.wording.clean import clean
from oomscope.wording.plan import estimate_text
from oomscope.wording.template import Sentence

LEDGER: dict[str, Sentence] = {
    "ledger.up_to_the_failure": (
        "The recording ends with a request that failed: what a remedy makes of the run is known up to there, and what "
        "the program would ask for afterwards is not"
    ),
    "ledger.grows": (
        "Memory grows from pass to pass: what saves some of it only delays the failure, and is not called enough"
    ),
    "ledger.to_come": (
        "At the failure about {bytes:bytes} more were still to come, in the rest of the step or as optimizer state; a "
        "remedy is called enough only if that fits as well"
    ),
    "ledger.in_training_only": (
        "An evaluation keeps its graph, and checkpointing is taken to cover training only, as `if self.training` makes "
        "it; if it covers the evaluation too, the peak would be about {bytes:bytes}"
    ),
    "ledger.in_evaluations_too": (
        "An evaluation keeps its graph, and checkpointing is taken to cover it too; if the model checkpoints only "
        "`if self.training`, the peak would be about {bytes:bytes}"
    ),
    "ledger.logits_not_cast": (
        "With bf16, logits are taken to stay in 16 bits; if the program casts them for its loss (`logits.float()`), "
        "the peak would be about {bytes:bytes}"
    ),
    "ledger.logits_cast": (
        "With bf16, logits are taken to be cast for their loss (`logits.float()`); if they stay in 16 bits, the peak "
        "would be about {bytes:bytes}"
    ),
    "ledger.unknown_to_come": ("No earlier step shows what the rest of this one needs, so no remedy is called enough"),
    "ledger.left_out": "Time was up before these were tried; `--remedy` asks for one: {slugs:list}",
    "ledger.late": "The recording begins after the first allocation: what it found in place is laid out anew",
}


class LedgerWords(NamedTuple):
    """What a remedy is called, how it is switched on, and its price."""

    name: str
    how: str
    price: str


WORDS: Mapping[str, LedgerWords] = {
    "accumulate": LedgerWords(
        "accumulation over {value} micro-batches",
        "run batches of 1/{value} of the size, divide each loss by {value}, call `optimizer.step()` after {value}",
        "smaller kernels; batch statistics (BatchNorm) are those of a micro-batch",
    ),
    "checkpoint": LedgerWords(
        "activation checkpointing",
        "`torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)` around every block; in transformers "
        "`model.gradient_checkpointing_enable()`",
        "the forward of each block is computed twice, about a third more time",
    ),
    "autocast": LedgerWords(
        "bf16 autocast",
        '`with torch.autocast("cuda", dtype=torch.bfloat16):` around forward and loss',
        "8 bits of mantissa in matrix products; usually faster",
    ),
    "bf16": LedgerWords(
        "model, gradients and state in bf16",
        "`model.to(torch.bfloat16)` before the optimizer is made, and inputs in bf16",
        "small updates of the weights are lost to rounding",
    ),
    "sgd": LedgerWords(
        "SGD without momentum", "`torch.optim.SGD(parameters, lr)`", "another training; slower progress"
    ),
    "sgd_momentum": LedgerWords(
        "SGD with momentum", "`torch.optim.SGD(parameters, lr, momentum=0.9)`", "another training"
    ),
    "adafactor": LedgerWords(
        "Adafactor", "`torch.optim.Adafactor(parameters, lr)` (torch 2.5 and later)", "another training"
    ),
    "adam_8bit": LedgerWords(
        "Adam with 8-bit state", "`bitsandbytes.optim.AdamW8bit(parameters, lr)`", "a dependency; less precise state"
    ),
    "fused_optimizer": LedgerWords("the fused optimizer", "`fused=True`", "none on CUDA"),
    "fused_loss": LedgerWords(
        "logits and loss in {value} pieces",
        "a fused linear cross-entropy (Liger Kernel), or a checkpointed loop over {value} pieces of the tokens",
        "the last layer is computed twice",
    ),
    "sdpa": LedgerWords(
        "fused attention",
        '`torch.nn.functional.scaled_dot_product_attention`; in transformers `attn_implementation="sdpa"`',
        "none where a fused kernel takes the mask and the type",
    ),
    "set_to_none": LedgerWords(
        "gradients set to None", "`optimizer.zero_grad(set_to_none=True)`, the default since torch 2.0", "none"
    ),
    "zero1": LedgerWords(
        "ZeRO 1 over {value} ranks",
        "optimizer state is sharded: `ZeroRedundancyOptimizer`, or DeepSpeed `stage: 1`",
        "{value} GPUs; parameters are gathered after each step",
    ),
    "zero2": LedgerWords(
        "ZeRO 2 over {value} ranks",
        "state and gradients are sharded: DeepSpeed `stage: 2`, or FSDP `reshard_after_forward=False`",
        "{value} GPUs; gradients are scattered, parameters gathered",
    ),
    "zero3": LedgerWords(
        "ZeRO 3 over {value} ranks",
        "state, gradients and parameters are sharded: DeepSpeed `stage: 3`",
        "{value} GPUs; parameters are gathered twice a step",
    ),
    "fsdp": LedgerWords(
        "FSDP over {value} ranks",
        "`torch.distributed.fsdp.fully_shard` on every block and on the model",
        "{value} GPUs; parameters are gathered twice a step",
    ),
    "offload_state": LedgerWords(
        "optimizer state in host memory",
        "DeepSpeed `offload_optimizer`, or torchao `CPUOffloadOptimizer`",
        "gradients and parameters cross the bus every step",
    ),
    "offload_activations": LedgerWords(
        "activations in host memory",
        "`with torch.autograd.graph.save_on_cpu(pin_memory=True):` around the forward",
        "every activation crosses the bus twice",
    ),
    "optimizer_in_backward": LedgerWords(
        "optimizer step within the backward",
        "`parameter.register_post_accumulate_grad_hook`, one optimizer a parameter",
        "no clipping by the norm of all gradients, no accumulation",
    ),
    "no_grad": LedgerWords(
        "no_grad around what nothing trains",
        "`with torch.no_grad():`, or `torch.inference_mode()`",
        "nothing within can be trained",
    ),
    "bound_holder": LedgerWords(
        "nothing kept from pass to pass",
        "`.item()` or `.detach()` for what is kept where memory grows, or a bound on it; `oomscope report` names the "
        "holder",
        "none, if nobody needs what was kept",
    ),
    "raise_cap": LedgerWords(
        "the whole card", "raise `torch.cuda.set_per_process_memory_fraction`", "less is left for other processes"
    ),
}
SETTING = LedgerWords("{slug}", "`PYTORCH_ALLOC_CONF={slug}` (PYTORCH_CUDA_ALLOC_CONF before torch 2.9)", "")
_PRICES = {
    "expandable_segments": "some platforms do not support it (WSL2, Jetson)",
    "max_split_size_mb": "large blocks are not split, so more may be reserved for other requests",
    "roundup_power2_divisions": "every request is rounded up, so more is allocated",
    "garbage_collection_threshold": "memory is given back and taken again, which costs time",
}

TITLE = "Remedies for the peak"
HEADINGS = ("remedy", "peak would be", "saves", "enough")
SETTINGS_HEADINGS = ("allocator setting", "peak would be", "saves of reserved", "enough")
NOTHING = "No remedy that was tried lowers this peak."
EXPLAINED = (
    "Each row is the recorded trace, edited and replayed; the peak may lie elsewhere than in the recording. In "
    "brackets: the range in which it is expected. All of it is allocated memory, but for what a setting of the "
    "allocator saves: that is reserved memory."
)
EXPLAINED_ENOUGH = (
    "Enough: whether the run survives with this alone under the limit, with what was still to come where a request "
    "failed, at the upper end of the range; '?' where that is not certain."
)


def explained(ledger: Ledger) -> str:
    """What the columns mean."""
    return f"{EXPLAINED} {EXPLAINED_ENOUGH}" if says_enough(ledger) else EXPLAINED


def is_setting(row: RemedyRow) -> bool:
    """Whether a row is of a setting of the allocator: what it saves is reserved memory."""
    return row.slug not in WORDS


def says_enough(ledger: Ledger) -> bool:
    """Whether there is something that a remedy could be enough for."""
    return ledger.failed or ledger.limit is not None


def words_of(row: RemedyRow) -> LedgerWords:
    """Name, switch and price of a remedy."""
    words = WORDS.get(row.slug, SETTING)
    values = {"value": "n" if row.value is None else row.value, "slug": clean(row.slug, 200)}
    price = words.price if row.slug in WORDS else _PRICES.get(row.slug.partition(":")[0], "")
    return LedgerWords(words.name.format(**values), words.how.format(**values), price.format(**values))


def peak_text(row: RemedyRow) -> str:
    """The new peak with its range."""
    return estimate_text(row.peak_allocated)


def saves_text(row: RemedyRow) -> str:
    """What it saves: ``1.55 GiB``, or that it costs some."""
    return format_bytes(row.saves_bytes)


def enough_text(row: RemedyRow) -> str:
    """``yes``, ``no``, or ``?`` where nothing failed or it is not certain."""
    return {True: "yes", False: "no", None: "?"}[row.enough]


def opening_text(ledger: Ledger) -> str:
    """What the remedies are measured against."""
    failed = " with the request that failed" if ledger.failed else ""
    limit = "" if ledger.limit is None else f" Limit: {format_bytes(ledger.limit)}."
    return f"Peak of allocated memory{failed}: {format_bytes(ledger.peak_allocated)}.{limit}"


def pairs_text(ledger: Ledger) -> list[str]:
    """Which two remedies are enough together, a line each with its heading; nothing where there are none."""
    if not ledger.pairs:
        return []
    lines = [
        f"- {words_of(pair.first).name}, and {words_of(pair.second).name}: peak {estimate_text(pair.peak_allocated)}, "
        f"saves {format_bytes(pair.saves_bytes)}"
        for pair in ledger.pairs
    ]
    return ["No remedy is enough alone. Two together are:", *lines]


def skipped_text(ledger: Ledger) -> str:
    """Which remedies leave nothing to do here; empty where there are none."""
    if not ledger.skipped:
        return ""
    return f"Nothing to do here, or done already: {clean(', '.join(ledger.skipped), 400)}."
