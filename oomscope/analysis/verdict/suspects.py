"""Suspects: Python objects that keep memory alive and are no part of a model, with the passes that filled them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from oomscope.analysis.attribution.held_blocks import (
    ANY_GRADIENT,
    BELONGINGS,
    first_ways,
    holders_in_blocks,
    is_within,
    live_rows,
)
from oomscope.analysis.passes.callers import made_under
from oomscope.analysis.passes.finished import finished_before, made_before, passes_of
from oomscope.analysis.passes.loop_that_matters import pass_begins
from oomscope.analysis.passes.made_once import made_once
from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.verdict.hooks import hooked
from oomscope.analysis.verdict.models_held import REGISTERED, kept_models, orphaned, registered
from oomscope.analysis.verdict.records import Suspect
from oomscope.analysis.verdict.unread import find_unread
from oomscope.model import BoolArray, IntArray
from oomscope.model.ordering import ascending
from oomscope.model.recorded_holders import RecordedHolder, RecordedTensor

LEAST_SHARE = 0.02
"""Of the allocated bytes; what retains less is not worth a line."""
MOST_SUSPECTS = 8
MOST_PATHS = 3

_TRACEBACK = re.compile(r"\.__(traceback|context|cause)__|\.tb_frame|\.exc_info|\.__traceback__")
_CYCLE = re.compile(r"^reference cycle\b")
_OF_ITEM = re.compile(r"\[[^\]]*\]([\w.\[\]'*-]{0,80})$")
"""An item of a collection, and what of it something is."""
_NUMBER = re.compile(r"(?<=\])\[\d+\]|(?<=\w)\[\d+\]")
NEARLY_ALL = 0.9
"""Of what a collection keeps: what is told as the part of its items that keeps it."""
_UNSEEN = re.compile(r"that nothing visible holds(\[[^\]]*\])*$")
"""What only C++ holds at that moment, such as the arguments of a call; it has no name that would help."""
UNDERWAY = ("call", "in_flight")
"""Kinds of holders that belong to the call that is underway."""
OF_THE_PASS = (*UNDERWAY, "graph", "tensor")
"""Kinds that belong to the pass that is underway, unless they keep what earlier ones made."""
_FINISHED_WITH = ("exception", "cycle", "optimizer", "deferred", "history")
"""Kinds whose memory no running code uses any more."""
_THROUGH_A_NODE = re.compile(r"Backward\.\w")
"""Of a cycle's way: an attribute of a function's context, which PyTorch makes a node of the graph."""
_STEP = re.compile(r"[.\[{]")
MOST_SHOWN = 0.1
"""Of what a view keeps alive; a larger part of a tensor is worth keeping as it is."""
LARGEST_WINDOW = 16
"""Items: a deque with room for so few is meant to be full, such as the last steps of a solver."""
LEAST_ABANDONED = 3
"""Bounded collections alike; two may be a double buffer."""
_HISTORY = re.compile(r"(?:^__main__: |\[')(?:_{1,3}|_\d+|Out|_oh)(?:'\])?$")


def find_suspects(study: DeviceStudy, entry: int) -> tuple[Suspect, ...]:
    """The objects that keep memory alive once `entry` has happened, most retained bytes first."""
    allocated = max(study.history.curves.at(entry)[0], 1)
    done_with = [*find_unread(study, entry, paths=MOST_PATHS), *_shown(study, entry, allocated)]
    found = [one for one in done_with if one.retained >= LEAST_SHARE * allocated]
    taken = [held_rows(study, entry, one.holder) for one in found if one.kind == "history"]
    others = (*_gradients_as_one(holders_in_blocks(study)), *orphaned(study), *registered(study))
    told = [*((one, None) for one in others), *kept_models(study)]
    for holder, models in sorted(told, key=lambda pair: -(pair[0].retained or 0)):
        if (
            holder.kind in BELONGINGS
            or not holder.holder
            or (_UNSEEN.search(holder.holder) and holder.kind != "deferred")
            or max(holder.retained or 0, holder.bytes or 0) < LEAST_SHARE * allocated
        ):
            continue
        if any(_is_told(holder.holder, other) for other in found):
            continue
        one = hooked(_suspect(study, entry, holder, allocated, taken), holder)
        # A pass of the loop that counts may be one of many that trained one model.
        found.append(one if models is None else replace(one, passes=min(one.passes, models)))
    return tuple(sorted(_exceptions_together(found), key=lambda one: -one.retained)[:MOST_SUSPECTS])


def never_collected(suspect: Suspect) -> bool:
    """Whether it is a cycle that the garbage collector cannot see: it goes through a node of the autograd graph."""
    return suspect.kind == "cycle" and _THROUGH_A_NODE.search(suspect.holder) is not None


def _gradients_as_one(holders: tuple[RecordedHolder, ...]) -> Iterator[RecordedHolder]:
    """`holders`, where gradients of one model that keep a graph are one: one call sets them all to None."""
    groups: dict[str, list[RecordedHolder]] = {}
    for one in holders:
        if one.kind == "graph" and one.holder is not None and one.holder.endswith(".grad"):
            groups.setdefault(_variable(one.holder), []).append(one)
        else:
            yield one
    for variable, alike in groups.items():
        yield (
            alike[0]
            if len(alike) == 1
            else replace(
                alike[0],
                holder=f"{variable}{ANY_GRADIENT}",
                **_sums(alike, "bytes", "retained", "tensors", "nodes"),
            )
        )


def _exceptions_together(found: list[Suspect]) -> Iterator[Suspect]:
    """Exceptions that one variable reaches as one suspect: one line lets go of them all."""
    groups: dict[str, list[Suspect]] = {}
    for one in found:
        alone = one.kind != "exception" or one.unread is not None
        groups.setdefault(one.holder if alone else _variable(one.holder), []).append(one)
    for name, alike in groups.items():
        yield (
            alike[0]
            if len(alike) == 1
            else replace(
                alike[0],
                holder=name,
                share=round(min(sum(one.share for one in alike), 1.0), 4),
                passes=max(one.passes for one in alike),
                path=tuple(way for one in alike for way in one.path)[:MOST_PATHS],
                **_sums(alike, "retained", "tensors", "finished_bytes", "earlier_bytes"),
                reaches=max(one.reaches for one in alike),
                at=next((one.at for one in alike if one.at is not None), None),
            )
        )


def _sums(alike: Sequence[RecordedHolder | Suspect], *fields: str) -> dict[str, Any]:
    """Each field's sum; what one does not tell counts as 0."""
    return {field: sum(getattr(one, field) or 0 for one in alike) for field in fields}


