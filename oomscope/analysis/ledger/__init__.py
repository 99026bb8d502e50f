"""The ledger of remedies: what each would make of the peak of this run, by editing the trace and replaying it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import cast

from oomscope.allocator.limits import Limit
from oomscope.allocator.replay import Replay, Replayer
from oomscope.analysis.ledger.draft import Draft
from oomscope.analysis.ledger.edit import Edit, Edited
from oomscope.analysis.ledger.edits import (
    accumulate,
    adafactor,
    adam_8bit,
    autocast,
    bf16,
    bound_holder,
    checkpoint,
    fsdp,
    fused_loss,
    fused_optimizer,
    no_grad,
    offload_activations,
    offload_state,
    optimizer_in_backward,
    sdpa,
    set_to_none,
    sgd,
    sgd_momentum,
    zero1,
    zero2,
    zero3,
)
from oomscope.analysis.ledger.graphs.never_backward import never_backward
from oomscope.analysis.ledger.graphs.untrained import untrained
from oomscope.analysis.ledger.pairs import both, worth_trying
from oomscope.analysis.ledger.ranges import measured_doubt, range_of
from oomscope.analysis.ledger.records import ESTIMATED, REPLAYED, Effect, Ledger, RemedyPair, RemedyRow
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.settings import RAISE_CAP, raised_cap, setting_row, settings_worth_trying
from oomscope.analysis.ledger.to_come import enough, less, outlook
from oomscope.analysis.plan.records import Estimate
from oomscope.analysis.progress import Listener, silent
from oomscope.analysis.study import DeviceStudy, SnapshotStudy
from oomscope.analysis.whatif.preparation import Subject
from oomscope.errors import RequestError
from oomscope.model import Note, Snapshot, note

__all__ = ["EDITS", "Ledger", "RemedyRow", "ledger_of", "parse_remedy", "remedies"]

_MODULES = (
    accumulate, checkpoint, autocast, bf16, sgd, sgd_momentum, adafactor, adam_8bit, fused_optimizer, fused_loss, sdpa,
    set_to_none, zero1, zero2, zero3, fsdp, offload_state, offload_activations, optimizer_in_backward, no_grad,
    bound_holder,
)  # fmt: skip
EDITS: Mapping[str, Edit] = MappingProxyType({module.SLUG: cast("Edit", module) for module in _MODULES})
"""Every remedy that edits the trace, by its slug."""
WITH_VALUE = {accumulate.SLUG: accumulate.DEFAULT, fused_loss.SLUG: fused_loss.DEFAULT} | {
    module.SLUG: module.DEFAULT for module in (zero1, zero2, zero3, fsdp)
}
"""The remedies that take a number, with the one that they have if none is given."""
_ASSUMED = (
    (checkpoint, "ledger.in_training_only", "ledger.in_evaluations_too"),
    (bf16, "ledger.logits_not_cast", "ledger.logits_cast"),
)
"""Remedies that rest on what no trace tells, with the notes on what they take for likely: where the other case is that
a program makes evaluations again, or casts, and where it does not."""
_UNSEEN_SIZES = (autocast.SLUG, bf16.SLUG, adafactor.SLUG, adam_8bit.SLUG, zero3.SLUG, fsdp.SLUG)
"""They rest on sizes that the recording does not show."""
_ONLY_IF_ASKED = (no_grad.SLUG,)
"""It makes another program of one that trains, but for what goes backward and is not trained."""
_SHARDED = (zero1.SLUG, zero2.SLUG, zero3.SLUG, fsdp.SLUG)
_STATE_LEFT = {
    sgd.SLUG: 0.0, adafactor.SLUG: 0.1, offload_state.SLUG: 0.0, sgd_momentum.SLUG: 0.5, bf16.SLUG: 0.5,
    adam_8bit.SLUG: adam_8bit.SHARE,
}  # fmt: skip
MICRO_BATCHES = (4, 8, 16)
MOST_PAIRS = 3
"""A reader who is told ten does none."""
WORTH = 0.002
"""Of the recorded peak: what saves less is not listed, unless asked for."""


def remedies(snapshot: Snapshot, names: Sequence[str] | None = None, *, device: int | None = None) -> Ledger:
    """What each remedy would make of the peak of a recorded run.

    Args:
        snapshot: with a trace.
        names: each as ``--remedy`` takes it, such as ``accumulate=4``; None: all that may help.
        device: its CUDA index; None: the one with the longest trace.

    Raises:
        RequestError: the snapshot cannot serve the request.
    """
    if not snapshot.devices:
        raise RequestError("the snapshot holds no device, so there is nothing to replay.")
    index = max(snapshot.devices, key=lambda one: len(one.trace)).index if device is None else device
    wanted = None if names is None else [parse_remedy(name) for name in names]
    return ledger_of(SnapshotStudy(snapshot).device(index), wanted)


def parse_remedy(text: str) -> tuple[str, int | None]:
    """A remedy as it is written: ``checkpoint``, ``accumulate=4``, or a setting such as ``expandable_segments:True``.

    Raises:
        RequestError: there is none of that name, or its value is none that it can have.
    """
    slug, equals, number = (part.strip() for part in text.partition("="))
    if ":" in slug and not equals:
        return slug, None
    if slug not in EDITS and slug != RAISE_CAP:
        raise RequestError(
            f"{text!r} is no remedy; known are {', '.join([*EDITS, RAISE_CAP])}, and allocator settings."
        )
    if not equals:
        return slug, WITH_VALUE.get(slug)
    if slug not in WITH_VALUE:
        raise RequestError(f"{text!r}: {slug} takes no value.")
    if not (number.isascii() and number.isdigit() and 2 <= int(number[:6]) <= 65536 and len(number) < 6):
        raise RequestError(f"{text!r}: the value is a whole number of at least 2.")
    return slug, int(number)


def ledger_of(
    study: DeviceStudy,
    wanted: Sequence[tuple[str, int | None]] | None = None,
    progress: Listener = silent,
    *,
    limit: Limit | None = None,
    budget: int | None = None,
) -> Ledger:
    """The ledger of a device that was studied.

    Args:
        study: of the device.
        wanted: slugs with their values; None: all that may help.
        progress: told how far it is.
        limit: what may be reserved, where another limit or card is asked for; None: what was recorded.
        budget: steps of replays after which no other remedy is begun, where all are asked for; None: no bound.

    Raises:
        RequestError: its replay departs from the recording, or the trace holds no allocation.
    """
    case = _Case(Run(study), limit)
    case.run.allowance.steps = None if wanted else budget
    listed = EDITS if case.has_graph_for_nothing else [slug for slug in EDITS if slug not in _ONLY_IF_ASKED]
    asked = wanted or [(slug, WITH_VALUE.get(slug)) for slug in listed]
    rows, skipped, left_out = _tried(case, asked, wanted is not None, progress)
    if not wanted and case.run.allowance.is_left:
        cap = raised_cap(case.run, case.outlook, case.base)
        rows += [*([cap] if cap else []), *settings_worth_trying(case.run, case.outlook, case.limit)]
    rows.sort(key=lambda row: -row.saves_bytes)
    return Ledger(
        device=study.index,
        peak_allocated=case.base,
        failed=case.outlook.failed,
        limit=limit.bytes if limit is not None else None,
        rows=tuple(rows),
        skipped=tuple(skipped) if wanted else (),
        notes=(
            *_notes(case),
            *_assumptions(case, rows),
            *([note("ledger.left_out", slugs=left_out)] if left_out else []),
        ),
        pairs=() if wanted or left_out else _pairs(case, rows, progress),
    )


def effect_on(study: DeviceStudy, slug: str, entry: int) -> Effect | None:
    """What a remedy makes of a request that failed; None where it leaves nothing to do, or the run cannot be edited.

    Args:
        study: of the device.
        slug: the remedy; with the value that it has if none is given.
        entry: of the request.
    """
    case = study.once("case of the ledger", lambda: _Case(Run(study), None))
    edited = EDITS[slug].edit(case.run, WITH_VALUE.get(slug))
    if edited is None:
        return None
    peak = _estimate(case, edited, [slug])
    likely = _replay(case.run, edited.likely, case.limit).serves(entry)
    surely = likely and _replay(case.run, edited.likely, less(case.limit, peak.high - peak.bytes)).serves(entry)
    return Effect(max(case.base - peak.bytes, 0), True if surely else None if likely else False)


def _tried(
    case: _Case,
    asked: Sequence[tuple[str, int | None]],
    by_name: bool,
    progress: Listener,
) -> tuple[list[RemedyRow], list[str], list[str]]:
    """The rows of what was asked for; what leaves nothing to do; and what the budget was spent before."""
    rows: list[RemedyRow] = []
    skipped, left_out = [], []
    for number, (slug, value) in enumerate(asked):
        if not case.run.allowance.is_left:
            left_out.append(slug)
            continue
        progress("replaying", number / (len(asked) + 1), slug)
        row = _row(case, slug, value) if by_name else _best_row(case, slug, value)
        if row is None:
            skipped.append(slug)
        elif by_name or row.saves_bytes >= WORTH * case.base:
            rows.append(row)
    return rows, skipped, left_out


def _pairs(case: _Case, rows: Sequence[RemedyRow], progress: Listener) -> tuple[RemedyPair, ...]:
    """The first few pairs that are enough where no row is."""
    ahead = case.outlook
    asks = ahead.failed or ahead.is_asked
    if not asks or ahead.to_come is None or ahead.grows or case.limit.bytes is None or any(row.enough for row in rows):
        return ()
    found: list[RemedyPair] = []
    for one, other in worth_trying(rows, [*EDITS]):
        progress("replaying", 1.0, f"{one.slug}, {other.slug}")
        pair = _pair(case, one, other)
        if pair is not None:
            found.append(pair)
        if len(found) == MOST_PAIRS or not case.run.allowance.is_left:
            break
    return tuple(sorted(found, key=lambda pair: -pair.saves_bytes))


def _pair(case: _Case, one: RemedyRow, other: RemedyRow) -> RemedyPair | None:
    """Two remedies at once, if they are enough."""
    edits = [EDITS[row.slug].edit(case.run, row.value) for row in (one, other)]
    assert edits[0] is not None, "it was edited alone"
    assert edits[1] is not None, "it was edited alone"
    edited = both(case.run.draft, edits[0], edits[1])
    states = case.outlook.states * _state_share(one.slug, one.value) * _state_share(other.slug, other.value)
    ahead = replace(case.outlook, states=round(states))
    if not _replay(case.run, edited.likely, less(case.limit, ahead.to_come or 0)).survived:
        return None
    estimate = _estimate(case, edited, [one.slug, other.slug])
    spare = estimate.high - estimate.bytes
    if not enough(ahead, lambda limit: _replay(case.run, edited.likely, limit), case.limit, spare):
        return None
    return RemedyPair(one, other, estimate, case.base - estimate.bytes)


class _Case:
    """A run with what every row needs.

    Attributes:
        run: the run.
        limit: what may be reserved.
        base: bytes at its peak, without a limit.
        outlook: what it still had before it.
    """

    def __init__(self, run: Run, limit: Limit | None) -> None:
        self.run = run
        self.outlook = replace(outlook(run), is_asked=limit is not None)
        self.limit = limit or run.recording.subject.limit.limit
        self.base = _replay(run, run.draft, Limit()).peak_allocated

    @property
    def has_graph_for_nothing(self) -> bool:
        """Whether nothing is trained, a part goes backward that is not, or a graph is kept for no backward."""
        return not self.run.trains or untrained(self.run) is not None or bool(never_backward(self.run).any())


def _best_row(case: _Case, slug: str, value: int | None) -> RemedyRow | None:
    """The row of a remedy; of accumulation that of the fewest micro-batches that may be enough."""
    row = _row(case, slug, value)
    if slug != accumulate.SLUG or row is None or row.enough is not False:
        return row
    more = (_row(case, slug, micro) for micro in MICRO_BATCHES)
    return next((one for one in more if one is not None and one.enough is not False), row)


def _notes(case: _Case) -> tuple[Note, ...]:
    found, ahead = [], case.outlook
    if ahead.failed:
        found.append(note("ledger.up_to_the_failure"))
        if ahead.grows:
            found.append(note("ledger.grows"))
        elif ahead.to_come is None:
            found.append(note("ledger.unknown_to_come"))
        elif ahead.to_come:
            found.append(note("ledger.to_come", bytes=ahead.to_come))
    if not case.run.recording.subject.complete:
        found.append(note("ledger.late"))
    return tuple(found)


def _assumptions(case: _Case, rows: Sequence[RemedyRow]) -> list[Note]:
    """What the peak would be if the program did otherwise where no trace tells what it does, and no row says so."""
    found = []
    for module, if_so, if_not in _ASSUMED:
        row = next((row for row in rows if row.slug == module.SLUG), None)
        other = module.otherwise(case.run) if row is not None else None
        if row is None or other is None:
            continue
        draft, is_so = other
        peak = _replay(case.run, draft, Limit()).peak_allocated
        if not row.peak_allocated.low <= peak <= row.peak_allocated.high:
            found.append(note(if_so if is_so else if_not, bytes=peak))
    return found


def _row(case: _Case, slug: str, value: int | None) -> RemedyRow | None:
    if slug not in EDITS:
        return _of_allocator(case, slug)
    edited = EDITS[slug].edit(case.run, value)
    if edited is None:
        return None
    estimate = _estimate(case, edited, [slug])
    ahead = replace(case.outlook, states=round(case.outlook.states * _state_share(slug, value)))
    if slug == bound_holder.SLUG:
        ahead = replace(ahead, grows=False)
    served = enough(
        ahead, lambda limit: _replay(case.run, edited.likely, limit), case.limit, estimate.high - estimate.bytes
    )
    basis = ESTIMATED if slug in _UNSEEN_SIZES else REPLAYED
    return RemedyRow(slug, value, estimate, case.base - estimate.bytes, served, basis)


def _state_share(slug: str, value: int | None) -> float:
    """What a remedy leaves of the state that the optimizer had yet to make."""
    return 1 / (value or 1) if slug in _SHARDED else _STATE_LEFT.get(slug, 1.0)


def _estimate(case: _Case, edited: Edited, slugs: Sequence[str]) -> Estimate:
    """The peak of the likely program; the range spans the others, and what the remedies are in doubt by."""
    run, base = case.run, case.base
    likely = _replay(run, edited.likely, Limit()).peak_allocated
    others = [_replay(run, other, Limit()).peak_allocated for other in edited.others]
    doubt = round(edited.doubt * abs(base - likely) + measured_doubt(slugs) * base)
    low, high = range_of(likely, others, doubt, base)
    return Estimate(likely, low, high)


def _replay(run: Run, draft: Draft, limit: Limit) -> Replay:
    subject: Subject = run.recording.subject
    if limit.device_total is None:
        limit = Limit(limit.cap, limit.capacity, subject.limit.limit.device_total)
    replay = Replayer(draft.to_program(), subject.release).run(subject.config, limit, subject.addresses())
    run.allowance.spend(replay)
    return replay


def _of_allocator(case: _Case, slug: str) -> RemedyRow | None:
    if slug == RAISE_CAP:
        return raised_cap(case.run, case.outlook, case.base)
    return setting_row(case.run, case.outlook, case.limit, slug)
