"""Triage of a cluster's jobs: each mistake is one group, and each group one mistake."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import pytest

from oomscope.analysis import analyze
from oomscope.analysis.compare.digest import digest
from oomscope.analysis.compare.triage import triage
from tests.compare.jobs import KINDS, OTHER_KINDS, job

LEAST = 0.95


def purity_and_recall(jobs: Iterable[tuple[str, int]]) -> tuple[float, float, int]:
    """The share of jobs in a group of mostly their kind, and in the largest group of their kind; and the groups."""
    digests = {f"{kind}/{number}": digest(analyze(job(kind, number), at="peak", whatif=False), f"{kind}/{number}/x")
               for kind, number in jobs}  # fmt: skip
    groups = triage(digests.values())
    assert sum(group.count for group in groups) == len(digests)
    by_group, by_kind = defaultdict(Counter), defaultdict(Counter)
    for name, one in digests.items():
        kind = name.rpartition("/")[0]
        by_group[one.fingerprint][kind] += 1
        by_kind[kind][one.fingerprint] += 1
    shares = [sum(max(counts.values()) for counts in by.values()) / len(digests) for by in (by_group, by_kind)]
    return shares[0], shares[1], len(groups)


@pytest.mark.thorough
def test_a_hundred_jobs_of_twelve_kinds():
    jobs = [(kind, number) for kind, count in KINDS.items() for number in range(1, count + 1)]
    assert (len(jobs), len(KINDS)) == (100, 12)
    purity, recall, groups = purity_and_recall(jobs)
    assert purity >= LEAST
    assert recall >= LEAST
    assert groups <= 15


def test_kinds_on_which_nothing_was_tuned():
    purity, recall, _ = purity_and_recall((kind, number) for kind in OTHER_KINDS for number in (0, 1, 2))
    assert purity >= LEAST
    assert recall >= LEAST
