"""Advice: what to do, why, and what it costs; by the slugs of `oomscope.analysis.remedies`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from oomscope.units import format_bytes, format_limit, plural
from oomscope.wording.replays import served
from oomscope.wording.template import Sentence, holder, place

SOURCES = {
    "": "",
    "memory": "PyTorch documentation, CUDA semantics: memory management",
    "conf": "PyTorch documentation, CUDA semantics: optimizing memory usage with PYTORCH_ALLOC_CONF",
    "graphs": "PyTorch documentation, CUDA semantics: graph memory management",
    "faq": "PyTorch documentation, FAQ: my model reports out of memory",
    "checkpoint": "PyTorch documentation, torch.utils.checkpoint",
    "sdpa": "PyTorch documentation, torch.nn.functional.scaled_dot_product_attention",
    "sharding": "PyTorch documentation, FullyShardedDataParallel and ZeroRedundancyOptimizer",
    "optimizers": "PyTorch documentation, torch.optim",
    "loading": "PyTorch documentation, torch.load",
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


def _many_places(values: Mapping[str, Any]) -> str:
    places = [place(one) for one in values["places"]]
    made = f"what {', '.join(places)} made" if places else "what was made"
    passes = plural(values["passes"], "pass", "passes")
    return f"A tensor that requires gradients keeps the graph that made it: {made} in {passes} is still alive."


def _raise_cap(values: Mapping[str, Any]) -> str:
    was = f"of {format_bytes(values['cap'])} " if values["cap"] else ""
    how = f", `torch.cuda.set_per_process_memory_fraction({values['fraction']:g})`" if values["fraction"] else ""
    kept = f"the card has {format_bytes(values['free'])} free that the cap keeps from this process"
    return f"Raise the cap {was}to {format_limit(values['least'])}{how}: {kept}."


def _pool(values: Mapping[str, Any]) -> str:
    return holder(values["name"]) if values["name"] else "the MemPool ({}, {})".format(*values["number"])


def _break_cycle(values: Mapping[str, Any]) -> str:
    way = values["holder"].removeprefix("reference cycle: ")
    return f"Break the cycle ({way}), or call `gc.collect()` after each pass."


def _setting(values: Mapping[str, Any]) -> str:
    return f"Set PYTORCH_ALLOC_CONF={values['setting']} (PYTORCH_CUDA_ALLOC_CONF before torch 2.9)."


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

REMEDIES: dict[str, RemedyWords] = {
    "detach_what_is_kept.holder": RemedyWords(
        "Store numbers (`.item()`) or `.detach().cpu()` tensors in {holder:holder}, or run that code under "
        "`torch.no_grad()`.",
        "Each tensor in it keeps the autograd graph that made it[: {per_pass:bytes} a pass].",
        "none, if nothing later calls backward on them",
        "faq",
    ),
    "detach_what_is_kept.carried": RemedyWords(
        "Detach {holder:holder} before the next pass (`.detach()`, or `.item()` for a number). If a backward needs it, "
        "call `backward()` in every pass.",
        "It keeps the autograd graphs of the passes before[: {per_pass:bytes} a pass].",
        "none, if nothing later calls backward on it",
        "faq",
    ),
    "detach_what_is_kept": RemedyWords(
        "Keep numbers, not tensors: use `.item()` or `.detach()` on whatever is kept from pass to pass (a running "
        "loss, a hidden state that is carried on, a list, a dict of metrics, a hook), without `retain_graph=True`.",
        _many_places,
        "none, if nothing later calls backward on them",
        "faq",
    ),
    "bound_what_is_kept.holder": RemedyWords(
        "Empty {holder:holder}, limit its size, or move what it keeps to the CPU (`.cpu()`).",
        "{bytes:bytes} of what it keeps can go.",
        "a copy back where the device needs it again",
        "faq",
    ),
    "bound_what_is_kept.hooks": RemedyWords(
        "Remove hooks from {holder:holder} that are not needed any more: keep what registering returns, and call its "
        "`remove()`.",
        "Hooks that were registered again and again keep {bytes:bytes}.",
        "none",
        "",
    ),
    "bound_what_is_kept": RemedyWords(
        "Free what {place:place}[ (and {others:n other line})] makes once its pass is over, or move it to the CPU "
        "(`.cpu()`).",
        "It is alive from {passes:n pass/passes}.",
        "a copy back where the device needs it again",
        "faq",
    ),
    "bound_what_is_kept.reallocated": RemedyWords(
        "Bound the tensor that {place:place}[ (and {others:n other line})] replaces by ever larger ones, allocate it "
        "once at its full size, or keep it on the CPU.",
        "While it is replaced, the old and the new one are both there.",
        "memory for the full size from the start",
        "faq",
    ),
    "raise_cap": RemedyWords(
        _raise_cap,
        "It saves nothing: the cap, and not the card, refused this request. Leave it where others are meant to have "
        "that memory.",
        "less is left for other processes",
        "memory",
    ),
    "smaller_batch.training": RemedyWords(
        "Divide the batch by {divisor} and accumulate the gradients of the parts[, if a batch has {samples} samples or "
        "more].",
        "{bytes:bytes} of what is in use grows with the batch.",
        "more, smaller kernels",
        "faq",
    ),
    "smaller_batch": RemedyWords(
        "Divide the batch by {divisor}[, if a batch has {samples} samples or more].",
        "{bytes:bytes} of what is in use grows with the batch.",
        "more, smaller kernels",
        "faq",
    ),
    "checkpoint_activations": RemedyWords(
        "Checkpoint the blocks of the model (`torch.utils.checkpoint`).",
        "Activations that backward needs ({bytes:bytes}) are then made again instead of kept; only the inputs of the "
        "blocks stay.",
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
        "Use an optimizer with less state (8-bit Adam, Adafactor, SGD), or shard the state over the ranks (FSDP, "
        "ZeroRedundancyOptimizer).",
        "The state is a multiple of the parameters, whatever the batch.",
        "less precise state, or communication",
        "sharding",
    ),
    "fused_optimizer": RemedyWords(
        "Pass `fused=True` or `foreach=False` to the optimizer.",
        "The foreach implementation makes temporaries as large as the parameters.",
        "foreach=False is slower",
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
    "load_once": RemedyWords(
        'Load the weights on the CPU (`map_location="cpu"`), or share them between the two copies.',
        "The model is on the device twice.",
        "a copy to the device",
        "loading",
    ),
    "bound_cache": RemedyWords(
        "Give the key-value cache a smaller budget: shorter contexts, fewer sequences at once, or a smaller type.",
        "It holds {bytes:bytes}, a budget that the program chose.",
        "fewer or shorter sequences",
        "faq",
    ),
    "forget_exception": RemedyWords(
        "Let go of the exception in {holder:holder} once it is handled: `del` it, store its text instead, or empty its "
        "frames (`traceback.clear_frames(error.__traceback__)`).",
        "Its traceback holds the frames of calls that have ended, and with them every local tensor.",
        "a debugger no longer sees those variables",
        "traceback",
    ),
    "forget_exception.shown": RemedyWords(
        "Let go of the error that the console showed last: `del sys.last_value, sys.last_traceback` (and "
        "`sys.last_exc` from Python 3.12 on).",
        "Its traceback holds the frames of calls that have ended, and with them every local tensor.",
        "no post-mortem debugging of that error",
        "traceback",
    ),
    "drop_optimizer": RemedyWords(
        "Let go of {holder:holder} once its training is over: `del` what refers to it, or keep only the numbers that "
        "are still read.",
        "It keeps the model that it trained, its gradients and its states.",
        "none, if that training does not go on",
        "optimizers",
    ),
    "drop_optimizer.parameters": RemedyWords(
        "Take parameters that are not trained any more out of {holder:holder} (`param_groups` and `state`), or make a "
        "new optimizer.",
        "It keeps parameters that no module holds any more, with their gradients and states.",
        "none, if they are not trained again",
        "optimizers",
    ),
    "release_closure": RemedyWords(
        "Unregister {holder:holder} when its call ends (`atexit.unregister`, a hook's `remove()`), or let it refer to "
        "no more than it reads.",
        "It keeps the variables of a call that has ended.",
        "none",
        "",
    ),
    "release_ended_training": RemedyWords(
        "Let go of the optimizer and the gradients of the loop in {loop:place} once it has ended: `del` what refers to "
        "them and to a model that is not used any more, or call `optimizer.zero_grad()` and keep the model alone.",
        "It left {bytes:bytes} of gradients and optimizer state.",
        "none, if that training does not go on",
        "optimizers",
    ),
    "release_ended_training.model": RemedyWords(
        "Let go of the model[ made at {place:place}], or of its gradients and its optimizer, before the next one is "
        "made: `del` what refers to them, and break reference cycles that keep them.",
        "Its training left {bytes:bytes} of gradients and optimizer state.",
        "none, if that training does not go on",
        "optimizers",
    ),
    "release_checkpoint": RemedyWords(
        'Load the checkpoint[ at {place:place}] on the CPU (`map_location="cpu"`, `device="cpu"`), or `del` it once '
        "`load_state_dict` has copied it.",
        "It keeps {bytes:bytes} on the card beside the tensors that were made from it.",
        "none, if it is not read again",
        "loading",
    ),
    "release_history": RemedyWords(
        "Let the notebook forget what its cells have shown: `%reset -f out`, and end the line with `;` or print "
        "`x.shape` instead of showing `x`.",
        "{holder:holder} keeps {bytes:bytes}.",
        "`Out[…]` is empty",
        "",
    ),
    "cancel_deferred_call": RemedyWords(
        "Cancel {holder:holder} once it is not needed (`cancel()`, or `detach()` for `weakref.finalize`), or hand it "
        "no tensors.",
        "It keeps {bytes:bytes} until its time has come.",
        "none",
        "",
    ),
    "release_variable": RemedyWords(
        "Let go of {holder:holder} once it has been used: `del` it, or set it to `None`, before the work that follows.",
        "It keeps {bytes:bytes} that no running code reads again.",
        "none",
        "faq",
    ),
    "release_variable.parts": RemedyWords(
        "Let go of {holder:holder} once it has been used: put what is still read ({reads:list}) into variables of its "
        "own, and `del` the rest.",
        "It keeps {bytes:bytes} that no running code reads again.",
        "none",
        "faq",
    ),
    "release_variable.frozen": RemedyWords(
        "Let go of the gradients where {module:holder} is frozen: call its `zero_grad()` then.",
        "Its parameters require no gradients any more, but still keep {bytes:bytes} of them.",
        "none",
        "faq",
    ),
    "drop_last_pass": RemedyWords(
        "Let go of what a pass has made before the next one begins[: `del` what refers to it, such as "
        "{holder:holder}].",
        "{bytes:bytes} of the pass before are still alive.",
        "none, if they are not read again",
        "faq",
    ),
    "drop_last_pass.graph": RemedyWords(
        "Let go of {holder:holder} before the next pass (`del`), or run the loop under `torch.no_grad()` if it needs "
        "no backward.",
        "It keeps the graph of the pass before: {bytes:bytes}.",
        "none, if it is not read again",
        "faq",
    ),
    "collect_garbage": RemedyWords(
        _break_cycle,
        "Nothing reaches it, but only the garbage collector can free it.",
        "a collection takes time",
        "gc",
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
        "Make {place:place} work in pieces, and look for an accidental broadcast: N×1 against N, a one-hot encoding, "
        "pairwise distances.",
        "It asks for one tensor of {size:bytes}.",
        "a loop over pieces",
        "faq",
    ),
    "limit_calls_in_progress": RemedyWords(
        "Run fewer calls of {function} at once: a smaller thread pool, a semaphore, or a queue.",
        "{calls:n call} of it held memory at the same time.",
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
        "It was made for sizes that change: freed pages can serve any later request. It was not tried on this "
        "recording; oomscope whatif tells whether it would have been enough.",
        _price_of_setting,
        "conf",
    ),
    "move_pins": RemedyWords(
        "Move what {place:place} keeps out of the way: allocate it before the large tensors or in one tensor, or copy "
        "it to the CPU.",
        _scattered,
        "",
        "memory",
    ),
    "move_pins.one": RemedyWords(
        "Move or free what {place:place} keeps: allocate it before the large tensors, or copy it to the CPU.",
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
