"""A setting of the allocator under which the request is served, by replay."""

from __future__ import annotations

from collections.abc import Iterator

from oomscope.allocator.torch_releases import version_of
from oomscope.analysis.remedies.replays import served_values, serving
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice
from oomscope.analysis.verdict.shortage import MARGIN
from oomscope.analysis.whatif.records import EXPANDABLE

SLUG = "allocator_setting"
_RENAMED = (2, 9)


def propose(circumstances: Circumstances) -> Iterator[Advice]:
    """The best setting that serves the request by replay; without a replay, the one that was made for holes."""
    request, answer = circumstances.request, circumstances.whatif
    renamed = _is_renamed(circumstances.study.snapshot.recorded.torch)
    served = serving(answer, request.entry)
    if served:
        best = served[0]
        to_come = _to_come(circumstances, best.headroom)
        values = served_values(best, request) | {
            "setting": best.conf or best.setting,
            "to_come": to_come,
            "renamed": renamed,
        }
        code = "empty_cache" if best.setting.startswith("empty_cache") else "replayed"
        gets_through = False if to_come is not None else _gets_through(circumstances, best.headroom)
        yield Advice(f"{SLUG}.{code}", values, None, gets_through)
    elif _untried(circumstances):
        yield Advice(f"{SLUG}.untried", {"setting": EXPANDABLE, "renamed": renamed}, None, None)


def _is_renamed(torch: str | None) -> bool | None:
    """Whether this torch reads PYTORCH_ALLOC_CONF, as 2.9 and later do; None where the release is not known."""
    version = version_of(torch)
    return None if version is None else version >= _RENAMED


def _to_come(circumstances: Circumstances, spare: int | None) -> int | None:
    """Bytes of optimizer state that the same step will still ask for, where they do not fit into `spare`; else None."""
    there, needs = circumstances.needs.state_to_come
    return needs - there if needs - there > max(spare or 0, 0) else None


def _gets_through(circumstances: Circumstances, spare: int | None) -> bool | None:
    """Whether `spare` is enough for the rest of the pass; None where that is not known, and next to nothing is left.

    A pass that finished tells how much it needs, and how much a larger one will: more than the limit fits no setting.
    """
    to_come, case = circumstances.needs.still_to_come, circumstances.shortage
    if (circumstances.needs.as_larger or 0) > case.limit.low:
        return False
    if spare is None:
        return True
    margin = MARGIN * case.limit.low
    if to_come is None and max(spare, case.spare(case.free.usable, case.limit.low)) < margin:
        return None
    return (to_come or 0) - case.size <= spare


def _untried(circumstances: Circumstances) -> bool:
    """Whether holes are there that expandable segments may close, and no replay tells."""
    answer, case = circumstances.whatif, circumstances.shortage
    replayed = answer is not None and answer.row(EXPANDABLE) is not None
    expandable = circumstances.study.history.config.expandable_segments
    return not (replayed or expandable) and case.free.largest < case.size <= case.free.usable
