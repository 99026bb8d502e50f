"""The page of a job's ranks: complete, harmless, bounded, and the same figures as in the JSON document."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from oomscope.analysis.compare.ranks import compare_ranks
from oomscope.rendering.html.rank_figure import MOST_BARS
from oomscope.rendering.html.ranks_page import MOST_BYTES, ranks_to_html
from oomscope.units import format_bytes
from oomscope.wording.ranks import rank_ranges, ranks_headline
from tests.compare.test_digest import of_sample
from tests.rendering.ranks import BAD, GIB, hostile, job, made


def size(page: str) -> int:
    return len(page.encode("utf-8", "backslashreplace"))


def first_screen(page: str) -> str:
    return page[page.index("<body>") : page.index("<nav")]


def text(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_the_first_screen_says_who_failed_who_followed_and_who_is_apart():
    page = first_screen(ranks_to_html(job(8), ()))
    assert "<h1>Rank 4 ran out of memory first; ranks 0, 1, 2, 3, 6 and 7 followed.</h1>" in page
    said = text(page)
    assert "7 ranks · 1 host" in said
    assert "Highest peak rank 4 52.0 GiB" in said
    assert "No file of rank 5" in said
    assert "Rank 4 holds 11.7 GiB more than the median" in said
    assert "What sets rank 4 apart From median train.py:1 forward" in said
    assert '<svg class="fig" id="fig-ranks"' in page


def test_every_part_has_its_table():
    again = replace(made(1, 41 * GIB), file="another.rank1.pickle")
    found = compare_ranks([*job(8).ranks, again])
    page = ranks_to_html(found, [{"file": "torn.pickle", "error": "torn.pickle: it ends early"}])
    assert re.findall(r'<section id="(\w+)"', page) == ["outliers", "ends", "spread", "ranks", "missing", "files"]
    said = text(page)
    assert "out of memory: activations. On rank 4: More activations than fit. 4 1 ended with the job 0–3, 6–7 6" in said
    assert "There is no file of 1 rank: 5." in said
    assert "1 file could not be read" in said
    assert "torn.pickle: it ends early" in said
    assert "another.rank1.pickle" in said
    for row in found.sites[:4] + found.categories:
        spread = f"{format_bytes(row.min)} {format_bytes(row.median)} {format_bytes(row.max)}"
        assert f"{spread} {'all' if row.min == row.max else row.max_rank}" in said
    assert f'title="{found.outliers[0].bytes:+,} bytes"' in page


def test_parts_without_anything_to_say_are_not_there():
    page = ranks_to_html(compare_ranks([made(rank, 40 * GIB) for rank in range(4)]), ())
    assert re.findall(r'<section id="(\w+)"', page) == ["ends", "spread", "ranks"]
    assert "All ranks hold about the same at their peaks." in first_screen(page)


def test_peaks_that_differ_are_not_called_the_same():
    found = compare_ranks([made(rank, (rank + 1) * GIB) for rank in range(6)])
    assert found.outliers == ()
    between = "Peaks lie between 1.00 GiB (rank 0) and 6.00 GiB (rank 5)"
    assert ranks_headline(found) == f"{between}; no rank departs by much more than they differ anyway."
    some = compare_ranks([made(0, GIB), made(1, GIB), made(2, None)])
    assert ranks_headline(some) == "The 2 ranks with a known peak hold about the same at their peaks."
    one = compare_ranks([made(0, GIB), made(1, None)])
    assert ranks_headline(one) == "Of 2 ranks the peak of one is known: nothing to compare."
    assert ranks_headline(compare_ranks([made(0, None), made(1, None)])) == "No peak is known: nothing to compare."


@pytest.mark.parametrize("count", [1, 3])
def test_ranks_that_know_no_peak_have_a_page_and_no_figure(count: int):
    page = ranks_to_html(compare_ranks([made(rank, None) for rank in range(count)]), ())
    assert "fig-ranks" not in page
    assert "Median peak" not in page
    assert 'title="not known"' in page
    assert "no peak is known" in page


def test_five_thousand_ranks_are_a_small_page_that_counts_what_it_leaves_out():
    found = job(5000, sites=100)
    page = ranks_to_html(found, BAD)
    assert size(page) <= MOST_BYTES
    said = text(page)
    assert "Rank 2500 ran out of memory first; 4,998 ranks followed." in said
    assert f"{len(found.ranks) - 60:,} more rows" in said
    assert f"{len(BAD) - 60:,} more rows" in said
    assert "rank 2500</text>" in first_screen(page)


@pytest.mark.parametrize("times", [1, 300])
def test_a_strangers_names_break_nothing(times: int):
    page = ranks_to_html(hostile(times), BAD)
    assert size(page) <= MOST_BYTES
    assert "<script>alert" not in page
    for sign in ("\x1b", "\u202e", "\ud800"):
        assert sign not in page
    assert page.count("</script>") == 3
    assert "default-src 'none'" in page
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)
    assert "style=" not in page


def test_few_ranks_are_bars_and_many_a_distribution():
    few, many = (ranks_to_html(job(count + 1), ()) for count in (MOST_BARS, MOST_BARS + 1))
    assert "The peak of each rank." in few
    assert ">first</text>" in few
    assert "How many ranks have which peak" in many


def test_real_ranks_say_what_the_text_says():
    digests = [replace(of_sample(name), rank=at) for at, name in enumerate(("train_ok", "oom_fragmentation"))]
    found = compare_ranks(digests)
    page = ranks_to_html(found, ())
    assert found.first == 1
    assert text(page[page.index("<h1>") : page.index("</h1>")]) in ranks_headline(found)
    assert "fill_cache" in page


def test_a_rank_that_knows_no_peak_counts_in_no_spread():
    found = compare_ranks([made(0, 40 * GIB), made(1, 44 * GIB), replace(made(2, None), categories={}, sites=())])
    assert found.peaks is not None
    assert (found.peaks.min, found.peaks.median, found.peaks.max) == (40 * GIB, 40 * GIB, 44 * GIB)
    assert found.categories[0].min > 39 * GIB
    assert found.sites[0].min > 39 * GIB
    assert "1 rank without a known peak left out." in ranks_to_html(found, ())


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ((0, 1, 2, 5), "0–2, 5"),
        ((7,), "7"),
        (tuple(range(0, 60, 2)), f"{', '.join(map(str, range(0, 24, 2)))}, and 18 more"),
    ],
)
def test_ranges_of_ranks_are_short(ranks: tuple[int, ...], said: str):
    assert rank_ranges(ranks) == said
