"""Bound, empty or move to the CPU what a list, a dict or a tensor keeps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from oomscope.analysis.attribution.held_blocks import holders_in_blocks, is_within
from oomscope.analysis.labels.evaluating import updates_metric
from oomscope.analysis.passes.records import Growth
from oomscope.analysis.remedies.effect import enough_by_sum, served_if_freed
from oomscope.analysis.remedies.kept_rows import kept_rows
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.models_held import kept_models
from oomscope.analysis.verdict.records import Advice, Suspect
from oomscope.analysis.verdict.suspects import OF_THE_PASS, reaching
from oomscope.model import BoolArray, FrameKind, frame_kind
from oomscope.model.ordering import ascending

SLUG = "bound_what_is_kept"

_OTHERWISE = ("optimizer", "deferred", "exception", "cycle")
"""Kinds of holders for which there is advice of their own."""
_HOOKS = re.compile(r"_hooks(\[\*\].*)?$")
NEARLY_ALL = 0.9
"""Of what grows; an object through which less of it is reached is not the one to change."""
WORTH_BOUNDING = 0.2
"""Of the allocated bytes; what an object that does not grow has to keep at least to be worth a change."""


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where an object, or a line, keeps what could go."""
    piled = circumstances.piled
    if piled.holder is not None:
        if not piled.holder.keeps_graph and piled.holder.kind not in _OTHERWISE:
            saves = piled.holder.earlier_bytes + sum(one.earlier_bytes for one in piled.beside)
            advice = _holder(circumstances, piled.holder, saves, kept_rows(circumstances))
            yield replace(advice, slug=f"{SLUG}.abandoned") if piled.holder.is_abandoned else advice
        return
    rising = circumstances.rising
    if rising is not None and rising.grown >= piled.grown:
        place = circumstances.request.caller or circumstances.request.site
        values = {"place": place, "others": None, "passes": rising.joins, "bytes": rising.risen}
        yield Advice(f"{SLUG}.reallocated", values, rising.risen, enough_by_sum(circumstances, rising.grown), at=place)
        return
    for keeper in circumstances.suspects[:1]:
        others = (*OF_THE_PASS, *_OTHERWISE)
        if keeper.share >= WORTH_BOUNDING and keeper.kind not in others and not _is_of_library(keeper):
            yield _holder(circumstances, keeper, keeper.retained, None)
            return
    if not circumstances.keeps_graphs and (reached := _reached(circumstances)) is not None:
        yield reached
        return
    kept = circumstances.keeps_graphs
    rows = [one for one in circumstances.growth if not (kept and one.kind == "generations") and not one.within_step]
    for kind in dict.fromkeys(one.kind for one in rows):
        yield _lines(circumstances, [one for one in rows if one.kind == kind])


def _reached(circumstances: Circumstances) -> Advice | None:
    """What to do about an object through which all that grows is reached, though others keep parts of it as well."""
    grown = circumstances.piled.grown
    first = reaching(circumstances.suspects, grown) if grown > 0 else None
    if first is None or first.reaches < NEARLY_ALL * grown or first.kind in _OTHERWISE:
        return None
    is_hook = _HOOKS.search(first.holder) is not None
    values = {"holder": _HOOKS.sub("_hooks", first.holder), "part": None, "bytes": grown, "others": ()}
    return Advice(f"{SLUG}.{'hooks' if is_hook else 'reached'}", values, grown, enough_by_sum(circumstances, grown))


def _is_of_library(suspect: Suspect) -> bool:
    """Whether it is a variable of a library's function, such as the cache of a `generate` that is underway."""
    return suspect.at is not None and frame_kind(suspect.at.file) != FrameKind.OWN


def _holder(circumstances: Circumstances, suspect: Suspect, saves: int, rows: BoolArray | None) -> Advice:
    holder = suspect.holder
    enough = served_if_freed(circumstances, rows) if rows is not None and np.any(rows) else None
    others = tuple(one.holder for one in circumstances.piled.beside)
    code = "hooks" if _HOOKS.search(holder) else _of_models(circumstances, holder) or "holder"
    if suspect.kind == "list" and rows is not None and _made_by_metric(circumstances, rows):
        code = "metric"
    return Advice(
        f"{SLUG}.{code}",
        {"holder": _HOOKS.sub("_hooks", holder), "part": suspect.part, "bytes": saves, "others": others},
        saves,
        enough_by_sum(circumstances, saves) if enough is None else enough,
    )


def _made_by_metric(circumstances: Circumstances, rows: BoolArray) -> bool:
    """Whether a metric of torchmetrics made some of `rows`, bool[lifetimes]: what keeps them is its state."""
    study = circumstances.study
    stacks = ascending(study.history.lifetimes.stack[rows]).tolist()
    return any(updates_metric(study.snapshot, stack) for stack in stacks)


def _of_models(circumstances: Circumstances, holder: str) -> str | None:
    """Whether an object keeps whole models, or methods of theirs, such as the handlers of an event bus."""
    study = circumstances.study
    if study is None or holder not in {one.holder for one, _ in kept_models(study)}:
        return None
    ways = [one.holder for one in holders_in_blocks(study) if one.holder and is_within(one.holder, holder)]
    return "methods" if ways and all(".__self__" in way for way in ways) else "models"


def _lines(circumstances: Circumstances, rows: list[Growth]) -> Advice:
    """One piece of advice for all lines that grow alike, told of the one that has grown most."""
    first = rows[0]
    places = {one.caller or one.site for one in rows}
    saves = sum(one.spared_bytes for one in rows)
    code = f"{SLUG}.reallocated" if first.kind == "reallocation" else SLUG
    place = first.caller or first.site
    values = {"place": place, "others": len(places) - 1 or None, "passes": first.generations, "bytes": saves}
    return Advice(code, values, saves, enough_by_sum(circumstances, saves), at=place)
