"""Advice on what outlives its use, though it does not grow: by the slugs of `oomscope.analysis.remedies`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from oomscope.wording.accelerate import free_memory
from oomscope.wording.remedy_words import RemedyWords
from oomscope.wording.template import holder, place, work


def _drop_graph(values: Mapping[str, Any]) -> str:
    drop = f"et go of {holder(values['holder'])} before the next pass (`del`)"
    if values["backward"] == "none":
        return f"Run the loop under `torch.no_grad()`, for it calls no backward; or l{drop}."
    return f"L{drop}" + (
        "." if values["backward"] == "within" else ", or run the loop under `torch.no_grad()` if it needs no backward."
    )


def _break_cycle(values: Mapping[str, Any]) -> str:
    way = values["holder"].removeprefix("reference cycle: ")
    when = "after each pass" if values["goes_on"] else f"before {work(values['before']) or 'the work that follows'}"
    return f"Break the cycle ({way}), or call `gc.collect()` {when}."


def _save_for_backward(values: Mapping[str, Any]) -> str:
    stored = re.search(r"Backward\.(\w+)", values["holder"])
    name = f"`{stored[1]}`" if stored else "tensors"
    return f"Hand {name} to `ctx.save_for_backward()`, and do not store it as an attribute of `ctx`."


def _release(values: Mapping[str, Any]) -> str:
    before, what = work(values["before"]), _with_others(values)
    if values.get("stored"):
        how = "store `.detach()` of it, or compute it under `torch.no_grad()`," if values["graph"] else ""
        return (
            f"Do not keep {holder(values['holder'])}: {how or 'put it into a local variable'} where it is stored, at "
            f"{place(values['stored'])}, or set it to `None` before {before or 'the work that follows'}."
        )
    if not before:
        return f"Let go of {what} once it has been used: `del` it, or set it to `None`, before the work that follows."
    return f"Let go of {what} before {before}: `del` it, or set it to `None`."


def _with_others(values: Mapping[str, Any]) -> str:
    """The variable, with others that keep some of the same: it is not free before they go, too."""
    known = holder(values["holder"])
    names = dict.fromkeys(one.rpartition(": ")[2] for one in values.get("others") or ())
    others = [f"`{name}`" for name in names if name != values["holder"].rpartition(": ")[2]]
    if not others:
        return known
    return f"{known}, and of {' and '.join(others)}, which {'keeps' if len(others) == 1 else 'keep'} some of it,"


def _release_suspended(values: Mapping[str, Any]) -> str:
    name = values["holder"].rpartition(": ")[2]
    where = f" in {place(values['place'])}" if values["place"] else ""
    return f"Let go of `{name}` before the `yield`{where}: `del` it there, or yield its value without naming it."


def _release_rest(values: Mapping[str, Any]) -> str:
    before = work(values["before"])
    when = f"before {before}" if before else "once it has been used"
    reads, variable = ", ".join(values["reads"]), re.split(r"[.[]", values["holder"].rpartition(": ")[2])[0]
    return (
        f"Let go of {holder(values['holder'])} {when}: put what is still read ({reads}) into a variable of its own, "
        f"then `del {variable}`."
    )


_METHOD = re.compile(r"(?P<list>[^→]+?)(?:\[\d+\])?\.__self__(?=\.|$)")
"""A bound method that something keeps, as a list of callbacks does."""


def _way_out(name: str) -> str:
    """How to let go of what leads to the object `name`; a hook goes by the handle that registering it returned."""
    if "hooks[" in name:
        return "remove that hook (keep the handle that registering it returns, and call its `.remove()`)"
    return "`del` what leads to it"


def _release_training(values: Mapping[str, Any]) -> str:
    before = work(values["before"]) or "the work that follows"
    if call := free_memory(values["holder"]):
        return f"Call `{call}` before {before}: it lets go of {holder(values['holder'])}."
    if values["holder"] and (method := _METHOD.match(values["holder"])) and "hooks[" not in values["holder"]:
        return f"Take its method out of {holder(method['list'])} before {before}: a bound method keeps its object."
    if values["holder"] and "hooks[" in values["holder"]:
        return f"Let go of {holder(values['holder'])} before {before}: {_way_out(values['holder'])}."
    if values["holder"]:
        return (
            "Keep only what is read later (a score, a `state_dict()` on the CPU), and not "
            f"{holder(values['holder'])}; or `del` it before {before}."
        )
    return (
        f"Let go of the optimizer and the gradients of the loop in {place(values['place'])} once it has ended, before "
        f"{before}: `del` what refers to them and to a model that is not used any more, or call "
        "`optimizer.zero_grad()` and keep the model alone."
    )


def _release_optimizer(values: Mapping[str, Any]) -> str:
    before = "before the new one makes its states"
    if values["holder"]:
        return f"Let go of {holder(values['holder'])} {before}: {_way_out(values['holder'])}."
    return (
        f"Let go of the former optimizer {before}: `del` what refers to it (a scheduler, a list, an attribute), or "
        "go on with it, at another learning rate."
    )


def _release_model(values: Mapping[str, Any]) -> str:
    where = f" made at {place(values['place'])}" if values["place"] else ""
    before = work(values["before"]) or "the next one is made"
    if values["holder"]:
        return f"Let go of {holder(values['holder'])} before {before}: {_way_out(values['holder'])}."
    return (
        f"Let go of the model{where}, or of its gradients and its optimizer, before {before}: `del` what refers to "
        "them, and break reference cycles that keep them."
    )


RETAINED: dict[str, RemedyWords] = {
    "forget_exception": RemedyWords(
        "Keep no exception in {holder:holder} once it is handled: store its text instead, `del` it, or empty its "
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
        "Let go of {holder:holder} once its training is over[, before {before:work}]: `del` what refers to it, or keep "
        "only the numbers that are still read.",
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
        "Unregister {holder:holder} when its call ends[, before {before:work}] (`atexit.unregister`, a hook's "
        "`remove()`), or let it refer to no more than it reads.",
        "It keeps the variables of a call that has ended.",
        "none",
        "",
    ),
    "release_ended_training": RemedyWords(
        _release_training,
        "That training left {bytes:bytes} of gradients and optimizer state.",
        "none, if that training does not go on",
        "optimizers",
    ),
    "release_ended_training.model": RemedyWords(
        _release_model,
        "Its training left {bytes:bytes} of gradients and optimizer state.",
        "none, if that training does not go on",
        "optimizers",
    ),
    "release_ended_training.optimizer": RemedyWords(
        _release_optimizer,
        "Its states are {bytes:bytes}, for parameters that another optimizer trains now.",
        "none, if it is not used again",
        "optimizers",
    ),
    "release_results": RemedyWords(
        "If nothing reads it any more, let go of what was allocated[ at {place:place}] before the work that follows: "
        "`del` it, or keep it on the CPU.",
        "Calls that have returned left {bytes:bytes}.",
        "none, if it is not read again",
        "faq",
    ),
    "release_results.collection": RemedyWords(
        "Empty {holder:holder} once what it was filled for is computed, or fill it with copies on the CPU (`.cpu()`).",
        "A loop that has ended left {bytes:bytes} in it.",
        "none, if it is not read again",
        "faq",
    ),
    "release_results.statements": RemedyWords(
        "If nothing reads it any more, let go of what was allocated[ at {place:place}] before the work that follows: "
        "`del` it, or keep it on the CPU.",
        "{bytes:bytes} were there before the work underway began.",
        "none, if it is not read again",
        "faq",
    ),
    "release_results.pass": RemedyWords(
        "`del` what a pass has made[ at {place:place}] when it ends, or compute it in a function of its own; without a "
        "backward, run it under `torch.no_grad()`.",
        "The pass before this one left {bytes:bytes}.",
        "none, if it is not read again",
        "faq",
    ),
    "release_checkpoint": RemedyWords(
        'Load the checkpoint[ at {place:place}] on the CPU (`map_location="cpu"`, `device="cpu"`), or `del` it once '
        "`load_state_dict` has copied it[, before {before:work}].",
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
        "Cancel {holder:holder} once it is not needed (`cancel()`, `atexit.unregister`, another handler for a signal, "
        "`detach()` for `weakref.finalize`), or hand it no tensors.",
        "It keeps {bytes:bytes} until its time has come.",
        "none",
        "",
    ),
    "release_variable": RemedyWords(
        _release,
        "It keeps {bytes:bytes} that no running code reads again.",
        lambda values: "none" if values.get("proven") else "none, if no code that runs later reads it",
        "faq",
    ),
    "release_variable.hooks": RemedyWords(
        "Remove the hooks from {holder:holder} once they have done their work: keep what registering returns, and call "
        "its `remove()`.",
        "What they keep, and what keeps them, no running code reads again: {bytes:bytes}.",
        lambda values: "none" if values.get("proven") else "none, if no code that runs later reads it",
        "faq",
    ),
    "release_variable.parts": RemedyWords(
        _release_rest,
        "It keeps {bytes:bytes} that no running code reads again.",
        lambda values: "none" if values.get("proven") else "none, if no code that runs later reads it",
        "faq",
    ),
    "release_variable.suspended": RemedyWords(
        _release_suspended,
        "A generator that waits keeps its variables: {bytes:bytes}, although it will not read this one again.",
        "none",
        "faq",
    ),
    "release_variable.cache": RemedyWords(
        lambda values: (
            f"Call `{values['holder'].rpartition(': ')[2]}.cache_clear()` before the work that follows, or do not "
            "cache what it returns."
        ),
        "`functools.lru_cache` keeps {bytes:bytes} that it has returned, and no running code calls it again.",
        lambda values: "none" if values.get("proven") else "none, if no code that runs later calls it",
        "faq",
    ),
    "release_variable.graph": RemedyWords(
        "Compute {holder:holder} under `torch.no_grad()`[, at {place:place}], or keep `.detach()` of it.",
        "No backward goes through it any more, but its graph keeps {bytes:bytes}.",
        "none",
        "faq",
    ),
    "release_variable.frozen_states": RemedyWords(
        "Let go of the optimizer of {module:holder} where that is frozen: `del` what refers to it.",
        "It keeps {bytes:bytes} of state for parameters that are not trained any more.",
        "none, if they are not trained again",
        "optimizers",
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
        _drop_graph,
        "It keeps the graph of the pass before: {bytes:bytes}.",
        "none, if it is not read again",
        "faq",
    ),
    "collect_garbage.node": RemedyWords(
        _save_for_backward,
        "PyTorch keeps the context within a node of the graph, which the garbage collector does not look into: the "
        "cycle is never freed.",
        "none",
        "extending",
    ),
    "collect_garbage": RemedyWords(
        _break_cycle,
        "Nothing reaches it, but only the garbage collector can free it.",
        "a collection takes time",
        "gc",
    ),
}
