"""What the replays under other settings say of one failed request."""

from __future__ import annotations

from collections.abc import Callable

from oomscope.analysis.verdict.counterfactuals import MARGIN
from oomscope.analysis.verdict.failed_requests import FailedRequest
from oomscope.analysis.whatif.records import EXPANDABLE, RECORDED, WhatIf, WhatIfRow
from oomscope.units import format_bytes, format_limit, plural


def serving(answer: WhatIf | None, entry: int) -> list[WhatIfRow]:
    """The rows of other settings that serve the request at `entry`, the one to recommend first."""
    rows = [row for row in _others(answer) if row.served.get(entry)]
    return sorted(rows, key=lambda row: (bool(row.oom), row.setting != EXPANDABLE, -(row.headroom or 0)))


def refusing(answer: WhatIf | None, entry: int) -> list[WhatIfRow]:
    """The rows of other settings under which the request at `entry` fails, or is not reached."""
    return [row for row in _others(answer) if row.served.get(entry) is False]


def citation(answer: WhatIf | None, request: FailedRequest, cause: str) -> str | None:
    """What the replays say of `request`, for the verdict; None where there are none to trust."""
    text = None if answer is None else _cited(answer, request, cause)
    return None if answer is None or text is None else f"{text}{_estimated(answer)}"


def _cited(answer: WhatIf, request: FailedRequest, cause: str) -> str | None:
    served, refused = serving(answer, request.entry), refusing(answer, request.entry)
    needs = _needs(answer, request)
    if served:
        best = served[0]
        text = f"Replayed with {best.setting}, {served_text(best, request)}.{needs(best)}"
        if cause == "growth":
            return f"{text} What grows goes on growing."
        return text if request.recovered else f"{text} What would have been asked for next is not recorded."
    if depends := _depends_on_the_cap(answer, request):
        return depends
    if not refused:
        return None
    doubtful = len(_others(answer)) - len(refused)
    if len(refused) == 1:
        text = f"Replayed with {refused[0].setting}, this request fails as well"
    else:
        text = f"Replayed under {len(refused)} other settings of the allocator, this request fails under each of them"
    if doubtful:
        text += f"; under {doubtful} more it is not certain"
    return f"{text}.{needs(answer.row(EXPANDABLE))}"


def _estimated(answer: WhatIf) -> str:
    """What to add where only a part of the run was recorded."""
    if answer.self_check.reason is None:
        return ""
    return " This is an estimate: the recording does not begin with the first allocation."


def _depends_on_the_cap(answer: WhatIf, request: FailedRequest) -> str | None:
    """What to say where the setting made for holes serves the request under some of the caps that it may have been."""
    row, limit = answer.row(EXPANDABLE), request.limit
    if row is None or row.least_memory is None or row.served.get(request.entry) is not None or limit.high is None:
        return None
    if not limit.low < row.least_memory <= limit.high:
        return None
    return (
        f"Replayed with {EXPANDABLE}, this request fits if the cap of this process was {format_limit(row.least_memory)}"
        f" or more; the recording tells only that it lay between {format_bytes(limit.low)} and "
        f"{format_bytes(limit.high)} (oomscope whatif --limit answers for the true one)."
    )


def calm_citation(answer: WhatIf | None) -> str | None:
    """What the replays say of a run that served every request; None where no setting would have reserved less."""
    rows = [row for row in _others(answer) if row.oom is False and row.peak_reserved is not None]
    recorded = answer.row(RECORDED) if answer else None
    if answer is None or not rows or recorded is None or recorded.peak_reserved is None:
        return None
    best = min(rows, key=lambda row: (row.peak_reserved or 0, row.setting != EXPANDABLE))
    if recorded.peak_reserved - (best.peak_reserved or 0) < MARGIN * recorded.peak_reserved:
        return None
    return (
        f"Replayed with {best.setting}, the same run reserves {format_bytes(best.peak_reserved or 0)} at its peak "
        f"instead of {format_bytes(recorded.peak_reserved)}.{_estimated(answer)}"
    )


def served_text(row: WhatIfRow, request: FailedRequest) -> str:
    """``this request fits, 1.20 GiB to spare, 0 retries``."""
    parts = ["this request fits"]
    if row.oom is not False:
        parts.append("though another one fails")
    elif row.headroom is not None:
        bound = "at least " if request.limit.source == "bracket" else ""
        parts.append(f"{bound}{format_bytes(max(row.headroom, 0))} to spare")
    if row.retries is not None:
        parts.append(plural(row.retries, "retry", "retries"))
    return ", ".join(parts)


def _needs(answer: WhatIf, request: FailedRequest) -> Callable[[WhatIfRow | None], str]:
    """What the recorded run needs in all, under a setting and as it was recorded."""
    run = "The whole recorded run" if request.recovered else "The run up to here"
    recorded = answer.row(RECORDED)
    known = recorded.least_memory if recorded else None

    def words(row: WhatIfRow | None) -> str:
        needs = (
            [] if row is None or row.least_memory is None else [f"{format_limit(row.least_memory)} with {row.setting}"]
        )
        needs += [] if known is None else [f"{format_limit(known)} as recorded"]
        return f" {run} needs {', '.join(needs)}." if needs else ""

    return words


def _others(answer: WhatIf | None) -> list[WhatIfRow]:
    """The rows of other settings; none where the replay does not give what was recorded."""
    return [row for row in answer.rows if row.setting != RECORDED] if answer and answer.self_check.exact else []
