"""What the allocated memory is, in a handful of parts: the holders that the verdict names, then what else is live.

The bar and the small timeline of the first screen show the same parts in the same colours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from oomscope.analysis.findings import DeviceFindings
from oomscope.analysis.labels.drivers import drivers_of_live
from oomscope.analysis.passes.ended_training import find_ended_training
from oomscope.analysis.passes.former_model import find_former_model
from oomscope.analysis.passes.loaded_copies import find_loaded_copies
from oomscope.analysis.passes.replaced_optimizer import find_replaced_optimizer
from oomscope.analysis.records import Location
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.verdict.suspects import held_rows
from oomscope.frozen import frozen
from oomscope.history import DeviceHistory
from oomscope.model import IntArray
from oomscope.model.ordering import among
from oomscope.rendering.html import palette
from oomscope.wording.clean import clean
from oomscope.wording.labels import label
from oomscope.wording.loops import pass_word
from oomscope.wording.page import CYCLE, EVERYTHING_ELSE, LEFT_OVER, PART_LABELS, UNDERWAY, other_of_kind, part_of_line
from oomscope.wording.paths import Shorten
from oomscope.wording.template import name_of_way

LEAST_SHARE = 0.01
"""Of the allocated bytes; smaller parts are drawn together."""
SPLIT_SHARE = 0.6
"""More of the whole than this says little as one part: it is split by the lines that made it."""
MOST_LINES = 3
_LONGEST_NAME = 60
_COLOURS = {
    "activations": palette.CATEGORY_COLOURS["activation"],
    "logits": palette.CATEGORY_COLOURS["input"],
    "attention_scores": palette.CATEGORY_COLOURS["temporary"],
    "parameters": palette.CATEGORY_COLOURS["parameter"],
    "duplicate_model": palette.CATEGORY_COLOURS["buffer"],
    "gradients": palette.CATEGORY_COLOURS["gradient"],
    "optimizer_state": palette.CATEGORY_COLOURS["optimizer_state"],
    "optimizer_temporaries": palette.CATEGORY_COLOURS["temporary"],
    "kv_cache": palette.CATEGORY_COLOURS["buffer"],
    "workspace": palette.CATEGORY_COLOURS["workspace"],
    "cuda_graphs": palette.CATEGORY_COLOURS["workspace"],
    "retained_graph": palette.KEPT,
    "accumulated_tensors": palette.KEPT,
    UNDERWAY: palette.CATEGORY_COLOURS["activation"],
}
_LEFT: Mapping[str, Callable[[DeviceStudy, int], Any]] = {
    "causes.retained.ended_training": find_ended_training,
    "causes.retained.former_model": find_former_model,
    "causes.retained.loaded": find_loaded_copies,
    "causes.retained.replaced_optimizer": find_replaced_optimizer,
}
"""What has found the lifetimes that a headline is about."""
_KEPT_KINDS = ("retained_graph", "accumulated_tensors")
_SHADES = (1.0, 0.72, 0.5, 0.32)
"""Opacities of parts that share a colour."""


@frozen
class LivePart:
    """A part of the allocated bytes: its words, its colour with an opacity, its size, and the holder it is of."""

    label: str
    colour: palette.Colour
    opacity: float
    bytes: int
    holder: str | None = None


@frozen(eq=False)
class LiveParts:
    """All parts, which sum to the allocated bytes.

    Attributes:
        parts: holders first, then by size.
        key: int64[lifetimes], the number of the part of each that is live at the instant; `len(parts)` for all others.
    """

    parts: tuple[LivePart, ...]
    key: IntArray

    @property
    def from_below(self) -> tuple[int, ...]:
        """The numbers in `key` as they are stacked: the smallest part first, the largest and what was freed on top."""
        return (*reversed(range(len(self.parts))), len(self.parts))


class _PartRows(NamedTuple):
    """A part with its lifetimes."""

    label: str
    colour: palette.Colour
    opacity: float
    rows: IntArray
    holder: str | None = None


def live_parts(device: DeviceFindings, shorten: Shorten) -> LiveParts:
    """The parts of what is allocated at the instant of attribution."""
    size = device.history.size
    rows, slugs = drivers_of_live(device.study, device.at_entry, device.growth)
    groups = list(_holders(device, rows, size))
    taken = np.concatenate([group.rows for group in groups]) if groups else np.zeros(0, np.int64)
    is_taken, names = among(rows, taken), np.array(slugs, object)
    kinds = _KEPT_KINDS if not groups else (*_KEPT_KINDS, "activations", "unknown")
    others = rows[~is_taken], _underway(device, rows[~is_taken], names[~is_taken], kinds)
    groups += _drivers(device, *others, shorten, set(names[is_taken].tolist()))
    least = LEAST_SHARE * size[rows].sum()
    large = [group for group in groups if size[group.rows].sum() >= least]
    small = [group.rows for group in groups if size[group.rows].sum() < least]
    if small:
        large.append(_PartRows(EVERYTHING_ELSE, palette.OTHER_SITES, 1.0, np.concatenate(small)))
    key = np.full(len(size), len(large), np.int64)
    for number, group in enumerate(large):
        key[group.rows] = number
    parts = tuple(LivePart(*group[:3], int(size[group.rows].sum()), group.holder) for group in large)
    return LiveParts(parts, key)


def _underway(device: DeviceFindings, rows: IntArray, names: Any, kinds: tuple[str, ...]) -> Any:
    """The kinds of `rows`, where what the pass underway has made is one kind: it is nothing that earlier ones left."""
    boundaries = device.rounds.boundaries
    if device.oom is None or not boundaries or pass_word(device)[0] != "pass":
        return names
    is_new = device.history.lifetimes.born[rows] >= boundaries[-1]
    return np.where(is_new & np.isin(names.astype(str), kinds), UNDERWAY, names).astype(object)


def _holders(device: DeviceFindings, rows: IntArray, size: IntArray) -> Iterator[_PartRows]:
    """The holders that the headline names: of each, as many bytes as it alone keeps."""
    oom = device.oom
    if oom is None or oom.entry != device.at_entry:
        return
    first = oom.verdict.headline[0]
    if first.code in _LEFT and (left := _LEFT[first.code](device.study, oom.entry)) is not None:
        name = _name(first.values["holder"] or LEFT_OVER)
        yield _PartRows(name, palette.KEPT, 1.0, left.rows[among(left.rows, rows)])
        return
    told = {note.values["holder"]: note.values for note in oom.verdict.headline if "holder" in note.values}
    named = [suspect for suspect in oom.verdict.suspects if suspect.holder in told]
    free = np.ones(len(size), np.bool_)
    for suspect, shade in zip(named, _SHADES, strict=False):
        held = held_rows(device.study, device.at_entry, suspect.holder)
        held = held[among(held, rows)]
        values = told[suspect.holder]
        most = values.get("retained") or values.get("bytes") or suspect.retained
        held = _filled(held[free[held]], device.history, most)
        free[held] = False
        name = CYCLE if suspect.kind == "cycle" else _name(suspect.holder)
        yield _PartRows(name, palette.KEPT, shade, held, suspect.holder)


def _name(holder: str) -> str:
    return clean(name_of_way(holder), _LONGEST_NAME)


def _filled(held: IntArray, history: DeviceHistory, most: int) -> IntArray:
    """Those of `held` that have the bytes which the verdict names, so that both show one number.

    What came last may be held by running code as well; the oldest is what is kept. The recording counts tensors, and
    blocks are larger: where the bytes without one row, or without the newest, are those of the verdict by either count,
    these rows it must be. Else those are taken that have room.
    """
    size, lifetimes = history.size, history.lifetimes
    by_age = held[np.argsort(lifetimes.born[held], kind="stable")]
    asked = lifetimes.requested[by_age]
    for bytes_of in (size[by_age], np.where(asked >= 0, asked, size[by_age])):
        over = int(bytes_of.sum()) - most
        alone, newest = np.flatnonzero(bytes_of == over), np.flatnonzero(np.cumsum(bytes_of[::-1]) == over)
        if over <= 0:
            return held
        if len(alone):
            return np.delete(by_age, alone[-1])
        if len(newest):
            return by_age[: len(by_age) - 1 - int(newest[0])]
    chosen, room = [], most
    for row, bytes_ in zip(held.tolist(), size[held].tolist(), strict=True):
        if bytes_ <= room:
            chosen.append(row)
            room -= bytes_
    return np.array(chosen, np.int64)


def _drivers(
    device: DeviceFindings, rows: IntArray, named: Any, shorten: Shorten, held_kinds: set[str]
) -> Iterator[_PartRows]:
    """Everything else by what it is; a kind that fills most of the bar by line, unless a holder is named already.

    Args:
        device: whose lifetimes.
        rows: those that no holder has.
        named: the kind of each.
        shorten: shortens file names.
        held_kinds: of what holders have: there is more of a kind than its part shows.
    """
    held_already = bool(held_kinds)
    size = device.history.size
    total = size[rows].sum()
    found = [(slug, rows[named == slug]) for slug in dict.fromkeys(named.tolist())]
    for slug, held in sorted(found, key=lambda one: -int(size[one[1]].sum())):
        colour = _COLOURS.get(slug, palette.CATEGORY_COLOURS["unknown"])
        is_large = size[held].sum() > SPLIT_SHARE * total
        if slug != "unknown" and (held_already or not is_large):
            shade = _SHADES[2] if held_already and colour == palette.KEPT else 1.0
            name = other_of_kind(slug) if slug in held_kinds else label(slug, PART_LABELS)
            yield _PartRows(name, colour, shade, held)
            continue
        lines = list(_by_line(device, held))
        for (where, part), shade in zip(lines, _SHADES, strict=False):
            text = (
                part_of_line(slug, where, shorten) if len(lines) > 1 or slug == "unknown" else label(slug, PART_LABELS)
            )
            yield _PartRows(text, colour, shade, part)


def _by_line(device: DeviceFindings, held: IntArray) -> Iterator[tuple[Location | None, IntArray]]:
    """The lines that made most of `held`, and all others together."""
    sites = device.study.sites
    site = sites.sites(device.history.lifetimes.stack[held])
    values, where = np.unique(site, return_inverse=True)
    order = np.argsort(-np.bincount(where, weights=device.history.size[held]), kind="stable")
    best = [number for number in order.tolist() if values[number] >= 0][:MOST_LINES]
    for number in best:
        yield sites.location(int(values[number])), held[where == number]
    others = held[~np.isin(where, best)]
    if len(others):
        yield None, others
