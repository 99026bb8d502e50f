"""What is often advised and would not have helped here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomscope.analysis.remedies.replays import refusing
from oomscope.analysis.verdict.circumstances import Circumstances
from oomscope.analysis.verdict.records import Advice
from oomscope.analysis.whatif.records import EXPANDABLE

_EMPTY_CACHE = "empty_cache"
_FIXED = ("parameter", "optimizer_state", "gradient", "buffer")
MOSTLY_FIXED = 0.5
"""Of the allocated bytes; where the model and its training hold more, the batch is not what fills the memory."""


def refuted(circumstances: Circumstances, cause: str, advised: set[str]) -> Iterator[Advice]:
    """Settings that fail by replay, `empty_cache`, and a smaller batch where it is not what fills the memory.

    Args:
        circumstances: of the request.
        cause: the verdict.
        advised: the slugs of what is advised: nothing is refuted that is.
    """
    yield from _settings(circumstances, cause)
    if not _helps(circumstances, _EMPTY_CACHE):
        slug = "refuted.empty_cache" if _never_helps(circumstances) else "refuted.empty_cache.before"
        yield _refutation(slug, releasable=circumstances.request.free.releasable)
    if any(slug.startswith("smaller_batch") for slug in advised):
        return
    fixed = sum(circumstances.categories.get(kind, 0) for kind in _FIXED)
    if cause == "capacity" and fixed > MOSTLY_FIXED * max(circumstances.request.totals.allocated, 1):
        yield _refutation("refuted.smaller_batch.fixed", bytes=fixed)
    if cause == "growth":
        yield _refutation("refuted.smaller_batch.growth")


def _helps(circumstances: Circumstances, setting: str) -> bool:
    """Whether, by replay, a row whose name begins with `setting` serves the request, or may."""
    answer, entry = circumstances.whatif, circumstances.request.entry
    rows = answer.rows if answer and answer.self_check.exact else ()
    return any(
        row.setting.startswith(setting) and (row.oom is False or row.served.get(entry, False) is not False)
        for row in rows
    )


def _never_helps(circumstances: Circumstances) -> bool:
    """Whether `empty_cache` cannot help wherever it is called: tried by replay, or less is free than asked for.

    Called earlier and again and again, it may keep the holes from arising into which the request does not fit.
    """
    request, answer = circumstances.request, circumstances.whatif
    tried = answer is not None and any(row.setting.startswith(_EMPTY_CACHE) for row in answer.rows)
    return tried or request.free.usable < request.size


def _settings(circumstances: Circumstances, cause: str) -> Iterator[Advice]:
    request, answer = circumstances.request, circumstances.whatif
    # A run that survives served the request, whatever is known of it alone.
    refused = [row for row in refusing(answer, request.entry) if row.oom is not False]
    expandable = answer.row(EXPANDABLE) if answer else None
    if circumstances.study.history.config.expandable_segments:
        yield _refutation("refuted.expandable.on")
    elif expandable is not None and expandable in refused:
        yield _refutation("refuted.setting.replayed", settings=EXPANDABLE)
    elif (
        cause in ("capacity", "growth") and request.free.usable < request.size and not _helps(circumstances, EXPANDABLE)
    ):
        yield _refutation("refuted.expandable.nothing_free", usable=request.free.usable, size=request.size)
    others = [one for one in refused if one.setting != EXPANDABLE and not one.setting.startswith(_EMPTY_CACHE)]
    if others:
        yield _refutation("refuted.setting.replayed", settings=_listed([one.setting for one in others]))


def _refutation(slug: str, **values: object) -> Advice:
    return Advice(slug, values, refuted=True)


def _listed(settings: Sequence[str]) -> str:
    """``max_split_size_mb:128, 256, 512; roundup_power2_divisions:8``: each name once."""
    values: dict[str, list[str]] = {}
    for setting in settings:
        name, _, value = setting.partition(":")
        values.setdefault(name, []).append(value)
    return "; ".join(f"{name}:{', '.join(found)}" if found != [""] else name for name, found in values.items())
