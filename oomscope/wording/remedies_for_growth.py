"""Advice on what keeps a share of every pass: by the slugs of `oomscope.analysis.remedies`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oomscope.units import format_bytes, plural
from oomscope.wording.accelerate import free_memory
from oomscope.wording.remedy_words import RemedyWords
from oomscope.wording.template import holder, place, without_inner_workings

_NO_BACKWARD = "none, if nothing later calls backward on them"


def _names(values: Mapping[str, Any]) -> str:
    """The holder, and others that the same passes fill."""
    more = (without_inner_workings(one.rpartition(": ")[2]) for one in values.get("others") or ())
    return " and ".join([holder(values["holder"]), *(f"`{name}`" for name in more)])


_ORDINALS = ("first", "second", "third", "fourth", "fifth")


def _part_of_item(part: str) -> str:
    """What of each item keeps memory: ``the third element of each item`` for ``[2]``."""
    part = part.removesuffix("[*]")
    number = part[1:-1]
    if number.isdecimal() and int(number) < len(_ORDINALS):
        return f"the {_ORDINALS[int(number)]} element of each item"
    return f"the `{part}` of each item"


def _bound_holder(values: Mapping[str, Any]) -> str:
    what = "what it keeps"
    if part := values.get("part"):
        what = _part_of_item(part)
    if values.get("others"):
        return f"Limit the size of {_names(values)}, empty them, or move what they keep to the CPU (`.cpu()`)."
    return f"Limit the size of {holder(values['holder'])}, empty it, or move {what} to the CPU (`.cpu()`)."


def _keep_no_models(values: Mapping[str, Any]) -> str:
    if call := free_memory(values["holder"]):
        return f"Call `{call}` at the end of each pass: it lets go of {holder(values['holder'])}, and of optimizers."
    return f"Store numbers, or a `state_dict()` on the CPU, in {holder(values['holder'])}, and not the models."


def _many_places(values: Mapping[str, Any]) -> str:
    places = [place(one) for one in values["places"]]
    made = f"what {', '.join(places)} made" if places else "what was made"
    passes = plural(values["passes"], "pass", "passes")
    return f"A tensor that requires gradients keeps the graph that made it: {made} in {passes} is still alive."


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
        each = "`.detach()` every tensor in it"
        return f"Detach {holder(values['holder'])} before each pass ({each}){_no_grad(values)}."
    through = f"through it, {holder(values['holder'])} reaches the graphs of all passes"
    return f"Detach the state of the recurrent layer before it goes into the next pass (`h = h.detach()`): {through}."


def _detach_something(values: Mapping[str, Any]) -> str:
    loop = f"the loop in {place(values['loop'])}" if values["loop"] else "the loop"
    if values["backward"] == "none":
        return f"Run {loop} under `torch.no_grad()`, and keep its results as `.item()` or `.detach().cpu()`."
    return (
        f"Find what {loop} keeps from pass to pass (a running loss, a state that is carried on, a list or dict of"
        " results, a hook, gradients that are never reset), and keep `.item()` or `.detach()` of it."
    )


GROWING: dict[str, RemedyWords] = {
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
        lambda values: (
            _NO_BACKWARD if values["backward"] == "none" else "gradients reach back through one pass, not through all"
        ),
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
        "Call `backward()` in every pass instead of once on what {holder:holder} keeps: gradients add up.",
        "It keeps the graphs of {passes:n pass/passes} until then: {bytes:bytes}.",
        "none: the gradients are the same, up to rounding",
        "faq",
    ),
    "bound_what_is_kept.holder": RemedyWords(
        _bound_holder,
        lambda values: (
            f"{'They keep' if values.get('others') else 'It keeps'} {format_bytes(values['bytes'])} that could go."
        ),
        "what is dropped is lost; what is moved takes a copy back where the device needs it",
        "faq",
    ),
    "bound_what_is_kept.reached": RemedyWords(
        "Limit the size of {holder:holder} and of what else keeps the same tensors, empty them, or move what they keep "
        "to the CPU (`.cpu()`).",
        "{bytes:bytes} is reached through it, and could go.",
        "what is dropped is lost; what is moved takes a copy back where the device needs it",
        "faq",
    ),
    "bound_what_is_kept.metric": RemedyWords(
        lambda values: (
            f"Create the metric with `compute_on_cpu=True`: torchmetrics then moves {_names(values)} to the CPU after "
            "every update. A metric of curves keeps counts only if it gets `thresholds`."
        ),
        "Its state keeps {bytes:bytes} until it is reset.",
        "`compute()` runs on the CPU",
        "torchmetrics",
    ),
    "bound_what_is_kept.models": RemedyWords(
        _keep_no_models,
        "Each model that is stored stays on the GPU with all that it holds: {bytes:bytes} can go.",
        "a copy back where a model is needed again",
        "faq",
    ),
    "bound_what_is_kept.methods": RemedyWords(
        "Take the methods of what is no longer used out of {holder:holder}, or store each as a `weakref.WeakMethod`.",
        "Each method keeps its object, with all that it holds: {bytes:bytes} in all.",
        "none",
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
        "a copy as large as what is seen of it",
        "",
    ),
    "release_models": RemedyWords(
        "Let go of the model of each pass before the next one begins: `del` what keeps it and its optimizer, such as a "
        "list of results, a trainer or a closure.",
        "Passes of the loop in {loop:place} make a model each: {bytes:bytes} of finished ones are alive.",
        "none, if nothing reads them again",
        "faq",
    ),
    "release_models.parameters": RemedyWords(
        "Remove the parameters that a pass has added before the next one begins (an adapter, a head, a table), or use "
        "the same ones again.",
        "Passes of the loop in {loop:place} make parameters of their own: {bytes:bytes} of finished ones are alive.",
        "none, if nothing reads them again",
        "faq",
    ),
}