def _variable(holder: str) -> str:
    """The variable through which something is reached, with the function it is in."""
    function, colon, way = holder.rpartition(": ")
    return f"{function}{colon}{_STEP.split(way, maxsplit=1)[0]}"


def _is_told(holder: str, by: Suspect) -> bool:
    """Whether `holder` is a part of what is told already; an optimizer is named without the call it is in."""
    variable = by.holder.rpartition(": ")[2]
    return is_within(holder, by.holder) or (by.unread is not None and is_within(holder, variable))


def _shown(study: DeviceStudy, entry: int, allocated: int) -> Iterator[Suspect]:
    """The histories of what the cells of a notebook have shown, as IPython names them in the cells' namespace."""
    for one in study.snapshot.recorded.holders_on(study.index):
        if one.holder and one.retained and _HISTORY.search(one.holder):
            yield replace(_suspect(study, entry, one, allocated), kind="history")


def is_finished_with(suspect: Suspect) -> bool:
    """Whether no running code uses what it keeps.

    A stored exception, an unreachable cycle, an ended call's closure, a variable that is not read again.
    """
    if suspect.unread is not None or suspect.shows is not None:
        return True
    return suspect.kind in _FINISHED_WITH or suspect.is_ended_closure


def _suspect(
    study: DeviceStudy, entry: int, holder: RecordedHolder, allocated: int, taken: Sequence[IntArray] = ()
) -> Suspect:
    """`taken`: lifetimes that are told of other suspects already."""
    name, retained = holder.holder or "", holder.retained or 0
    rows, paths, throughs, saved = _held(study, entry, name)
    if any(np.isin(rows, one).any() for one in taken):
        others = np.isin(rows, np.concatenate(taken))
        retained = max(retained - int(study.history.size[rows[others]].sum()), 0)
        rows, throughs, saved = rows[~others], throughs[~others], saved[~others]
    size = study.history.size[rows]
    if retained > allocated:  # the recording tells of its end, and this request failed earlier
        retained = min(int(size.sum()), allocated)
    unclaimed = _unclaimed_for(study, entry, holder, rows) if _is_full(holder) else 0
    finished = finished_before(study, rows, entry) & ~made_once(study, entry)[rows]
    whole = retained or holder.bytes or 0
    kind = holder.kind or "unknown"
    if _CYCLE.match(name):
        kind = "cycle"
    elif holder.place == "deferred" or REGISTERED.match(name):
        kind = "deferred"
    elif kind not in UNDERWAY and 0 < retained <= 2 * int(size[throughs].sum()):
        kind = "exception"
    earlier = min(int(size[made_before(study, rows, entry)].sum()), retained)
    keeps_graph = 0 < whole <= 2 * int(size[saved].sum())
    if kind == "dict" and holder.place == "local" and keeps_graph and not earlier:
        # What a model has returned, by name: its values wait for the backward of this pass, as a loss does.
        kind = "graph"
    # What a variable views of a tensor of the work underway may be read in parts; one of earlier work is what is left.
    not_of_the_pass = kind not in OF_THE_PASS or (kind == "tensor" and earlier == retained)
    stores = tuple(Location(*one[:3]) for one in holder.stores)
    return Suspect(
        holder=name,
        kind=kind,
        retained=retained,
        share=round(min(retained / allocated, 1.0), 4),
        tensors=holder.tensors or 0,
        passes=unclaimed or len(ascending(passes_of(study, rows[finished], entry))),
        path=holder.path or paths,
        finished_bytes=min(int(size[finished].sum()), retained),
        earlier_bytes=earlier,
        keeps_graph=keeps_graph,
        reaches=holder.bytes or 0,
        at=_at(study, holder),
        stores=stores,
        made_under=made_under(study, rows, stores),
        is_bounded=bool(holder.maxlen),
        is_full=_is_full(holder),
        is_abandoned=unclaimed > 0,
        is_ended_closure=kind == "closure" and holder.finished is True,
        shows=_shows(study, name, retained) if not_of_the_pass else None,
        part=_part(study, name),
    )


