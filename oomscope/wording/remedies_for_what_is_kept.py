"""Advice on what an object, a graph or an ended call keeps alive: by the slugs of `oomscope.analysis.remedies`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from oomscope.units import format_bytes, plural
from oomscope.wording.remedy_words import RemedyWords
from oomscope.wording.template import holder, place, work


def _bound_holder(values: Mapping[str, Any]) -> str:
    what = "what it keeps"
    if part := values.get("part"):
        what = f"the `{part.removesuffix('[*]')}` of each item"
    return f"Empty {holder(values['holder'])}, limit its size, or move {what} to the CPU (`.cpu()`)."


def _many_places(values: Mapping[str, Any]) -> str:
    places = [place(one) for one in values["places"]]
    made = f"what {', '.join(places)} made" if places else "what was made"
    passes = plural(values["passes"], "pass", "passes")
    return f"A tensor that requires gradients keeps the graph that made it: {made} in {passes} is still alive."


_ACCELERATORS = re.compile(r"(?:^|: )([\w.]*\baccelerator)\._(?:optimizers|models)\b")
"""What accelerate's `Accelerator` keeps of all that it has prepared."""
_NO_BACKWARD = "none, if nothing later calls backward on them"


def _no_grad(values: Mapping[str, Any]) -> str:
    """``, or run the loop under no_grad``: where its passes have a backward of their own, that is no way out."""
    if values["backward"] == "within":
        return ""
    calls = "it calls no backward" if values["backward"] == "none" else "if no backward is to follow"
    known = values["loop"]
    same = known is None or values["holder"].rpartition(": ")[0].rpartition(".")[2] == known.function
    loop = "the loop" if same else f"the loop in {place(known)}"
    return f", or run {loop} under `torch.no_grad()`{':' if values['backward'] == 'none' else ','} {calls}"


def _detach_tensors(values: Mapping[str, Any]) -> str:
    if not values["own"]:
        return f"Store `.detach()` of each tensor in {holder(values['holder'])}{_no_grad(values)}."
    stay = f"`.detach()` alone would leave {format_bytes(values['own'])} on the device"
    return f"Store `.detach().cpu()` of each tensor in {holder(values['holder'])}: {stay}."


def _detach_number(values: Mapping[str, Any]) -> str:
    adds = f"Add a number to {holder(values['holder'])} and not the tensor: take `.item()` of the value"
    if values.get("called"):
        adds += f" at {place(values['called'])}"
    if values["backward"] == "unknown":
        return f"{adds}; if it is summed for one backward, call `backward()` in every pass instead: gradients add up."
    return f"{adds}{_no_grad(values)}."


def _detach_state(values: Mapping[str, Any]) -> str:
    if values["is_state"]:
        return f"Detach {holder(values['holder'])} before each pass: `.detach()` of every tensor in it."
    through = f"through it, {holder(values['holder'])} reaches the graphs of all passes"
    return f"Detach the state of the recurrent layer before it goes into the next pass (`h = h.detach()`): {through}."


def _drop_graph(values: Mapping[str, Any]) -> str:
    drop = f"et go of {holder(values['holder'])} before the next pass (`del`)"
    if values["backward"] == "none":
        return f"Run the loop under `torch.no_grad()`, for it calls no backward; or l{drop}."
    return f"L{drop}" + (
        "." if values["backward"] == "within" else ", or run the loop under `torch.no_grad()` if it needs no backward."
    )


def _detach_something(values: Mapping[str, Any]) -> str:
    loop = f"the loop in {place(values['loop'])}" if values["loop"] else "the loop"
    if values["backward"] == "none":
        return f"Run {loop} under `torch.no_grad()`, and keep its results as `.item()` or `.detach().cpu()`."
    return (
        f"Find what {loop} keeps from pass to pass (a running loss, a state that is carried on, a list or dict of"
        " results, a hook, gradients that are never reset), and keep `.item()` or `.detach()` of it."
    )


def _break_cycle(values: Mapping[str, Any]) -> str:
    way = values["holder"].removeprefix("reference cycle: ")
    when = "after each pass" if values["goes_on"] else f"before {work(values['before']) or 'the work that follows'}"
    return f"Break the cycle ({way}), or call `gc.collect()` {when}."


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
    others = [f"`{one.rpartition(': ')[2]}`" for one in values.get("others") or ()]
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
    reads = ", ".join(values["reads"])
    return (
        f"Let go of {holder(values['holder'])} {when}: put what is still read ({reads}) into variables of its own, "
        "and `del` the rest."
    )


def _release_training(values: Mapping[str, Any]) -> str:
    before = work(values["before"]) or "the work that follows"
    if found := _ACCELERATORS.search(values["holder"] or ""):
        return f"Call `{found[1]}.free_memory()` before {before}: it lets go of {holder(values['holder'])}."
    if values["holder"]:
        return (
            f"Let go of {holder(values['holder'])} before {before}: `del` what leads to it, or keep there only what is "
            "read later."
        )
    return (
        f"Let go of the optimizer and the gradients of the loop in {place(values['loop'])} once it has ended, before "
        f"{before}: `del` what refers to them and to a model that is not used any more, or call "
        "`optimizer.zero_grad()` and keep the model alone."
    )


def _release_model(values: Mapping[str, Any]) -> str:
    where = f" made at {place(values['place'])}" if values["place"] else ""
    before = work(values["before"]) or "the next one is made"
    if values["holder"]:
        return f"Let go of {holder(values['holder'])} before {before}: `del` what leads to it."
    return (
        f"Let go of the model{where}, or of its gradients and its optimizer, before {before}: `del` what refers to "
        "them, and break reference cycles that keep them."
    )


