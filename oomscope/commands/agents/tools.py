"""The tools of ``oomscope mcp``: each answers one question about a file, in at most as many bytes as asked for.

Their docstrings are what an agent reads. Arguments are those of the commands of the same names.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from oomscope.commands.agents.calls import with_calls
from oomscope.commands.agents.opened import OpenedSnapshots
from oomscope.errors import RequestError
from oomscope.rendering.answers import bounded as bounds

Document = dict[str, Any]
_LEAST_MEMORY = ("auto", "all", "none")


class Tools:
    """The tools on files that `opened` may open."""

    def __init__(self, opened: OpenedSnapshots) -> None:
        self._opened = opened

    @property
    def all(self) -> tuple[Callable[..., str], ...]:
        """Every tool, in the order in which they are useful."""
        return (
            self.open, self.verdict, self.holders, self.sites, self.at_instant, self.whatif, self.remedies, self.plan,
            self.diff, self.explain,
        )  # fmt: skip

    def open(self, snapshot: str, max_bytes: int = bounds.DEFAULT) -> str:
        """What a snapshot file is: torch release, how well it was recorded, devices, peaks, failed requests.

        snapshot: path of a memory snapshot (pickle, JSON or memory_viz HTML, also compressed).
        """
        from oomscope.rendering.answers.verdict import opened

        return self._answer(lambda: opened(self._opened.findings(snapshot)), max_bytes, snapshot)

    def verdict(self, snapshot: str, device: int | None = None, max_bytes: int = bounds.DEFAULT) -> str:
        """Why the request failed, the line to look at, fixes with what each saves and whether it is enough alone,
        and what would not have helped. Ask this first.
        """  # noqa: D205 - one paragraph for an agent
        from oomscope.rendering.answers.verdict import verdict

        return self._answer(lambda: verdict(self._opened.findings(snapshot, "auto", device)), max_bytes, snapshot)

    def holders(
        self, snapshot: str, at: str | int = "auto", device: int | None = None, max_bytes: int = bounds.DEFAULT
    ) -> str:
        """The Python objects that keep memory alive, and tensors by name. Only recordings by oomscope know them.

        retained: bytes that come free with that object alone.
        """
        from oomscope.rendering.answers.memory import holders

        return self._answer(lambda: holders(self._opened.findings(snapshot, instant(at), device)), max_bytes, snapshot)

    def sites(
        self, snapshot: str, at: str | int = "auto", device: int | None = None, max_bytes: int = bounds.DEFAULT
    ) -> str:
        """The lines of code that allocated what is live, largest first.

        at: auto (the failed request, else the peak), oom, peak, end, or the number of a trace entry.
        """
        from oomscope.rendering.answers.memory import sites

        return self._answer(lambda: sites(self._opened.findings(snapshot, instant(at), device)), max_bytes, snapshot)

    def at_instant(
        self, snapshot: str, at: str | int, device: int | None = None, max_bytes: int = bounds.DEFAULT
    ) -> str:
        """Everything live at one instant: totals, phases, categories, free bytes by kind, lines, what pins holes.

        at: oom, peak, end, or the number of a trace entry.
        """
        from oomscope.rendering.answers.memory import at_instant

        return self._answer(
            lambda: at_instant(self._opened.findings(snapshot, instant(at), device)), max_bytes, snapshot
        )

    def whatif(
        self,
        snapshot: str,
        settings: list[str] | None = None,
        limit: str | None = None,
        gpu: str | None = None,
        without: list[str] | None = None,
        scale: list[str] | None = None,
        free_each_step: list[str] | None = None,
        least_memory: str = "auto",
        device: int | None = None,
        max_bytes: int = bounds.DEFAULT,
    ) -> str:
        """Replays the recorded run under other allocator settings, caps and cards, or with a changed program.

        settings: as in PYTORCH_ALLOC_CONF, such as expandable_segments:True. limit: a cap of the process (16GiB).
        gpu: another card (24GiB, A100-40). without, free_each_step: FILE:LINE whose allocations are left out, or freed
        at the end of each step. scale: FILE:LINE=FACTOR, or a category such as activations=0.5.
        least_memory: for which rows the least cap is searched: auto, all or none.
        """
        return self._answer(
            lambda: self._whatif(snapshot, settings, limit, gpu, without, scale, free_each_step, least_memory, device),
            max_bytes,
            snapshot,
        )

    def remedies(
        self,
        snapshot: str,
        names: list[str] | None = None,
        limit: str | None = None,
        gpu: str | None = None,
        device: int | None = None,
        max_bytes: int = bounds.DEFAULT,
    ) -> str:
        """What each remedy (checkpointing, autocast, accumulation, other optimizers, sharding …) would save, replayed.

        names: only these, such as checkpoint or accumulate=4. limit, gpu: as for whatif.
        """
        return self._answer(lambda: self._remedies(snapshot, names, limit, gpu, device), max_bytes, snapshot)

    def plan(
        self,
        snapshots: list[str],
        at: list[str] | None = None,
        wanted: list[str] | None = None,
        gpus: list[str] | None = None,
        limits: list[str] | None = None,
        settings: list[str] | None = None,
        device: int | None = None,
        max_bytes: int = bounds.DEFAULT,
    ) -> str:
        """Peaks at other shapes, and what fits which card, from one to three recordings of the same program.

        at: the shape of each recording, in order: batch=8,seq=512. wanted: shapes to predict: batch=16 or batch=8..64.
        gpus: cards: 24GiB, A100-40. limits: caps of the process: 8GiB; where neither is named, the recorded cap.
        """
        return self._answer(
            lambda: self._plan(snapshots, at or [], wanted or [], (gpus or [], limits or []), settings or [], device),
            max_bytes,
            *snapshots,
        )

    def diff(
        self, before: str, after: str, at: str = "auto", device: int | None = None, max_bytes: int = bounds.DEFAULT
    ) -> str:
        """What changed from one snapshot to another: lines, holders, growth, categories, settings.

        at: auto, peak, oom or end.
        """
        return self._answer(lambda: self._diff(before, after, at, device), max_bytes, before, after)

    def explain(self, text: str | None = None, log: str | None = None, max_bytes: int = bounds.DEFAULT) -> str:
        """What an out-of-memory message proves; needs no snapshot. Give the message as text, or the path of a log."""
        return self._answer(lambda: self._explain(text, log), max_bytes)

    def _answer(self, make: Callable[[], Document], max_bytes: int, *snapshots: str) -> str:
        with self._opened.lock:
            return bounds.bounded(with_calls(make(), snapshots), max_bytes)

    def _whatif(
        self,
        snapshot: str,
        settings: list[str] | None,
        limit: str | None,
        gpu: str | None,
        without: list[str] | None,
        scale: list[str] | None,
        free: list[str] | None,
        least_memory: str,
        device: int | None,
    ) -> Document:
        from oomscope.analysis.whatif import whatif_of
        from oomscope.analysis.whatif.gpus import capacity, size
        from oomscope.commands.whatif import by_slug
        from oomscope.rendering.answers.replays import whatif

        if least_memory not in _LEAST_MEMORY:
            raise RequestError(f"least_memory is one of {', '.join(_LEAST_MEMORY)}, not {least_memory!r}")
        answer = whatif_of(
            self._opened.study(snapshot, device),
            settings=tuple(settings) if settings else None,
            limit=None if limit is None else size(limit),
            gpu=None if gpu is None else capacity(gpu),
            without=tuple(without or ()),
            scale=tuple(map(by_slug, scale or ())),
            free=tuple(free or ()),
            least_memory=least_memory,
        )
        return whatif(answer)

    def _remedies(
        self, snapshot: str, names: list[str] | None, limit: str | None, gpu: str | None, device: int | None
    ) -> Document:
        from oomscope.analysis.ledger import ledger_of, parse_remedy
        from oomscope.analysis.whatif.gpus import capacity, size
        from oomscope.commands.whatif import bound
        from oomscope.rendering.answers.replays import remedies

        wanted = [parse_remedy(name) for name in names] if names else None
        asked = bound(None if limit is None else size(limit), None if gpu is None else capacity(gpu))
        return remedies(ledger_of(self._opened.study(snapshot, device), wanted, limit=asked))

    def _plan(
        self,
        snapshots: list[str],
        at: list[str],
        wanted: list[str],
        on: tuple[list[str], list[str]],
        settings: list[str],
        device: int | None,
    ) -> Document:
        from oomscope.analysis.plan import parse_shape, parse_shapes, plan_of
        from oomscope.analysis.whatif.gpus import size
        from oomscope.rendering.answers.replays import plan

        gpus, limits = on
        if not wanted and not gpus and not limits:
            raise RequestError("say what is asked for: a shape in wanted, a card in gpus, or a cap in limits")
        if at and len(at) != len(snapshots):
            raise RequestError(f"{len(snapshots)} snapshots and {len(at)} shapes in at; give one shape for each")
        studies = [(self._opened.path(one).name, self._opened.study(one, device)) for one in snapshots]
        shapes = [shape for text in wanted for shape in parse_shapes(text)]
        ats, caps = [parse_shape(one) for one in at], [size(one) for one in limits]
        return plan(plan_of(studies, at=ats, wanted=shapes, gpus=gpus, limits=caps, settings=settings))

    def _diff(self, before: str, after: str, at: str, device: int | None) -> Document:
        from oomscope.analysis.compare.diff import AT_NAMES, compare
        from oomscope.rendering.answers.replays import diff

        if at not in AT_NAMES:
            raise RequestError(f"at is one of {', '.join(AT_NAMES)}, not {at!r}")
        names = self._opened.path(before).name, self._opened.path(after).name
        if self._opened.redacts or names[0] == names[1]:
            names = "before", "after"
        snapshots = self._opened.snapshot(before), self._opened.snapshot(after)
        return diff(compare(*snapshots, at=at, device=device, files=names))

    def _explain(self, text: str | None, log: str | None) -> Document:
        from oomscope.messages import read_log
        from oomscope.rendering.answers.replays import explain

        if (text is None) == (log is None):
            raise RequestError("give either the message as text, or the path of a log")
        if log is None:
            assert text is not None
            return explain(read_log(io.BytesIO(text.encode("utf-8", "surrogateescape"))))
        if self._opened.redacts:
            raise RequestError("a log cannot be redacted; give the message as text")
        with self._opened.path(log).open("rb") as file:
            return explain(read_log(file))


def instant(at: str | int) -> str | int:
    """``peak`` as it is, ``1,234`` as the number of an entry."""
    if isinstance(at, int):
        return at
    digits = at.replace(",", "").replace("_", "")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else at
