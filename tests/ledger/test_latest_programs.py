"""Seven more programs, written and run before anything was predicted of them, with eight to fourteen remedies each.

Segmentation of images, of volumes, clicks with sparse gradients, a decoder with grouped queries and tied weights,
speech units with relative positions, waveforms against a discriminator, a diffusion transformer of two streams. The
first figures are in docs/plan-quality.md.
"""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.labels.phases import BACKWARD
from oomscope.analysis.ledger.graphs.held import held_until
from oomscope.analysis.ledger.structure.blocks import blocks
from oomscope.analysis.ledger.whole_numbers import whole_numbers
from tests.ledger.rounds import run


@pytest.mark.parametrize(("program", "count"), [("vnet", 7), ("vocoder", 8), ("segment", 16), ("conformer", 12)])
def test_loops_in_a_model_are_not_calls_of_it_and_a_model_called_twice_is_no_block(program: str, count: int):
    """A decoder's loop ends the forward of the volumes; the discriminators are called for real and for made waves."""
    assert sum(int(run(program).step[block.rows[0]]) == 1 for block in blocks(run(program))) == count


def test_tied_weights_have_one_gradient():
    decoder = run("grouped")
    tied = decoder.size == 32000 * 768 * 4
    mine = np.flatnonzero(decoder.gradients & tied & (decoder.step == 1))
    assert len(mine) == 1
    made = np.flatnonzero(decoder.during(BACKWARD) & tied & (decoder.step == 1))
    assert decoder.end[mine[0]] == decoder.end[made].max()
    assert np.count_nonzero(decoder.trained == 32000 * 768 * 4) == 1


def test_masks_and_places_are_no_numbers_of_16_bits():
    speech, images = run("conformer"), run("segment")
    masks = np.flatnonzero(whole_numbers(speech) & (speech.step == 1))
    assert len(masks) == 12 * 5, "two in each of two feed forwards, and one of scores"
    assert (speech.size[masks + 1] == 4 * speech.size[masks]).all()
    places = np.flatnonzero(whole_numbers(images) & (images.step == 1))
    assert (images.size[places] == 2 * images.size[places - 1]).all()
    assert len(places) == 1


def test_what_a_turn_of_a_one_line_loop_makes_goes_with_the_next_turn():
    """``x = x + plain(leaky(dilated(leaky(x))))``, three times."""
    waves = run("vocoder")
    until = held_until(waves)
    last = [block for block in blocks(waves) if waves.step[block.rows[0]] == 1][-1]
    first_turn = last.rows[:7]
    assert (until[first_turn[:-1]] <= waves.begin[last.rows[7]]).all()
    assert (until[first_turn] < waves.begin[last.rows[14]]).all()
