"""Captures of programs whose mistake is known: what is true of them, and what oomscope says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import oomscope
from oomscope.analysis.findings import DeviceFindings
from oomscope.model import Snapshot
from oomscope.wording import say
from tests.shared import SHARED, captures, packed

TESTS = Path(__file__).resolve().parents[1]
PROGRAMS = TESTS / "captures" / "programs"
UNKNOWABLE_BARE = {"outside_allocator"}
"""Causes that a bare snapshot cannot tell: it does not hold the size of the card."""
KNOWN_SHARE = 0.2
"""Of the allocated bytes: what a recorded holder must reach, for the recording to know that it is the one."""


@dataclass(frozen=True)
class Known:
    """One capture.

    Attributes:
        name: of the capture.
        path: of its file.
        cause: what a colleague who knows the program would answer; None where nothing failed.
        acceptable: other answers that the definitions of the causes admit.
        holders: identifiers of the program, one of which names what keeps the memory.
        grows: whether memory grows over passes; None where that is not written down.
        arguable: why this truth can be argued about, else None.
    """

    name: str
    path: Path
    cause: str | None
    acceptable: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    grows: bool | None = None
    arguable: str | None = None

    def admits(self, cause: str | None) -> bool:
        """Whether `cause` is right."""
        return cause == self.cause or cause in self.acceptable


@dataclass(frozen=True)
class Said:
    """What oomscope says of a capture; `cause` and `confidence` are None where nothing failed."""

    cause: str | None
    confidence: str | None
    headline: str
    recovered: bool


def captures_in(folder: Path) -> list[Known]:
    """The captures of `folder`, by name, as the ``truths.json`` in it or beside it tells.

    For each capture that has a ``cause``: ``none`` and null are programs that nothing is wrong with.

    Raises:
        FileNotFoundError: there are no truths.
    """
    beside = folder.parent / f"{folder.name}_truth" / "truths.json"
    path = folder / "truths.json"
    truths: dict[str, dict[str, Any]] = json.loads((path if path.exists() else beside).read_text())
    return [one for name, truth in sorted(truths.items()) if (one := _known(folder, name, truth)).path.exists()]


def _known(folder: Path, name: str, truth: dict[str, Any]) -> Known:
    grows, arguable = truth.get("grows"), truth.get("arguable")
    return Known(
        name=name,
        path=folder / truth.get("file", f"{name}.pickle.xz"),
        cause=None if truth["cause"] in (None, "none") else truth["cause"],
        acceptable=tuple(truth.get("acceptable", ())),
        holders=tuple(truth.get("holders", ())),
        grows=None if grows is None else bool(grows),
        arguable=arguable,
    )


SLUGS = {
    "activations_too_large": "capacity",
    "optimizer_state_first_step": "capacity",
    "graph_retained_across_iterations": "growth",
    "fragmentation": "fragmentation",
    "fragmentation_varlen": "fragmentation",
    "cuda_graph_private_pools": "private_pools",
    "non_pytorch_memory": "outside_allocator",
}
"""The words of the truths beside the shared snapshots, as causes."""
RECORDED = {
    "cotenant_capped": "growth",
    "exception_holds": "retained",
    "metrics_leak": "growth",
    "mingpt_xl": "capacity",
    "nanogpt_train": "capacity",
    "pending_then_free": "other_stream",
}
"""What is true of those that oomscope recorded, by their README."""


def shared() -> list[Known]:
    """Our own captures beside the repository that failed, and those that oomscope recorded."""
    told = {name: json.loads((SHARED / f"{name}.truth.json").read_text()) for name in captures()}
    found = [
        Known(name, packed(name), SLUGS[truth["cause"]])
        for name, truth in sorted(told.items())
        if truth["oom"] and truth["cause"] in SLUGS
    ]
    return [*found, *(Known(name, packed(f"recorded/{name}"), cause) for name, cause in RECORDED.items())]


@cache
def programs() -> dict[str, Known]:
    """The captures of `PROGRAMS`, by name."""
    return {one.name: one for one in captures_in(PROGRAMS)}


@cache
def recorded(path: Path) -> Snapshot:
    """A capture as it was recorded."""
    return oomscope.load(path)


def bare(path: Path) -> Snapshot:
    """A capture without the recording's own key: what torch's own snapshot would have held."""
    return replace(recorded(path), context=None)


@cache
def found(path: Path, *, with_key: bool, whatif: bool = False) -> DeviceFindings:
    """What is found on the device that failed, or that holds most."""
    findings = oomscope.analyze(recorded(path) if with_key else bare(path), whatif=whatif)
    assert findings.main is not None
    return findings.main


def said(path: Path, *, with_key: bool) -> Said:
    """The verdict on a capture."""
    oom = found(path, with_key=with_key).oom
    if oom is None:
        return Said(None, None, "", False)
    verdict = oom.verdict
    return Said(verdict.cause, verdict.confidence, " ".join(map(say, verdict.headline)), oom.recovered)


def known_holders(one: Known) -> Iterator[str]:
    """The identifiers of the true holder that the recording of a capture knows."""
    live = max(found(one.path, with_key=True).at.allocated, 1)
    for name in one.holders:
        known = recorded(one.path).recorded
        for holder in (*known.holders, *known.unread):
            if names(name, holder.holder or "") and (holder.bytes or 0) >= KNOWN_SHARE * live:
                yield name
                break


def names(identifier: str, text: str) -> bool:
    """Whether `text` mentions `identifier` as a word."""
    return re.search(rf"(?<!\w){re.escape(identifier)}(?!\w)", text) is not None
