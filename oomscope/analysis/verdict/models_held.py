"""Holders that the recording tells in parts: collections of models, methods that only C knows, lonely optimizers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomscope.analysis.attribution.held_blocks import BELONGINGS, holders_in_blocks, is_within
from oomscope.analysis.study import DeviceStudy
from oomscope.model.recorded_holders import RecordedHolder

_ITEM = re.compile(r"\[[^\]]*\]")
"""An item of a collection on the way to something."""
ANY_ITEM = "[*]"
LEAST_MODELS = 2
"""What a sweep over settings keeps: more than the model that is in use."""
REGISTERED = re.compile(r"(?:[\w.]+ \()?a (?:partial|method) that nothing visible holds\b\)?")
"""What only C++ and C know and will call: `atexit`'s functions, a signal's, a finalizer's."""


def kept_models(study: DeviceStudy) -> Iterator[tuple[RecordedHolder, int]]:
    """Collections of whole models and optimizers, each with how many items hold one.

    That is ``results`` for ``results[0.003][1].model`` and the like.

    A model by itself is no suspect, nor is a list of two that are trained together; but one for each finished pass is.
    """
    items: dict[str, set[str]] = {}
    sums: dict[str, list[int]] = {}
    for holder in holders_in_blocks(study):
        for name, item in _collections(holder.holder or "") if holder.kind in BELONGINGS else ():
            alike = range(holder.count or 1) if item == ANY_ITEM else (item,)  # those alike stand in one row
            items.setdefault(name, set()).update(map(str, alike))
            total = sums.setdefault(name, [0, 0])
            total[0] += holder.retained or 0
            total[1] += holder.tensors or 0
    several = {name: len(known) for name, known in items.items() if len(known) >= LEAST_MODELS}
    for name, known in several.items():
        if not any(is_within(name, other) for other in several if other != name):
            retained, tensors = sums[name]
            yield RecordedHolder(name, "collection", study.index, retained, retained, tensors), known


def _collections(way: str) -> Iterator[tuple[str, str]]:
    """The collections on the way to a model, outermost first, each with the item; what one item is made of is left out.

    A dictionary's entry, as in ``handlers['saved'][3]``, is as good as an attribute.
    """
    for item in _ITEM.finditer(way):
        yield way[: item.start()], item[0]
        if not item[0].startswith("['"):
            return


def registered(study: DeviceStudy) -> Iterator[RecordedHolder]:
    """Methods and partial calls that only C knows and will call, with the models and optimizers that they alone keep.

    Such as a signal's handler that belongs to the trainer of an earlier phase.
    """
    sums: dict[str, list[int]] = {}
    for one in holders_in_blocks(study):
        match = REGISTERED.match(one.holder or "")
        if one.kind in BELONGINGS and match is not None:
            total = sums.setdefault(match[0], [0, 0])
            total[0] += one.retained or 0
            total[1] += one.tensors or 0
    for name, (retained, tensors) in sums.items():
        yield RecordedHolder(name, "deferred", study.index, retained, retained, tensors)


def orphaned(study: DeviceStudy) -> Iterator[RecordedHolder]:
    """Optimizers whose parameters no module holds: their model is gone, and they keep it, its gradients and states."""
    holders = holders_in_blocks(study)
    optimizers = {one.holder for one in holders if one.kind == "optimizer_state" and one.holder}
    models = [one for one in holders if one.kind == "parameter"]
    for name in {one.holder for one in models} & optimizers:
        if all(one.holder == name for one in models):
            continue  # parameters that are plain tensors, in use
        own = [one for one in holders if one.holder == name and one.kind in BELONGINGS]
        retained = sum(one.retained or 0 for one in own)
        tensors = sum(one.tensors or 0 for one in own)
        yield RecordedHolder(name, "optimizer", study.index, retained, retained, tensors)