def _at(study: DeviceStudy, holder: RecordedHolder) -> Location | None:
    """The line told of the holder, else of another variable of the same call, where all that are told agree."""
    if holder.at is not None:
        return Location(*holder.at[:3])
    function = (holder.holder or "").rpartition(": ")[0]
    told = {
        Location(*one.at[:3])
        for one in study.snapshot.recorded.holders_on(study.index)
        if one.at is not None and (one.holder or "").rpartition(": ")[0] == function and one.place == holder.place
    }
    return told.pop() if len(told) == 1 and holder.place == "local" and "→" not in function else None


def _is_full(holder: RecordedHolder) -> bool:
    """Whether it is bounded and holds all it may, or is a window of a few items: collections alike stand in one row."""
    most = (holder.maxlen or 0) * max(holder.count or 1, 1)
    return most > 0 and (most <= (holder.length or 0) or (holder.kind == "deque" and most <= LARGEST_WINDOW))


def _unclaimed_for(study: DeviceStudy, entry: int, holder: RecordedHolder, rows: IntArray) -> int:
    """For how many passes nobody took from some of several bounded collections; 0 where they may be turned over.

    Such as the queues of loaders whose readers have left early, each with a thread that waits for room: what they hold
    is older than what all of them together would turn over.
    """
    count, begins = holder.count or 1, pass_begins(study, entry)
    if count < LEAST_ABANDONED or not len(begins) or not len(rows):
        return 0
    age = len(begins) - 1 - int(passes_of(study, rows, entry).min())
    return age if age > count * ((holder.maxlen or 0) + 1) else 0


def _part(study: DeviceStudy, holder: str) -> str | None:
    """What of its items nearly all is that it keeps, by the ways that lead through it."""
    sums: dict[str, int] = {}
    for tensor, path in first_ways(study):
        if path.startswith(holder) and (item := _OF_ITEM.match(path, len(holder))) is not None:
            part = _NUMBER.sub("[*]", item[1])
            sums[part] = sums.get(part, 0) + (tensor.bytes or 0)
    part = max(sums, key=lambda one: sums[one], default="")
    return part if part and sums[part] >= NEARLY_ALL * sum(sums.values()) else None


