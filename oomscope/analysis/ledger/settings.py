"""What needs no change of the program: settings of the allocator, and a higher cap."""

from __future__ import annotations

from functools import partial

from oomscope.allocator.config import AllocatorConfig
from oomscope.allocator.limits import Limit
from oomscope.allocator.replay import Replay, Replayer
from oomscope.analysis.ledger.records import RemedyRow
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.to_come import Outlook, enough
from oomscope.analysis.plan.records import Estimate
from oomscope.analysis.whatif import settings
from oomscope.analysis.whatif.settings import Emptying

RAISE_CAP = "raise_cap"
WORTH = 0.01
"""Of the recorded peak of reserved memory: a setting that saves less changes nothing."""


def settings_worth_trying(run: Run, ahead: Outlook, limit: Limit) -> list[RemedyRow]:
    """The rows of those that save reserved memory, or serve what was refused."""
    subject = run.recording.subject
    if not subject.complete:
        return []
    tried = settings.default_set(subject.config, subject.limit.limit)
    rows = [setting_row(run, ahead, limit, one.text) for one in tried if one.emptying is Emptying.NEVER]
    least = WORTH * subject.recorded.peak_reserved
    return [row for row in rows if row.enough or (row.enough is not False and row.saves_bytes >= least)]


def setting_row(run: Run, ahead: Outlook, limit: Limit, text: str) -> RemedyRow:
    """The recorded program under another setting and a limit; what it saves is reserved memory."""
    subject = run.recording.subject
    config = settings.parse(text, subject.config, subject.release).config
    replay = _run(run, config, limit)
    peak = Estimate(replay.peak_allocated, replay.peak_allocated, replay.peak_allocated)
    served = enough(ahead, partial(_run, run, config), limit, 0)
    return RemedyRow(text, None, peak, subject.recorded.peak_reserved - replay.peak_reserved, served)


def raised_cap(run: Run, ahead: Outlook, base: int) -> RemedyRow | None:
    """The whole card, where a cap below it refused a request and the card's size is known."""
    limit = run.recording.subject.limit.limit
    if not ahead.failed or limit.cap is None or limit.device_total is None or limit.cap >= limit.device_total:
        return None
    card = limit.capacity if limit.capacity is not None else limit.device_total
    whole = Limit(capacity=card, device_total=limit.device_total)
    served = enough(ahead, partial(_run, run, run.recording.subject.config), whole, 0)
    return RemedyRow(RAISE_CAP, None, Estimate(base, base, base), 0, served)


def _run(run: Run, config: AllocatorConfig, limit: Limit) -> Replay:
    subject = run.recording.subject
    replay = Replayer(run.recording.program, subject.release).run(config, limit, subject.addresses())
    run.allowance.spend(replay)
    return replay
