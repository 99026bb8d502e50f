"""What would have saved it: the recorded program, replayed under other settings of the allocator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from oomscope.analysis.progress import Listener, silent
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.whatif.address_orders import DEFAULT_ORDERS
from oomscope.analysis.whatif.allowance import steps_in, steps_of_report
from oomscope.analysis.whatif.changes import Changes, parse_scaling, parse_site
from oomscope.analysis.whatif.gpus import capacity
from oomscope.analysis.whatif.preparation import prepare, prepared
from oomscope.analysis.whatif.program_parts import growth_notes, program_parts
from oomscope.analysis.whatif.records import EXPANDABLE, RECORDED, SelfCheck, WhatIf, WhatIfRow
from oomscope.analysis.whatif.sweep import Question, sweep
from oomscope.errors import RequestError
from oomscope.history import DeviceHistory, device_history, recorded_config
from oomscope.model import BoolArray, Snapshot

__all__ = [
    "EXPANDABLE",
    "RECORDED",
    "Question",
    "SelfCheck",
    "WhatIf",
    "WhatIfRow",
    "report_whatif",
    "whatif",
    "whatif_of",
]


def whatif(
    snapshot: Snapshot,
    device: int,
    *,
    settings: Sequence[str] | None = None,
    limit: int | None = None,
    gpu: str | int | None = None,
    without: Sequence[str] = (),
    scale: Sequence[str] = (),
    free: Sequence[str] = (),
    orders: int = DEFAULT_ORDERS,
    least_memory: str = "auto",
    budget: int | None = None,
    steps: Sequence[int] = (),
    phases: Mapping[str, BoolArray] | None = None,
    history: DeviceHistory | None = None,
    progress: Listener = silent,
) -> WhatIf:
    """Replay what was recorded on a device under other settings of the allocator.

    Args:
        snapshot: with a trace.
        device: its CUDA index.
        settings: each as in ``PYTORCH_ALLOC_CONF``; None: those worth trying.
        limit: bytes that the process may reserve, as `torch.cuda.set_per_process_memory_fraction` bounds them.
        gpu: a physical card, by size (``24GiB``) or name (``A100-40``); or its bytes.
        without: places in the code (``metrics.py:17``) whose allocations are left out.
        scale: ``SITE=FACTOR``: places, or names of `phases`, whose allocations are larger or smaller.
        free: places whose allocations are given back at the end of their step at the latest.
        orders: how many orders of segment addresses are tried where they can matter.
        least_memory: for which rows orders are tried and the least memory is searched for: ``auto`` (the recorded
            setting, expandable segments, and what `settings` names), ``all`` or ``none``.
        budget: steps that its replays may take; what would take more is left out, and said to be.
        steps: entries where the steps of the program begin.
        phases: what belongs to each phase of the program and category of memory, by name; see `ProgramMarks`.
        history: of the device, where it is there already.
        progress: told how far the replays are.

    Raises:
        RequestError: the snapshot cannot serve the request.
    """
    question = Question(
        settings=None if settings is None else tuple(settings),
        limit=limit,
        gpu=capacity(gpu) if isinstance(gpu, str) else gpu,
        changes=Changes(
            tuple(map(parse_site, without)), tuple(map(parse_scaling, scale)), tuple(map(parse_site, free))
        ),
        orders=orders,
        thorough=least_memory,
        budget=budget,
        steps=tuple(steps),
        phases=phases or {},
    )
    known = history or _history(snapshot, device)
    if snapshot.device(device).cut:
        raise RequestError("The file was cut off before the end of the trace, so there is no whole run to replay.")
    progress("preparing", 0.0)
    return sweep(snapshot, prepare(snapshot, known), question, progress)


def _history(snapshot: Snapshot, device: int) -> DeviceHistory:
    try:
        found = snapshot.device(device)
    except KeyError:
        known = ", ".join(str(other.index) for other in snapshot.devices) or "none"
        raise RequestError(f"The snapshot holds nothing about device {device}; it has {known}.") from None
    return device_history(found, recorded_config(snapshot, found))


def whatif_of(study: DeviceStudy, **question: Any) -> WhatIf:
    """`whatif` of a device that was studied: its steps and the parts of its program are known, and whether it grows.

    Args:
        study: of the device.
        question: keyword arguments of `whatif`.

    Raises:
        RequestError: the snapshot cannot serve the request.
    """
    parts, steps = program_parts(study), study.steps.boundaries
    answer = whatif(study.snapshot, study.index, steps=steps, phases=parts, history=study.history, **question)
    return replace(answer, notes=growth_notes(study))


def report_whatif(study: DeviceStudy, *, seconds: float | None = None, progress: Listener = silent) -> WhatIf:
    """What a report says of other settings, bounded in steps.

    The recorded setting and expandable segments come first, with the least memory each needs; then, as far as the
    budget goes, the other settings that are commonly advised.

    Args:
        study: of the device.
        seconds: the budget, at a fixed number of steps for each; None: what suits the length of the program.
        progress: told how far the replays are.
    """
    progress("preparing", 0.0)
    subject = prepared(study)
    budget = steps_of_report(len(subject.replayer.program.op)) if seconds is None else steps_in(seconds)
    return sweep(study.snapshot, subject, Question(budget=budget, steps=study.steps.boundaries), progress)
