"""What the replays under other settings say of one failed request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oomscope.analysis.verdict.failed_requests import FailedRequest
from oomscope.analysis.verdict.shortage import MARGIN
from oomscope.analysis.whatif.records import EXPANDABLE, RECORDED, WhatIf, WhatIfRow
from oomscope.model import Note, note


def serving(answer: WhatIf | None, entry: int) -> list[WhatIfRow]:
    """The rows of other settings that serve the request at `entry`, the one to recommend first."""
    rows = [row for row in _others(answer) if row.served.get(entry)]
    return sorted(rows, key=lambda row: (bool(row.oom), row.setting != EXPANDABLE, -(row.headroom or 0)))


def refusing(answer: WhatIf | None, entry: int) -> list[WhatIfRow]:
    """The rows of other settings under which the request at `entry` fails, or is not reached."""
    return [row for row in _others(answer) if row.served.get(entry) is False]


def citation(answer: WhatIf | None, request: FailedRequest, cause: str) -> tuple[Note, ...]:
    """What the replays say of `request`, for the verdict; empty where there are none to trust."""
    cited = () if answer is None else tuple(_cited(answer, request, cause))
    return (*cited, *_estimated(answer)) if answer is not None and cited else ()


def _cited(answer: WhatIf, request: FailedRequest, cause: str) -> Iterator[Note]:
    served, refused = serving(answer, request.entry), refusing(answer, request.entry)
    if served:
        best = served[0]
        yield note("verdict.replay.served", setting=best.setting, **served_values(best, request))
        yield from _needs(answer, request, best)
        if cause == "growth":
            yield note("verdict.replay.served.grows")
        elif not request.recovered:
            yield note("verdict.replay.served.unknown_after")
        return
    if depends := _depends_on_the_cap(answer, request):
        yield depends
        return
    if not refused:
        return
    doubtful = len(_others(answer)) - len(refused)
    code = "verdict.replay.refused.one" if len(refused) == 1 else "verdict.replay.refused.all"
    yield note(code, setting=refused[0].setting, settings=len(refused), doubtful=doubtful)
    yield from _needs(answer, request, answer.row(EXPANDABLE))


def _estimated(answer: WhatIf) -> tuple[Note, ...]:
    """What to add where only a part of the run was recorded."""
    return () if answer.self_check.reason is None else (note("verdict.replay.estimated"),)


def _depends_on_the_cap(answer: WhatIf, request: FailedRequest) -> Note | None:
    """What to say where the setting made for holes serves the request under some of the caps that it may have been."""
    row, limit = answer.row(EXPANDABLE), request.limit
    if row is None or row.least_memory is None or row.served.get(request.entry) is not None:
        return None
    if not limit.low < row.least_memory <= limit.high:
        return None
    return note("verdict.replay.depends", setting=EXPANDABLE, least=row.least_memory, low=limit.low, high=limit.high)


def calm_citation(answer: WhatIf | None) -> tuple[Note, ...]:
    """What the replays say of a run that served every request; empty where no setting would have reserved less."""
    rows = [row for row in _others(answer) if row.oom is False and row.peak_reserved is not None]
    recorded = answer.row(RECORDED) if answer else None
    if answer is None or not rows or recorded is None or recorded.peak_reserved is None:
        return ()
    best = min(rows, key=lambda row: (row.peak_reserved or 0, row.setting != EXPANDABLE))
    less = best.peak_reserved or 0
    if recorded.peak_reserved - less < MARGIN * recorded.peak_reserved:
        return ()
    calm = note("verdict.replay.calm", setting=best.setting, peak=less, recorded=recorded.peak_reserved)
    return (calm, *_estimated(answer))


def served_values(row: WhatIfRow, request: FailedRequest) -> dict[str, Any]:
    """What a sentence about a row that serves the request mentions."""
    fits = row.oom is False
    return {
        "another_fails": None if fits else True,
        "spare": max(row.headroom, 0) if fits and row.headroom is not None else None,
        "at_least": request.limit.source == "bracket",
        "retries": row.retries,
    }


def _needs(answer: WhatIf, request: FailedRequest, row: WhatIfRow | None) -> Iterator[Note]:
    """What the recorded run needs in all, under a setting and as it was recorded."""
    recorded = answer.row(RECORDED)
    known = recorded.least_memory if recorded else None
    least = row.least_memory if row else None
    if known is not None or least is not None:
        code = "verdict.replay.needs.whole" if request.recovered else "verdict.replay.needs"
        yield note(code, least=least, setting=row.setting if row else None, recorded=known)


def _others(answer: WhatIf | None) -> list[WhatIfRow]:
    """The rows of other settings; none where the replay does not give what was recorded."""
    return [row for row in answer.rows if row.setting != RECORDED] if answer and answer.self_check.exact else []
