"""Five programs of a seventh round, written and run before anything was predicted of them, with ten to twelve remedies.

A detector on a plain transformer, text to text by transformers' T5, volumes under autocast, pairs of residues, crops of
images for a student and a teacher. The first figures are in docs/plan-quality.md.
"""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.ledger import EDITS
from oomscope.analysis.ledger.attention.scores import of_triples, written_out
from oomscope.analysis.ledger.attention.written_out import scores_of_fused, written_by_torch
from oomscope.analysis.ledger.dtypes.precision import halves
from oomscope.analysis.ledger.structure.blocks import blocks
from tests.ledger.rounds import run

MIB = 1 << 20
PAIR = 2 * 128 * 128 * 64 * 4
"""Bytes of what each pair of 128 residues has."""


@pytest.mark.parametrize(("program", "count"), [("vitdet", 8), ("t5", 16), ("unet3d", 9), ("folding", 4)])
def test_a_block_of_one_line_may_call_modules_of_its_own(program: str, count: int):
    """The residual blocks of the volumes are such."""
    assert sum(int(run(program).step[block.rows[0]]) == 1 for block in blocks(run(program))) == count


def test_what_a_block_returns_beside_its_output_is_not_made_again():
    """Residues beside their pairs: the next block's backward lets go of them before this one's begins."""
    folding = run("folding")
    first, second = [block for block in blocks(folding) if folding.step[block.rows[0]] == 1][:2]
    assert np.median(folding.end[second.inner]) < folding.end[first.inner].min()


def test_scores_with_a_bias_are_written_out_in_any_precision():
    text = run("t5")
    assert not scores_of_fused(text).any()
    sizes = set(text.size[written_by_torch(text) & text.during(FORWARD) & (text.size >= 8 * MIB)].tolist())
    assert sizes == {8 * 6 * 512 * 512 * 4, 8 * 6 * 512 * 512}, "scores and the masks of their dropout"
    for name in ("autocast", "bf16"):
        edited = EDITS[name].edit(text, None)
        assert edited is not None
        scores = text.size == 8 * 6 * 512 * 512 * 4
        np.testing.assert_array_equal(edited.likely.size[: len(scores)][scores], text.size[scores])


def test_a_gelu_that_is_written_out_is_in_full_precision_and_keeps_what_goes_into_it():
    text = run("t5")
    found = halves(text).likely[(text.size == 8 * 512 * 1024 * 4) & text.saved & (text.step == 1)]
    assert [np.count_nonzero(found == factor) for factor in (1.5, 1.0)] == [8, 3 * 8]


def test_scores_of_triples_are_found_but_no_fused_kernel_takes_them():
    folding = run("folding")
    assert set(folding.size[of_triples(folding)].tolist()) == {PAIR * 128 * 4 // 64}
    assert not written_out(folding).any()
    assert EDITS["sdpa"].edit(folding, None) is None, "really switched on, it saved nothing"


def test_each_product_of_the_result_of_a_norm_casts_a_copy_of_it():
    """Queries, keys, values, bias and gate."""
    folding = run("folding")
    assert (halves(folding).likely[folding.saved & (folding.size == PAIR)] == 2.5).any()


def test_a_group_norm_before_a_convolution_has_an_activation_in_place():
    images = run("vitdet")
    level = 4 * 128 * 128 * 128 * 4
    assert (halves(images).likely[images.saved & (images.size == level)] == 1.5).any()


def test_an_optimizer_without_temporaries_is_as_large_when_it_is_fused():
    volumes = run("unet3d")
    edited = EDITS["fused_optimizer"].edit(volumes, None)
    assert edited is not None
    np.testing.assert_array_equal(edited.likely.size, volumes.draft.size)