LET_GO: dict[str, RemedyWords] = {
    "detach_what_is_kept.numbers": RemedyWords(
        lambda values: f"Store `.item()` of each value in {holder(values['holder'])}{_no_grad(values)}.",
        "Each is one number, and keeps the autograd graph that made it[: {per_pass:bytes} a pass].",
        "none, if nothing later calls backward on them",
        "faq",
    ),
    "detach_what_is_kept.tensors": RemedyWords(
        _detach_tensors,
        "Each tensor in it keeps the autograd graph that made it[: {per_pass:bytes} a pass].",
        lambda values: f"{_NO_BACKWARD}{', and a copy to the CPU' if values['own'] else ''}",
        "faq",
    ),
    "detach_what_is_kept.holder": RemedyWords(
        lambda values: (
            f"Store `.detach()` of each tensor in {holder(values['holder'])}, or `.item()` of one that is a number"
            f"{_no_grad(values)}."
        ),
        "Each tensor in it keeps the autograd graph that made it[: {per_pass:bytes} a pass].",
        _NO_BACKWARD,
        "faq",
    ),
    "detach_what_is_kept.number": RemedyWords(
        _detach_number,
        "It is one number, and keeps the autograd graphs of the passes before[: {per_pass:bytes} a pass].",
        "none, if nothing later calls backward on it",
        "faq",
    ),
    "detach_what_is_kept.state": RemedyWords(
        _detach_state,
        "A recurrent layer was given it, so that its graph reaches back through all passes[: {per_pass:bytes} each].",
        "gradients reach back through one pass, not through all",
        "faq",
    ),
    "detach_what_is_kept.carried": RemedyWords(
        lambda values: f"Store `.detach()` of what goes into {holder(values['holder'])}{_no_grad(values)}.",
        "It is carried on, and its graph reaches back through all passes[: {per_pass:bytes} each].",
        "none, if nothing later calls backward on it",
        "faq",
    ),
    "detach_what_is_kept.gradient": RemedyWords(
        "Set all gradients to `None` in each pass (`model.zero_grad(set_to_none=True)`), also of parameters that the "
        "optimizer does not have.",
        "A backward with `create_graph=True` leaves in {holder:holder} a gradient that keeps its graph[: "
        "{per_pass:bytes} a pass].",
        "none",
        "faq",
    ),
    "detach_what_is_kept": RemedyWords(
        _detach_something,
        _many_places,
        _NO_BACKWARD,
        "faq",
    ),
    "backward_each_pass": RemedyWords(
        "Call `backward()` in every pass instead of once on the sum that {holder:holder} keeps: gradients add up.",
        "It keeps the graphs of {passes:n pass/passes} until then: {bytes:bytes}.",
        "none: the gradients are the same, up to rounding",
        "faq",
    ),
    "bound_what_is_kept.holder": RemedyWords(
        _bound_holder,
        "It keeps {bytes:bytes} that could go.",
        "a copy back where the device needs it again",
        "faq",
    ),
    "bound_what_is_kept.models": RemedyWords(
        "Store numbers, or a `state_dict()` on the CPU, in {holder:holder}, and not the models.",
        "Each model that is stored stays on the GPU with all that it holds: {bytes:bytes} can go.",
        "a copy back where a model is needed again",
        "faq",
    ),
    "bound_what_is_kept.hooks": RemedyWords(
        "Remove hooks from {holder:holder} that are not needed any more: keep what registering returns, and call its "
        "`remove()`.",
        "Hooks that were registered again and again keep {bytes:bytes}.",
        "none",
        "",
    ),
    "bound_what_is_kept.abandoned": RemedyWords(
        "End what fills {holder:holder} when its reader stops early, and empty it: nobody takes from it any more.",
        "It keeps {bytes:bytes} that could go.",
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
    "copy_view": RemedyWords(
        "Store `.clone()` of each view in {holder:holder}: a view keeps the whole tensor that it is a part of.",
        "{bytes:bytes} of what it keeps alive is outside the views.",
        "none",
        "",
    ),
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
    "release_models": RemedyWords(
        "Let go of the model of each pass before the next one begins: `del` what keeps it and its optimizer, such as a "
        "list of results, a trainer or a closure.",
        "Passes of the loop in {loop:place} make a model each.",
    ),
    "release_models.parameters": RemedyWords(
        "Remove the parameters that a pass has added before the next one begins (an adapter, a head, a table), or use "
        "the same ones again.",
        "Passes of the loop in {loop:place} make parameters of their own.",
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
    "release_results": RemedyWords(
        "If nothing reads it any more, let go of what was allocated[ at {place:place}] before the work that follows: "
        "`del` it, or keep it on the CPU.",
        "Calls that have returned left {bytes:bytes}.",
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
        "none",
        "faq",
    ),
    "release_variable.parts": RemedyWords(
        _release_rest,
        "It keeps {bytes:bytes} that no running code reads again.",
        "none",
        "faq",
    ),
    "release_variable.suspended": RemedyWords(
        _release_suspended,
        "A generator that waits keeps its variables: {bytes:bytes}, although it will not read this one again.",
        "none",
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
        "Its state is as large as the parameters, or twice as large, and no step will read it.",
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
    "collect_garbage": RemedyWords(
        _break_cycle,
        "Nothing reaches it, but only the garbage collector can free it.",
        "a collection takes time",
        "gc",
    ),
}
