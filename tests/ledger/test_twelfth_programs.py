"""Four programs of a twelfth round, written and run before anything was predicted of them.

A language model with rotary embeddings and groups of queries, a diffusion in the latents of an encoder that was meant
to be frozen, a network over the neighbours of points, speech that is learned by contrast. The first figures are in
docs/plan.md.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.ledger import EDITS, ledger_of
from oomscope.analysis.ledger.blocks import blocks
from oomscope.analysis.ledger.edits.checkpoint import _beside_blocks
from oomscope.analysis.ledger.untrained import untrained
from tests.ledger.rounds import run, study

STAGES = 16
"""Stages of the U-Net."""
CONVOLUTIONS = 7


def test_an_encoder_whose_gradients_nothing_zeroes_is_not_trained():
    latent = run("latent")
    part = untrained(latent)
    assert part is not None
    assert not part.forward[~latent.during(FORWARD)].any()
    assert not part.backward[~latent.during(BACKWARD)].any()
    of_first = part.backward & latent.gradients & (latent.step == 0)
    assert latent.size[of_first].sum() >= 9.9 * 2**20, "the encoder's weights"
    edited = EDITS["no_grad"].edit(latent, None)
    assert edited is not None
    kept = latent.states | (latent.saved & ~part.forward)
    assert (edited.likely.size[kept] == latent.size[kept]).all()
    assert (edited.likely.end[kept] == latent.end[kept]).all()


@pytest.mark.parametrize(
    "program", ["rotary", "wav2vec", "vocoder", "pix2pix", "klvae", "preference", "seq2seq", "retriever"]
)
def test_a_model_or_a_generator_behind_its_discriminator_is_trained(program: str):
    assert untrained(run(program)) is None


def test_no_grad_is_listed_where_something_goes_backward_for_nothing():
    assert "no_grad" in {row.slug for row in ledger_of(study("latent")).rows}
    assert "no_grad" not in {row.slug for row in ledger_of(study("rotary")).rows}


def test_blocks_of_what_is_not_trained_are_not_made_again():
    latent = run("latent")
    part = untrained(latent)
    assert part is not None
    found = blocks(latent)
    assert len(found) == STAGES * latent.steps
    assert not any(part.forward[block.rows].any() for block in found)


def test_layers_that_a_loop_calls_as_the_blocks_are_called_are_each_made_again():
    """Each convolution and its activation, of which only the first has a norm between."""
    speech = run("wav2vec")
    beside = [call for call in _beside_blocks(speech, blocks(speech)) if speech.step[call.rows[0]] == 1]
    assert len(beside) == CONVOLUTIONS
    assert all(int(after.rows[0]) == int(call.rows[-1]) + 1 for call, after in pairwise(beside))
    halved = [int(speech.size[call.output]) for call in beside]
    assert all(after * 2 <= size for size, after in pairwise(halved))
