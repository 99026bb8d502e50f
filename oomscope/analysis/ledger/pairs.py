"""Two remedies at once: both edits of one trace, each as it is alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from oomscope.analysis.ledger.draft import Draft
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.edits import (
    accumulate,
    adafactor,
    adam_8bit,
    autocast,
    bf16,
    bound_holder,
    checkpoint,
    fsdp,
    fused_optimizer,
    no_grad,
    offload_activations,
    offload_state,
    optimizer_in_backward,
    sgd,
    sgd_momentum,
    zero1,
    zero2,
    zero3,
)
from oomscope.analysis.ledger.records import RemedyRow
from oomscope.model import IntArray
from oomscope.model.arrays import FloatArray

_ALTERNATIVES = (
    {adafactor.SLUG, adam_8bit.SLUG, fused_optimizer.SLUG, offload_state.SLUG, sgd.SLUG, sgd_momentum.SLUG,
     zero1.SLUG, zero2.SLUG, zero3.SLUG, fsdp.SLUG},
    {autocast.SLUG, bf16.SLUG},
    {checkpoint.SLUG, offload_activations.SLUG},
    {accumulate.SLUG, optimizer_in_backward.SLUG},
    {optimizer_in_backward.SLUG, offload_state.SLUG, zero1.SLUG, zero2.SLUG, zero3.SLUG, fsdp.SLUG},
)  # fmt: skip
"""Of each of these, a program follows one."""
_ALONE = (no_grad.SLUG, bound_holder.SLUG)
MOST_TRIED = 12


def worth_trying(rows: Sequence[RemedyRow], slugs: Sequence[str]) -> Iterator[tuple[RemedyRow, RemedyRow]]:
    """Pairs that a program can follow at once, those that save most first.

    Args:
        rows: the remedies, each alone.
        slugs: those that edit the trace.
    """
    usable = [row for row in rows if row.slug in slugs and row.slug not in _ALONE and row.saves_bytes > 0]
    pairs = [pair for pair in combinations(usable, 2) if not _exclude(pair[0].slug, pair[1].slug)]
    pairs.sort(key=lambda pair: -(pair[0].saves_bytes + pair[1].saves_bytes))
    yield from pairs[:MOST_TRIED]


def _exclude(one: str, other: str) -> bool:
    return one == other or any({one, other} <= group for group in _ALTERNATIVES)


def both(recorded: Draft, one: Edited, other: Edited) -> Edited:
    """The program that follows two remedies, with what either leaves open."""
    one, other = _beside(one, other), _beside(other, one)
    one, other = _without_making_again(recorded, one, other), _without_making_again(recorded, other, one)
    drafts = [merged(recorded, one.likely, other.likely)]
    drafts += [merged(recorded, draft, other.likely) for draft in one.others]
    drafts += [merged(recorded, one.likely, draft) for draft in other.others]
    for cast, made in ((one, other), (other, one)):
        if cast.own is not None and made.given is not None and made.again is not None:
            drafts = [_given_as_they_are(recorded, draft, cast.own, made.given, made.again) for draft in drafts]
    return Edited(drafts[0], tuple(drafts[1:]), max(one.doubt, other.doubt))


def _beside(edited: Edited, other: Edited) -> Edited:
    """What a remedy makes of a program that the `other` one has made compute in 16 bits."""
    if not other.halves or edited.beside_halves is None:
        return edited
    return replace(edited, likely=edited.beside_halves, others=(*edited.others, edited.likely))


def _without_making_again(recorded: Draft, edited: Edited, other: Edited) -> Edited:
    """A remedy without what it makes again or keeps for a backward, of what the `other` one runs without any."""
    if other.forward_alone is None:
        return edited
    alone, count = other.forward_alone, len(recorded)
    drafts = []
    for draft in (edited.likely, *edited.others):
        size, end, source = draft.size.copy(), draft.end.copy(), draft.source[count:]
        size[count:][(source >= 0) & alone[source]] = 0
        end[:count][alone] = np.minimum(end[:count], recorded.end)[alone]
        drafts.append(replace(draft, size=size, end=end))
    return replace(edited, likely=drafts[0], others=tuple(drafts[1:]))


def _given_as_they_are(recorded: Draft, draft: Draft, own: FloatArray, given: IntArray, again: IntArray) -> Draft:
    """`draft` in which what goes into a block is there without its copies, until the block makes those again."""
    copies = np.maximum(draft.size[given] - np.round(own[given] * recorded.size[given]).astype(np.int64), 0)
    size = draft.size.copy()
    size[given] = np.round(own[given] * recorded.size[given]).astype(np.int64)
    later = (again < recorded.end[given]) & (copies > 0)
    added = replace(draft, size=size)
    return added.added(copies[later], again[later], recorded.end[given][later], given[later])


def merged(recorded: Draft, one: Draft, other: Draft) -> Draft:
    """The draft in which every recorded request is changed as in both, and what either adds is there.

    Factors multiply. Of two other ends the earlier one holds, of two other beginnings the later one. What is added in
    place of a recorded request is as much smaller as the other remedy makes that request.
    """
    count = len(recorded)
    size = np.round(recorded.size * _factor(recorded, one) * _factor(recorded, other)).astype(np.int64)
    changed = replace(
        one,
        size=np.concatenate([size, _added(recorded, one, other)]),
        begin=np.concatenate([np.maximum(one.begin[:count], other.begin[:count]), one.begin[count:]]),
        end=np.concatenate([_ends(recorded, one, other), one.end[count:]]),
    )
    earlier = (one.begin[:count] < recorded.begin) | (other.begin[:count] < recorded.begin)
    changed.begin[:count][earlier] = np.minimum(one.begin[:count], other.begin[:count])[earlier]
    return changed.added(_added(recorded, other, one), other.begin[count:], other.end[count:], other.source[count:])


def _ends(recorded: Draft, one: Draft, other: Draft) -> IntArray:
    """When each recorded request is given back: as the remedy has it that changes that, the earlier one if both do."""
    first, second = one.end[: len(recorded)], other.end[: len(recorded)]
    changed = np.where(first == recorded.end, second, first)
    found: IntArray = np.where(second == recorded.end, changed, np.minimum(changed, second))
    return found


def _factor(recorded: Draft, draft: Draft) -> FloatArray:
    share: FloatArray = draft.size[: len(recorded)] / np.maximum(recorded.size, 1)
    return share


def _added(recorded: Draft, draft: Draft, other: Draft) -> IntArray:
    """The sizes of what `draft` adds, in a program that follows `other` as well."""
    count = len(recorded)
    source = draft.source[count:]
    factor = np.where(source >= 0, _factor(recorded, other)[source], 1.0)
    found: IntArray = np.round(draft.size[count:] * factor).astype(np.int64)
    return found
