"""Before which line of the program something has to go, for advice on what the program has finished with."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from oomscope.analysis.passes.work_underway import WorkUnderway, work_at, work_since
from oomscope.analysis.study import DeviceStudy
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Suspect
from oomscope.analysis.verdict.suspects import held_rows
from oomscope.model import IntArray
from oomscope.model.recorded_unread import RecordedUnread


def work_before(circumstances: Circumstances, suspect: Suspect) -> WorkUnderway | None:
    """The call or the loop in progress that does not need what `suspect` keeps; None where that is not known.

    Of a variable that is not read again, the call that its function is in; of all else, what has followed the calls
    that made it.
    """
    study, entry = circumstances.study, circumstances.request.entry
    if study is None:
        return None
    rows = held_rows(study, entry, suspect.holder)
    told = _variable(study, suspect)
    if told is None or suspect.at is None:
        return work_since_rows(circumstances, rows)
    if _is_handed_on(study, told):
        return None
    if told.loop is not None:
        return WorkUnderway(replace(suspect.at, line=told.loop), "loop")
    if told.since in ("pass", "between"):
        return WorkUnderway(suspect.at)
    return work_at(study, entry, suspect.at, rows)


def work_since_rows(circumstances: Circumstances, rows: IntArray) -> WorkUnderway | None:
    """What has followed the calls that made `rows`, lifetimes; None where there are none, or that is not known."""
    if not np.size(rows):
        return None
    return work_since(circumstances.study, circumstances.request.entry, rows)


def _variable(study: DeviceStudy, suspect: Suspect) -> RecordedUnread | None:
    """What the recording tells of it, if it is a variable of a function or a script that is running."""
    if suspect.unread is None:
        return None
    unread = (one for one in study.snapshot.recorded.unread if one.device == study.index)
    return next((one for one in unread if one.holder == suspect.holder and one.place in ("local", "global")), None)


def _is_handed_on(study: DeviceStudy, one: RecordedUnread) -> bool:
    """Whether the call in progress was given the variable: then it cannot go before that line.

    Told from the line's text; where that is not known, from whether a variable of another call keeps the same.
    """
    assert one.at is not None
    text = _statement(study, one.at.filename, one.loop or one.at.line)
    if not text:
        return bool(one.others)
    name = (one.holder or "").rpartition(": ")[2]
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text) is not None


def _statement(study: DeviceStudy, filename: str, line: int) -> str:
    """The line, and the one after it where a bracket is still open; empty where the dump does not have it."""
    for source in study.snapshot.recorded.sources:
        if source.filename == filename and source.first <= line < source.first + len(source.text):
            first, *after = [one.partition("#")[0] for one in source.text[line - source.first :]]
            opened = sum(map(first.count, "([{")) - sum(map(first.count, ")]}"))
            return "\n".join((first, *after[:1])) if opened > 0 else first
    return ""
