"""Modules that one statement nests are no loop over blocks, in a program of a fourteenth round."""

from __future__ import annotations

from oomscope.analysis.ledger.passes import forwards
from oomscope.analysis.ledger.paths import Path, paths
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.structure.blocks import _calls_one_twice, blocks
from oomscope.analysis.ledger.structure.call_tree import CallTree
from tests.ledger.rounds import run

DECODER = "/programs/tft_forecast.py", 110
"""The first line of a block of the decoder, whose second one nests attention, a gate and a network."""


def _first_line(model: Run, known: dict[int, Path], row: int, depth: int) -> tuple[str, int]:
    return known[int(model.stack[row])][depth][0][:2]


def test_a_block_that_nests_three_modules_in_a_statement_is_one_block():
    series = run("forecast")
    known = paths(series)
    found = [one for one in blocks(series) if _first_line(series, known, int(one.rows[0]), one.depth) == DECODER]
    assert len(found) == 2 * series.steps
    inside = {row for one in found for row in one.rows.tolist()}
    assert sum(len(inside & set(one.rows.tolist())) > 0 for one in blocks(series)) == len(found)


def test_only_a_loop_runs_a_line_twice():
    series = run("forecast")
    tree, rows = CallTree(paths(series)), forwards(series)[1]
    (outer, depth), *_ = [
        (calls, depth)
        for calls, depth in tree.blocks(rows.tolist(), series.stack[rows].tolist(), 2)
        if _first_line(series, tree.known, calls[0][0], depth) == DECODER
    ]
    assert _calls_one_twice(series, tree, outer, depth)
    (nested, within), *_ = tree.blocks(outer[0], [int(series.stack[row]) for row in outer[0]], depth + 1)
    assert not _calls_one_twice(series, tree, nested, within)
