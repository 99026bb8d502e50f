"""Pages beside the report: those of comparisons and of the ranks of a job, by name."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from oomscope.analysis.compare.diff import compare
from oomscope.analysis.compare.ranks import compare_ranks
from oomscope.rendering.html.diff_page import diff_to_html
from oomscope.rendering.html.ranks_page import ranks_to_html
from tests.rendering.ranks import BAD, job, made
from tests.rendering.ranks import hostile as hostile_ranks
from tests.rendering.test_diff import hostile as hostile_diff
from tests.rendering.test_diff import seeded
from tests.samples import sample

COMPARED: MappingProxyType[str, Callable[[], str]] = MappingProxyType(
    {
        "diff.real": lambda: diff_to_html(compare(sample("train_ok"), sample("oom_fragmentation"))),
        "diff.seeded": lambda: diff_to_html(seeded("all at once, batch doubled, rank 3")),
        "diff.same": lambda: diff_to_html(compare(sample("train_ok"), sample("train_ok"))),
        "diff.hostile": lambda: diff_to_html(hostile_diff(1, files=12)),
        "ranks.eight": lambda: ranks_to_html(job(8), ()),
        "ranks.thousands": lambda: ranks_to_html(job(5000), ()),
        "ranks.hostile": lambda: ranks_to_html(hostile_ranks(1), BAD),
        "ranks.one": lambda: ranks_to_html(compare_ranks([made(0, None)]), ()),
    }
)
