"""All rows for one device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.limits import Limit
from oomscope.allocator.program import Op, Program
from oomscope.allocator.replay import Replay, Replayer
from oomscope.allocator.torch_releases import INTRODUCED, LATEST
from oomscope.analysis.progress import Listener, silent
from oomscope.analysis.whatif import settings as tried
from oomscope.analysis.whatif.address_orders import DEFAULT_ORDERS
from oomscope.analysis.whatif.alike import replay_as_recorded
from oomscope.analysis.whatif.allowance import Allowance
from oomscope.analysis.whatif.changes import Changes, ProgramMarks, changed_program
from oomscope.analysis.whatif.meter import REPLAYS_OF_A_THOROUGH_ROW, Meter
from oomscope.analysis.whatif.preparation import Subject
from oomscope.analysis.whatif.records import EXPANDABLE, RECORDED, SelfCheck, WhatIf, WhatIfRow
from oomscope.analysis.whatif.releases import OBTAINS
from oomscope.analysis.whatif.row import UP_TO_THE_LAST, Case, Effort, answer, unanswered
from oomscope.analysis.whatif.settings import Emptying, Setting
from oomscope.frozen import frozen
from oomscope.model import Action, BoolArray, Note, Snapshot, note

ALWAYS = 2
"""So many rows are made however long they take: the recorded setting and the one after it."""


@frozen
class Question:
    """What is asked of a snapshot.

    Attributes:
        settings: as in ``PYTORCH_ALLOC_CONF``, one row each; None: the settings worth trying.
        limit: a cap in bytes, as `set_per_process_memory_fraction` makes one.
        gpu: the memory of a physical card in bytes.
        changes: what is changed in the program.
        orders: how many orders of addresses are tried, where they can matter.
        thorough: for which rows orders and the least memory are looked at: ``none``, ``auto`` (the recorded setting,
            expandable segments, and every setting that was asked for by name) or ``all``.
        budget: steps that all replays may take; what would take more is left out. None: no bound.
        steps: entries where the steps of the program begin, ascending.
        phases: what belongs to each phase of the program and category of memory, by name; see `ProgramMarks`.
    """

    settings: tuple[str, ...] | None = None
    limit: int | None = None
    gpu: int | None = None
    changes: Changes = field(default_factory=Changes)
    orders: int = DEFAULT_ORDERS
    thorough: str = "auto"
    budget: int | None = None
    steps: tuple[int, ...] = ()
    phases: Mapping[str, BoolArray] = field(default_factory=dict)


@frozen
class _Bounds:
    """What may be reserved in the rows."""

    limit: Limit
    alternative: Limit | None
    notes: tuple[Note, ...]
    is_recorded: bool


def sweep(snapshot: Snapshot, subject: Subject, question: Question, progress: Listener = silent) -> WhatIf:
    """Answer `question` for a recorded run."""
    check = _with_reason(subject)
    if not check.exact:
        known = [_from_the_trace(subject, check)]
        named = [tried.parse(text, subject.config, subject.release) for text in question.settings or ()]
        known += [unanswered(setting, subject.limit.limit, check.reason) for setting in named]
        return WhatIf(subject.device.index, check, tuple(known))
    bounds = _bounds(subject, question)
    allowance = Allowance(question.budget)
    allowance.spend(subject.recorded)
    rows: list[WhatIfRow] = []
    skipped = []
    settings = (tried.recorded(subject.config), *_asked(subject, question, bounds.limit))
    changed = _changed_settings(subject, question)
    meter = Meter(progress, [_replays(setting, question) for setting in (*settings, *changed)], allowance)
    for number, setting in enumerate(settings):
        meter.begin(setting.text)
        if number >= ALWAYS and not allowance.allows(_steps(subject, setting)):
            skipped.append(setting.text)
            continue
        row = _row(subject, setting, question, bounds, allowance, meter)
        if row is not None:
            rows.append(row)
    rows += _changed_rows(snapshot, subject, question, changed, bounds, allowance, meter)
    return WhatIf(subject.device.index, check, tuple(rows), tuple(skipped))


def _asked(subject: Subject, question: Question, limit: Limit) -> list[Setting]:
    """The settings of the rows behind the recorded one."""
    if question.settings is not None:
        return [tried.parse(text, subject.config, subject.release) for text in question.settings]
    if question.changes:
        return []
    return tried.default_set(subject.config, limit)


def _replays(setting: Setting, question: Question) -> int:
    """About how many replays a row takes."""
    return REPLAYS_OF_A_THOROUGH_ROW if _is_thorough(setting, question) else 1


def _steps(subject: Subject, setting: Setting) -> int:
    """About how many steps a replay takes: a pass that gives memory back and gets it anew is not left out."""
    replayer = subject.replayer
    return len(replayer.program.op) if setting.emptying is Emptying.EACH_STEP else replayer.steps


def _row(
    subject: Subject, setting: Setting, question: Question, bounds: _Bounds, allowance: Allowance, meter: Meter
) -> WhatIfRow | None:
    """One row of the unchanged program; None where it was not asked for and cannot be answered."""
    replayer, notes = _replayer(subject, setting, question)
    if replayer is None:
        return None if question.settings is None else unanswered(setting, bounds.limit, notes[0])
    case = Case(
        subject,
        meter.counted(replayer),
        setting,
        bounds.limit,
        notes=(*_beside(subject, setting, question), *notes),
        as_recorded=setting.is_recorded and bounds.is_recorded,
        estimate=not subject.complete and setting.config != subject.config,
    )
    return _answered(case, bounds, _effort(setting, question, allowance))


def _answered(case: Case, bounds: _Bounds, effort: Effort) -> WhatIfRow:
    """The row of a case under `bounds` and the memory fraction that it may set itself, with what follows from both."""
    limit, alternative, notes = _with_fraction(case, bounds)
    if not bounds.is_recorded and not case.setting.is_asked_for:
        case = replace(case, setting=replace(case.setting, config=_without_fraction(case.config)))
    found = case.replayer.program.initial
    reserved = found.layout.reserved if found is not None and not case.as_recorded else 0
    if limit.bytes is not None and limit.bytes < reserved:
        return unanswered(case.setting, limit, note("whatif.limit_below_reserved", bytes=reserved))
    if case.config.garbage_collection_threshold and limit.cap is None:
        notes += (note("whatif.collection_needs_a_cap"),)
    notes = (*bounds.notes, *case.notes, *notes, *_too_new(case.subject, case.setting))
    case = replace(case, limit=limit, alternative=alternative, notes=notes)
    return answer(case, effort, case.subject.recorded if case.as_recorded else _known(case))


def _known(case: Case) -> Replay | None:
    """The replay of a case that goes as the recorded one."""
    is_same = not case.estimate and case.setting.emptying is Emptying.NEVER
    return replay_as_recorded(case.subject, case.config, case.limit) if is_same else None


def _effort(setting: Setting, question: Question, allowance: Allowance) -> Effort:
    is_thorough = _is_thorough(setting, question)
    return Effort(question.orders if is_thorough else 1, is_thorough, allowance)


def _is_thorough(setting: Setting, question: Question) -> bool:
    named = setting.is_recorded or setting.text == EXPANDABLE or question.settings is not None
    return question.thorough == "all" or (question.thorough == "auto" and named)


def _replayer(subject: Subject, setting: Setting, question: Question) -> tuple[Replayer | None, tuple[Note, ...]]:
    """What replays the program for a setting; None, with the reason, where nothing can."""
    program = subject.extraction.program
    if setting.emptying is not Emptying.NEVER:
        emptied = _with_empty_cache(subject, program, setting.emptying, question.steps)
        if emptied is None:
            return None, (note("whatif.steps_unknown"),)
        program = emptied
    if subject.complete or setting.config == subject.config:
        same = program is subject.extraction.program
        return (subject.replayer if same else Replayer(program, subject.release)), ()
    if not setting.config.expandable_segments:
        return None, (note("whatif.late_layout"),)
    compact = program.replaced_compactly()
    return Replayer(compact, subject.release), (note("whatif.late_laid_out_anew"),)


def _with_empty_cache(subject: Subject, program: Program, emptying: Emptying, steps: Sequence[int]) -> Program | None:
    """The program with calls of `empty_cache` between its steps; None where those are not known."""
    begins = np.array([step for step in steps if step > 0], np.int64)
    if not len(begins):
        return None
    if emptying is Emptying.BEFORE_PEAK:
        peak = int(np.argmax(subject.device.curves.allocated))
        before = begins[begins <= peak]
        if not len(before):
            return None
        begins = before[-1:]
    return program.with_steps(Op.EMPTY_CACHE, begins)


def _bounds(subject: Subject, question: Question) -> _Bounds:
    """What may be reserved: as recorded, or on the card and under the cap that were asked for, which replace those."""
    recorded, notes = subject.limit, []
    if question.limit is not None or question.gpu is not None:
        if question.gpu is not None:
            notes.append(note("whatif.whole_card"))
        if recorded.limit.cap is not None:
            notes.append(note("whatif.cap_replaced", cap=recorded.limit.cap))
        capacity, total = recorded.limit.capacity, recorded.limit.device_total
        if question.gpu is not None:
            capacity = total = question.gpu
        return _Bounds(Limit(question.limit, capacity, total), None, tuple(notes), is_recorded=False)
    if recorded.source == "bracket" and recorded.high is not None:
        return _Bounds(recorded.limit, replace(recorded.limit, cap=recorded.high), (), is_recorded=True)
    return _Bounds(recorded.limit, None, (), is_recorded=True)


def _with_fraction(case: Case, bounds: _Bounds) -> tuple[Limit, Limit | None, tuple[Note, ...]]:
    """The limit and its alternative under the memory fraction that a setting of the question names.

    The recorded fraction is part of the recorded limit, and goes where that is replaced.
    """
    fraction, recorded = case.config.per_process_memory_fraction, case.subject.config.per_process_memory_fraction
    if fraction is None or not case.setting.is_asked_for or (bounds.is_recorded and fraction == recorded):
        return bounds.limit, bounds.alternative, ()
    total = bounds.limit.device_total
    if total is None:
        return bounds.limit, bounds.alternative, (note("whatif.fraction_of_unknown_card"),)
    cap = int(fraction * total)
    if bounds.is_recorded and recorded is not None:
        return replace(bounds.limit, cap=cap), None, ()
    limit, alternative = _capped(bounds.limit, cap), bounds.alternative and _capped(bounds.alternative, cap)
    return limit, None if alternative == limit else alternative, ()


def _without_fraction(config: AllocatorConfig) -> AllocatorConfig:
    return replace(config, per_process_memory_fraction=None)


def _capped(limit: Limit, cap: int) -> Limit:
    return replace(limit, cap=cap if limit.cap is None else min(cap, limit.cap))


def _beside(subject: Subject, setting: Setting, question: Question) -> tuple[Note, ...]:
    """What else is set, where a row is named after its one difference from the recorded settings."""
    config = subject.config
    if question.limit is not None or question.gpu is not None:
        config = _without_fraction(config)
    if setting.is_recorded or question.settings is not None or not config.text:
        return ()
    return (note("whatif.rest_as_recorded", conf=config.text),)


def _too_new(subject: Subject, setting: Setting) -> tuple[Note, ...]:
    """What a setting needs that the recorded torch did not have."""
    default = type(setting.config)()
    return tuple(
        note("whatif.needs_newer_torch", option=name, torch=f"{major}.{minor}")
        for name, (major, minor) in INTRODUCED.items()
        if getattr(setting.config, name) != getattr(default, name) and not subject.release.knows(name)
    )


def _changed_settings(subject: Subject, question: Question) -> tuple[Setting, ...]:
    """The settings under which the changed program is replayed; none where nothing is changed."""
    if not question.changes:
        return ()
    if question.settings is not None:
        settings = [tried.parse(text, subject.config, subject.release) for text in question.settings]
    else:
        settings = tried.beside(subject.config, (EXPANDABLE,))
    return (tried.recorded(subject.config), *settings)


def _changed_rows(
    snapshot: Snapshot,
    subject: Subject,
    question: Question,
    settings: Sequence[Setting],
    bounds: _Bounds,
    allowance: Allowance,
    meter: Meter,
) -> list[WhatIfRow]:
    """The rows of the changed program."""
    if not settings:
        return []
    marks = ProgramMarks(snapshot.stacks, question.phases, question.steps)
    program, notes = changed_program(subject, marks, question.changes)
    replayer = meter.counted(Replayer(program, subject.release))
    rows = []
    for setting in settings:
        meter.begin(setting.text)
        named = replace(setting, text=f"{setting.text}, {question.changes.text}")
        notes_of_row = (
            note("whatif.estimate"),
            *notes,
            *_beside(subject, setting, question),
        )
        case = Case(subject, replayer, named, bounds.limit, notes=notes_of_row, estimate=True)
        rows.append(_answered(case, bounds, _effort(setting, question, allowance)))
    return rows


def _with_reason(subject: Subject) -> SelfCheck:
    """The self-check with what follows from it."""
    check = subject.check
    if not check.addresses:
        return replace(check, reason=note("whatif.no_allocation"))
    if check.mismatches:
        return replace(
            check,
            reason=note(
                "whatif.replay_departs",
                entry=check.first_mismatch,
                mismatches=check.mismatches,
                addresses=check.addresses,
                segment_events=check.segment_events,
                rule=check.rule,
                newer=subject.release.version if subject.release.version > LATEST.version else None,
                known=LATEST.version,
            ),
        )
    if not subject.complete:
        return replace(check, reason=note("whatif.late_recording"))
    return check


def _from_the_trace(subject: Subject, check: SelfCheck) -> WhatIfRow:
    """What is known of the recorded setting without a replay."""
    trace, layout = subject.device.trace, subject.device.layout
    ooms = trace.entries(Action.OOM)
    return WhatIfRow(
        setting=RECORDED,
        limit=subject.limit.limit.bytes,
        peak_reserved=int(subject.device.curves.reserved.max()),
        final_reserved=layout.reserved,
        segment_allocs=len(trace.entries(*OBTAINS)),
        oom=len(ooms) > 0,
        failed_allocation=subject.allocations_before(int(ooms[0])) if len(ooms) else None,
        notes=(UP_TO_THE_LAST, note("whatif.from_the_trace", why=check.reason)),
    )
