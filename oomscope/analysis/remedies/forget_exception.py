"""Keep the message of an exception, not the exception: its traceback holds the frames of calls that have ended."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomscope.analysis.remedies.effect import enough_by_sum
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice, Suspect

SLUG = "forget_exception"
SHOWN_LAST = "sys: last_"
"""Where Python keeps the error that it showed last, for a debugger; a console goes on after it."""

_STEP = re.compile(r"[.\[{]")


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """Where stored exceptions keep memory."""
    found: dict[str, list[Suspect]] = {}
    for one in circumstances.piled.debris:
        if one.kind == "exception" and one.unread is None:
            found.setdefault(_variable(one), []).append(one)
    for alike in found.values():
        first, saves = alike[0], sum(one.retained for one in alike)
        slug = f"{SLUG}.shown" if first.holder.startswith(SHOWN_LAST) else SLUG
        yield Advice(slug, {"holder": first.holder}, saves, enough_by_sum(circumstances, saves), at=first.at)


def _variable(suspect: Suspect) -> str:
    """The variable through which it is reached: one line lets go of all that is kept there."""
    function, colon, way = suspect.holder.rpartition(": ")
    variable = _STEP.split(way, maxsplit=1)[0]
    return f"{function}{colon}{variable}"