def _shows(study: DeviceStudy, holder: str, retained: int) -> int | None:
    """Bytes that the tensors it keeps show, where those are views of small parts of what they keep alive."""
    told = first_ways(study)
    if all(one.visible is None for one, _ in told):
        return None
    own = [one for one, path in told if is_within(path, holder)]
    shown = sum(one.bytes or 0 if one.visible is None else one.visible for one in own)
    return shown if own and shown <= MOST_SHOWN * retained else None


def held_rows(study: DeviceStudy, entry: int, holder: str) -> IntArray:
    """The rows of the lifetimes that `holder` keeps alive once `entry` has happened.

    Of a variable that is not read again, its models and optimizers as well, whose tensors have names of their own.
    """
    unread = [one for one in study.snapshot.recorded.tensors_on(study.index) if one.unread == holder]
    rows = live_rows(study, entry, [one.address for one in unread if one.address is not None])
    if any((one.holder, one.place) == (holder, "graph") for one in study.snapshot.recorded.unread):
        return ascending(rows[rows >= 0])  # its values are read
    return ascending(np.concatenate([_held(study, entry, holder)[0], rows[rows >= 0]]))


def own_rows(study: DeviceStudy, entry: int, holder: str) -> IntArray:
    """Of what a variable keeps alive, what is not saved for backward: its own memory, and not of its graph."""
    rows, _, _, saved = _held(study, entry, holder)
    return np.asarray(rows[~saved])


def _held(study: DeviceStudy, entry: int, holder: str) -> tuple[IntArray, tuple[str, ...], BoolArray, BoolArray]:
    """Rows that `holder` keeps; the ways to the largest; which it keeps through a traceback, and for a backward."""
    # A state is named after its parameter, not after its optimizer: a list of models does not keep it.
    optimizers = [one.holder or "" for one in holders_in_blocks(study) if one.kind == "optimizer_state"]
    models = holder in {one.holder for one, _ in kept_models(study)}
    alone, elsewhere = optimizers == [holder], models and not any(is_within(one, holder) for one in optimizers)

    def keeps(tensor: RecordedTensor, path: str) -> bool:
        by_name = not (alone or elsewhere) or tensor.category != "optimizer_state"
        return is_within(path, holder) if by_name else alone

    told = [(tensor, path) for tensor, path in first_ways(study) if tensor.address is not None and keeps(tensor, path)]
    told.sort(key=lambda pair: -(pair[0].bytes or 0))
    rows = live_rows(study, entry, [tensor.address or 0 for tensor, _ in told])
    there = rows >= 0
    through = np.array([bool(_TRACEBACK.search(path)) for _, path in told], np.bool_)
    saved = np.array([tensor.saved_for is not None for tensor, _ in told], np.bool_)
    rows, first = np.unique(rows[there], return_index=True)
    paths = tuple(dict.fromkeys(path for _, path in told[:MOST_PATHS]))
    return rows, paths, through[there][first], saved[there][first]


def is_of_other_work(suspect: Suspect, in_modules: Collection[str]) -> bool:
    """Whether a graph or a tensor is held outside of any module's forward: while one runs, other work has made it.

    A loss that still waits for its backward, or one that was computed only to be shown.

    Args:
        suspect: the object.
        in_modules: the functions that run within a module's call, which its forward has called; none where no module
            runs, such as while a loss is computed of what one has returned.
    """
    function = suspect.holder.rpartition(": ")[0]
    name = function.rpartition(".")[2]
    return (
        bool(in_modules)
        and suspect.kind in ("graph", "tensor")
        and bool(function)
        and name != "forward"
        and name not in in_modules
    )


def reaching(suspects: tuple[Suspect, ...], bytes_: int) -> Suspect | None:
    """The object that reaches most of `bytes_`, alone or not; None where none reaches half."""
    found = [one for one in suspects if 2 * one.reaches >= max(bytes_, 1) and one.kind not in UNDERWAY]
    return max(found, key=lambda one: one.reaches, default=None)


def saved_share(study: DeviceStudy, entry: int) -> float:
    """The share of the allocated bytes that the recording saw saved for a backward."""
    told = [one for one in study.snapshot.recorded.tensors_on(study.index) if one.saved_for and one.address is not None]
    rows = live_rows(study, entry, [one.address or 0 for one in told])
    size = int(study.history.size[ascending(rows[rows >= 0])].sum())
    return size / max(study.history.curves.at(entry)[0], 1)
