"""Ranks of made jobs: thousands, few, and some whose every name is an attack."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from oomscope.analysis.compare.digest import Digest
from oomscope.analysis.compare.figures import SiteFigure
from oomscope.analysis.compare.ranks import Ranks, compare_ranks
from oomscope.analysis.records import Location

GIB, MIB = 1 << 30, 1 << 20
HOSTILE = "</script><script>alert(1)</script>\u202e\x1b[31m|`@everyone` #1 \ud800"
SITES = 100
"""As many as a digest keeps at most."""


def made(rank: int, peak: int | None, *, sites: int = 3, name: str = "train", **changes: object) -> Digest:
    """The digest of a rank: its first line holds what is left of the peak by the others."""
    small = [
        SiteFigure(Location(f"{name}.py", at + 2, f"{name}_{at}"), None, None, MIB, "gradient") for at in range(sites)
    ]
    first = SiteFigure(
        Location(f"{name}.py", 1, "forward"), Location(f"{name}_main.py", 9, "main"), None,
        (peak or 0) - sites * MIB if peak else 0, "activation",
    )  # fmt: skip
    one = Digest(
        file=f"oom/{name}.rank{rank}.pickle", device=0, rank=rank, rank_source="recorded", world_size=None,
        host=f"node{rank // 8}", job="7", reason="peers", created=None, peak_allocated=peak, peak_reserved=peak,
        allocated=0, reserved=0, oom_time_us=None, last_time_us=None, cause=None, headline=None, fingerprint="none",
        categories={"activation": first.bytes, "gradient": sites * MIB}, sites=(first, *small), others=0,
    )  # fmt: skip
    return replace(one, **changes)  # type: ignore[arg-type]


@cache
def job(count: int, sites: int = 3) -> Ranks:
    """Ranks of about 40 GiB, of which one in the middle holds 12 GiB more and fails; the one after it is missing."""
    middle = count // 2
    digests = [
        made(rank, 40 * GIB + (rank * 7919 % 500) * MIB, sites=sites, world_size=count)
        for rank in range(count)
        if rank not in (middle, middle + 1)
    ]
    failed = {"reason": "oom", "oom_time_us": 5, "cause": "activations", "headline": "More activations than fit."}
    return compare_ranks([*digests, made(middle, 52 * GIB, sites=sites, fingerprint="f1", **failed)])


@cache
def hostile(size: int, count: int = 90) -> Ranks:
    """Ranks whose every text is an attack, `size` times as long; each departs, fails and ends in a way of its own."""
    name = HOSTILE * size
    digests = [
        made(
            rank, (rank**3 + 1) * GIB, sites=SITES, name=f"{name}{rank}", host=name, reason=f"{name}{rank}",
            cause=name if rank % 2 else None, headline=name, fingerprint=f"{name}{rank}", oom_time_us=rank,
            rank_source="order", categories={f"{name}{at}": MIB * rank for at in range(90)},
        )
        for rank in range(0, 2 * count, 2)
    ]  # fmt: skip
    again = [replace(one, file=f"{one.file}{at}") for at, one in enumerate(digests)]
    return compare_ranks([*digests, *again])


BAD = tuple({"file": HOSTILE * 50, "error": f"{HOSTILE * 50}: not a snapshot"} for _ in range(300))
