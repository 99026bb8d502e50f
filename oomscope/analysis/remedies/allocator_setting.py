"""A setting of the allocator under which the request is served, by replay."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.analysis.remedies.replays import served_values, serving
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice
from oomscope.analysis.whatif.records import EXPANDABLE

SLUG = "allocator_setting"


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """The best setting that serves the request by replay; without a replay, the one that was made for holes."""
    request, answer = circumstances.request, circumstances.whatif
    served = serving(answer, request.entry)
    if served:
        best = served[0]
        to_come = _to_come(circumstances, best.headroom)
        values = served_values(best, request) | {"setting": best.conf or best.setting, "to_come": to_come}
        code = "empty_cache" if best.setting.startswith("empty_cache") else "replayed"
        yield Advice(f"{SLUG}.{code}", values, None, to_come is None)
    elif _untried(circumstances):
        yield Advice(f"{SLUG}.untried", {"setting": EXPANDABLE}, None, None)


def _to_come(circumstances: Circumstances, spare: int | None) -> int | None:
    """Bytes of optimizer state that the same step will still ask for, where they do not fit into `spare`; else None."""
    there, needs = circumstances.state_to_come
    return needs - there if needs - there > max(spare or 0, 0) else None


def _untried(circumstances: Circumstances) -> bool:
    """Whether holes are there that expandable segments may close, and no replay tells."""
    answer, case = circumstances.whatif, circumstances.shortage
    replayed = answer is not None and answer.row(EXPANDABLE) is not None
    expandable = circumstances.study.history.config.expandable_segments
    return not (replayed or expandable) and case.free.largest < case.size <= case.free.usable
