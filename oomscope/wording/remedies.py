"""Advice: what to do, why, and what it costs; by the slugs of `oomscope.analysis.remedies`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oomscope.units import format_bytes, format_count, format_limit, plural
from oomscope.wording.remedies_for_growth import GROWING
from oomscope.wording.remedies_for_retained import RETAINED
from oomscope.wording.remedy_words import RemedyWords
from oomscope.wording.replays import served
from oomscope.wording.template import holder, place, without_inner_workings


def _raise_cap(values: Mapping[str, Any]) -> str:
    cap = f"cap of {format_bytes(values['cap'])}" if values["cap"] else "cap"
    if values.get("set_at"):
        cap += f" (set at {place(values['set_at'])})"
    how = f": `torch.cuda.set_per_process_memory_fraction({values['fraction']:g})`" if values["fraction"] else ""
    return f"Raise the {cap} to {format_limit(values['least'])}, with some room to spare{how}."


def _smaller_steps(values: Mapping[str, Any]) -> str:
    if values.get("accumulates"):
        divisor = values["divisor"]
        return f"Divide each micro-batch by {divisor}, and accumulate the gradients of {divisor} times as many."
    some = f", if it has {values['samples']} samples or more" if values["samples"] else ""
    return f"Divide the batch by {values['divisor']} and accumulate the gradients of the parts{some}."


_WAYS = {
    "one_hot": "Do without the one-hot encoding at {place}: index with the labels (`gather`, `nll_loss`), or make it "
    "in pieces.",
    "pairs": "Compute the pairs at {place} in pieces, and reduce each piece (to a sum, to the nearest) before the "
    "next.",
    "sorted": "Sort piece by piece in {place}, and keep only what you need of each: its indices take 8 bytes an "
    "element.",
    "copies": "Use `expand` instead of copies at {place}, or work in pieces.",
    "broadcast": "Make {place} work in pieces: its operands are broadcast to {size}.",
}


def _split_request(values: Mapping[str, Any]) -> str:
    if (way := values.get("way")) is not None:
        return _WAYS[way].format(place=place(values["place"]), size=format_bytes(values["size"]))
    return (
        f"Make {place(values['place'])} work in pieces, and look for an accidental broadcast: N×1 against N, a one-hot "
        "encoding, pairwise distances."
    )


_SIDES = {2: "samples or length", 4: "samples or resolution", 5: "samples or resolution"}
"""What a tensor of so many sides has to be made smaller; of others it is not known."""


def _bound_batch(values: Mapping[str, Any]) -> str:
    what = f"`{without_inner_workings(values['variable']).rpartition(': ')[2]}`" if values["variable"] else "the input"
    sides = _SIDES.get(values["sides"], "samples, length or resolution")
    if values["stairs"]:
        return f"Keep {what} at {place(values['place'])} as small as in the passes that fitted: {sides}."
    return f"Limit {what} at {place(values['place'])}{_share(values) or f': {sides}'}."


def _share(values: Mapping[str, Any]) -> str:
    """More of the input than that does not fit, by sums that leave no holes; rounded down, where it is known."""
    share, elements = values["share"], values["elements"]
    if share is None:
        return ""
    if elements is None:
        return f" to less than {int(100 * share)} % of its size in this pass"
    most = int(share * elements)
    rounded = most - most % 10 ** max(len(str(most)) - 2, 0)
    return f" to less than {format_count(rounded)} elements ({format_count(elements)} in this pass)"


def _narrow(values: Mapping[str, Any]) -> str:
    made = f"what {place(values['place'])} makes" if values["place"] else ""
    if values["holder"] is None:
        return f"Keep {made} in float32 (`.float()`)."
    return f"Keep {holder(values['holder'])} in float32: `.float()` for {made or 'what it is given'}."


def _pool(values: Mapping[str, Any]) -> str:
    return holder(values["name"]) if values["name"] else "the MemPool ({}, {})".format(*values["number"])


def _setting(values: Mapping[str, Any]) -> str:
    setting, older = values["setting"], "PYTORCH_CUDA_ALLOC_CONF"
    cap = "; the fraction is the cap as it is" if "per_process_memory_fraction" in setting else ""
    if values.get("renamed") is None:
        return f"Run with `PYTORCH_ALLOC_CONF={setting}` ({older} before torch 2.9){cap}."
    return f"Run with `{'PYTORCH_ALLOC_CONF' if values['renamed'] else older}={setting}` in the environment{cap}."


def _price_of_setting(values: Mapping[str, Any]) -> str:
    return next((price for name, price in _PRICES.items() if values["setting"].startswith(name)), "")


def _replayed(values: Mapping[str, Any]) -> str:
    to_come = values.get("to_come")
    then = f" The optimizer still has to allocate {format_bytes(to_come)} of its state." if to_come else ""
    return f"Replayed on this recording, {served(values)}.{then}"


def _others(values: Mapping[str, Any]) -> str:
    who = ", ".join(values["others"])
    return f"End or move the other users of the card{f': {who}' if who else ' (nvidia-smi lists them)'}."


def _scattered(values: Mapping[str, Any]) -> str:
    sizes = format_bytes(values["largest"])
    if values["smallest"] != values["largest"]:
        sizes = f"{format_bytes(values['smallest'])} to {sizes}"
    places = plural(values["segments"], "segment or page", "segments or pages")
    return f"{plural(values['blocks'], 'block')} of {sizes} lie scattered over {places}."


_PRICES = {
    "expandable_segments": "some platforms do not support it (WSL2, Jetson), and some versions cannot share such "
    "tensors by IPC",
    "max_split_size_mb": "large blocks are not split, so more may be reserved for other requests",
    "roundup_power2_divisions": "every request is rounded up, so more is allocated",
    "garbage_collection_threshold": "memory is given back and taken again, which costs time",
    "empty_cache": "each call waits for the device, and what it gives back is taken again",
}

_WHAT_IS_KEPT = GROWING | RETAINED
REMEDIES: dict[str, RemedyWords] = _WHAT_IS_KEPT | {
    "raise_cap": RemedyWords(
        _raise_cap,
        "Of the new cap, {needed:bytes} is what the program is expected to reserve; the rest is for more holes[ and "
        "{passes:n more pass/more passes}]. The card has {free:bytes} free.",
        "",
        "memory",
    ),
    "bound_batch": RemedyWords(
        _bound_batch,
        "{passes:n pass/passes} with smaller inputs had fitted.",
    ),
    "undo_change": RemedyWords(
        "Find out what has changed before this pass[: what {place:place} makes is kept, and was not].",
        "Gradients may be recorded where they were not (parameters that were frozen, `no_grad`, checkpointing), or "
        "something keeps the outputs.",
    ),
    "smaller_batch.training": RemedyWords(
        _smaller_steps,
        "[{bytes:bytes} of what is in use grows with what a pass takes at once.]",
        "slower: smaller kernels",
        "faq",
    ),
    "smaller_batch": RemedyWords(
        "Divide the batch by {divisor}[, if it has {samples} samples or more].",
        "[{bytes:bytes} of what is in use grows with what a pass takes at once.]",
        "slower: smaller kernels",
        "faq",
    ),
    "checkpoint_activations": RemedyWords(
        "Checkpoint the blocks of the model (`torch.utils.checkpoint`).",
        "Activations ({bytes:bytes}) are then made again in backward instead of kept.",
        "the forward pass is computed twice",
        "checkpoint",
    ),
    "chunk_loss": RemedyWords(
        "Compute the loss in chunks, or with a fused linear cross-entropy, and do not convert all logits to float32 at "
        "once.",
        "Logits, their float32 copy and their gradient are alive together.",
        "a loop over chunks",
        "faq",
    ),
    "fused_attention": RemedyWords(
        "Use `scaled_dot_product_attention` instead of writing out the attention scores.",
        "Scores grow with the square of the sequence length.",
        "none where a fused kernel exists",
        "sdpa",
    ),
    "shard_optimizer_state": RemedyWords(
        "Use an optimizer with less state (8-bit Adam, Adafactor, SGD), or shard it over the ranks (FSDP, "
        "ZeroRedundancyOptimizer).",
        "The state is a multiple of the parameters.",
        "precision, or communication",
        "sharding",
    ),
    "shard_optimizer_state.history": RemedyWords(
        "Lower `history_size` of the L-BFGS optimizer (100 by default), to half of the steps that it has kept by now.",
        "It keeps two tensors as large as the parameters for each step of its history.",
        "slower convergence",
        "",
    ),
    "accumulate_predictions": RemedyWords(
        "Set `eval_accumulation_steps` (1, say) in the `TrainingArguments`: predictions then go to the CPU after so "
        "many steps. Or keep less of them, with `preprocess_logits_for_metrics`.",
        "The Trainer keeps what it has predicted, {bytes:bytes} by now, on the GPU until the evaluation ends.",
        "a copy to the CPU now and then",
        "faq",
    ),
    "fused_optimizer": RemedyWords(
        "Pass `fused=True` to the optimizer: it then updates in place.",
        "The foreach implementation makes temporaries as large as the parameters; `foreach=False`, which is slower, "
        "makes them for one parameter at a time.",
        "none",
        "optimizers",
    ),
    "fused_optimizer.foreach": RemedyWords(
        "Pass `foreach=False` to the optimizer.",
        "The foreach implementation makes temporaries as large as the parameters; without it they are made for one "
        "parameter at a time.",
        "slower steps",
        "optimizers",
    ),
    "drop_gradients": RemedyWords(
        "Call `optimizer.zero_grad(set_to_none=True)` right after the step.",
        "Gradients that are None take no memory during the next forward pass.",
        "none; it is the default since torch 2.0",
        "optimizers",
    ),
    "shard_parameters": RemedyWords(
        "Keep the parameters in bfloat16, or shard the model (FSDP).",
        "They are there all the time.",
        "precision, or communication",
        "sharding",
    ),
    "shard_parameters.small": RemedyWords(
        "Shard the model (FSDP).", "Its parameters are there all the time.", "communication", "sharding"
    ),
    "load_on_cpu": RemedyWords(
        'Load the checkpoint[ at {place:place}] on the CPU (`map_location="cpu"`): `load_state_dict` copies it to the '
        "device.",
        "It has put {bytes:bytes} on the device beside the tensors that it is to fill.",
        "none",
        "loading",
    ),
    "load_once": RemedyWords(
        'Load the weights on the CPU (`map_location="cpu"`), or share them between the two copies.',
        "The model is on the device twice.",
        "a copy to the device",
        "loading",
    ),
    "narrow_dtype": RemedyWords(
        _narrow,
        "{bytes:bytes} of it is float64, while the model is float32: NumPy's default, and what a float64 tensor makes "
        "of all that is computed with it.",
        "half of the digits, as many as the model's own numbers have",
        "types",
    ),
    "move_idle_model": RemedyWords(
        'Move {holder:holder} to the CPU while another model runs (`.to("cpu")`; `enable_model_cpu_offload()` of a '
        "diffusers pipeline).",
        "No call of it was underway when the request failed.",
        "a copy back to the device each time it is needed",
        "loading",
    ),
    "move_idle_model.untrained": RemedyWords(
        'If training does not use {holder:holder}, move it to the CPU (`.to("cpu")`) or let go of it.',
        "None of its parameters has a gradient.",
        "a copy back to the device each time it is needed",
        "loading",
    ),
    "bound_cache": RemedyWords(
        "Give the key-value cache a smaller budget: shorter contexts, fewer sequences at once, or a smaller type.",
        "It holds {bytes:bytes}, a budget that the program chose.",
        "fewer or shorter sequences",
        "faq",
    ),
    "share_graph_pool": RemedyWords(
        "Capture the graphs into one pool (`pool=first_graph.pool()`), the largest batch first, or capture fewer "
        "sizes.",
        "Graphs that are not replayed at the same time can share a pool; now each keeps its own free memory.",
        "graphs of one pool must be replayed in the order of their capture",
        "graphs",
    ),
    "let_pool_go": RemedyWords(
        lambda values: (
            f"Let go of {_pool(values)} while it is not used (`del` all that refers to it), or make what is needed"
            " meanwhile in it (`torch.cuda.use_mem_pool`)."
        ),
        "{bytes:bytes} are free in it in whole segments; the allocator keeps them for that pool alone as long as it"
        " lives, and torch.cuda.empty_cache() leaves them.",
        "the pool has to ask the driver anew when it is used again",
        "memory",
    ),
    "one_stream": RemedyWords(
        "Allocate on one stream, or wait for the side stream (`stream.synchronize()`, `wait_stream`) before the next "
        "large request; avoid `record_stream` where the order of streams is known.",
        "A block goes back only to its own stream; one marked with `record_stream`, only once that stream's work is "
        "done.",
        "waiting costs overlap",
        "memory",
    ),
    "one_stream.kept": RemedyWords(
        "Copy what {place:place} made on the other stream to this one (`.clone()`) and let go of the original, or make "
        "it on this stream.",
        "{bytes:bytes} of it are all that keeps that stream's memory from being given back to the device.",
        "a copy",
        "memory",
    ),
    "one_stream.free": RemedyWords(
        "Allocate on one stream, or call `torch.cuda.empty_cache()` once the other stream's work is done.",
        "A block that is freed goes back only to the stream it was allocated on.",
        "empty_cache waits for the device",
        "memory",
    ),
    "retry_request": RemedyWords(
        "Catch the error and ask again, or call `torch.cuda.synchronize()` before a request this large.",
        "{opened:bytes} came free in one piece during the failing call; torch releases up to 2.11 do not look again, "
        "newer ones may.",
        "a wait for the other stream",
        "issue",
    ),
    "free_the_card": RemedyWords(_others, "Nothing in this process's own allocations is unusual.", "", "memory"),
    "split_request": RemedyWords(
        _split_request,
        "It asks for one tensor of {size:bytes}.",
        "a loop over pieces",
        "faq",
    ),
    "limit_calls_in_progress": RemedyWords(
        "Run at most {most:n call} of {function} at once instead of {calls}: a smaller thread pool, a semaphore, or a "
        "queue.",
        "{calls:n call} of it held memory at the same time[: {bytes:bytes}].",
        "requests wait",
        "memory",
    ),
    "allocator_setting.replayed": RemedyWords(_setting, _replayed, _price_of_setting, "conf"),
    "allocator_setting.empty_cache": RemedyWords(
        lambda values: f"Call torch.cuda.{values['setting'].replace('empty_cache', 'empty_cache()', 1)}.",
        _replayed,
        _price_of_setting,
        "conf",
    ),
    "allocator_setting.untried": RemedyWords(
        _setting,
        "Freed pages then serve requests of any size. It was not tried here: `oomscope whatif` tells whether it is "
        "enough.",
        _price_of_setting,
        "conf",
    ),
    "move_pins": RemedyWords(
        "Write what {place:place} allocates into one tensor made beforehand, or copy it to the CPU: then the free "
        "pieces can be joined.",
        _scattered,
        "",
        "memory",
    ),
    "move_pins.one": RemedyWords(
        "Make what {place:place} allocates before the large tensors, or copy it to the CPU: then the free pieces "
        "beside it can be joined.",
        "One block of {largest:bytes} keeps the rest of its segment.",
        "",
        "memory",
    ),
    "bucket_lengths": RemedyWords(
        "Pad or sort the lengths into buckets, and run the largest batch first.",
        "{place:place} has asked for {sizes:count} different sizes; each leaves its own holes.",
        "padding is computed as well",
        "conf",
    ),
    "refuted.empty_cache": RemedyWords(
        "torch.cuda.empty_cache()",
        "Before it failed, the allocator released every free segment itself; {releasable:bytes} were left to release.",
    ),
    "refuted.empty_cache.before": RemedyWords(
        "torch.cuda.empty_cache() right before the request",
        "Before it failed, the allocator released every free segment itself; {releasable:bytes} were left to release."
        " What calls after every step would do was not replayed.",
    ),
    "refuted.smaller_batch.fixed": RemedyWords(
        "A smaller batch", "It does not shrink {bytes:bytes} of parameters, gradients and optimizer state."
    ),
    "refuted.smaller_batch.growth": RemedyWords("A smaller batch", "It only delays the failure: the growth remains."),
    "refuted.expandable.on": RemedyWords("expandable_segments", "It was already on."),
    "refuted.expandable.nothing_free": RemedyWords(
        "PYTORCH_ALLOC_CONF=expandable_segments:True",
        "It makes fragmented memory usable, but only {usable:bytes} are free, and the request needs {size:bytes}.",
    ),
    "refuted.setting.replayed": RemedyWords(
        "PYTORCH_ALLOC_CONF={settings}", "Replayed on this recording, the request fails with it as well."
    ),
}
