"""Four programs of a twelfth round, written and run before anything was predicted of them.

A language model with rotary embeddings and groups of queries, a diffusion in the latents of an encoder that was meant
to be frozen, a network over the neighbours of points, speech that is learned by contrast. The first figures are in
docs/plan-quality.md.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from oomscope.analysis.labels.kinds import OPTIMIZER_STATE, PARAMETER
from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger import EDITS, ledger_of
from oomscope.analysis.ledger.attention.biased import learned
from oomscope.analysis.ledger.attention.matmuls import _next_product, _products_of_copies, attentions, between_products
from oomscope.analysis.ledger.dtypes.own_parameters import with_own_parameters
from oomscope.analysis.ledger.dtypes.precision import _made
from oomscope.analysis.ledger.dtypes.products import _given_the_same, products_fed
from oomscope.analysis.ledger.dtypes.written_norms import norms
from oomscope.analysis.ledger.edits.checkpoint import _beside_blocks
from oomscope.analysis.ledger.graphs.untrained import untrained
from oomscope.analysis.ledger.loss_functions import _calls, made_for_losses
from oomscope.analysis.ledger.paths import paths
from oomscope.analysis.ledger.structure.blocks import blocks
from oomscope.model import Frame
from tests.ledger.rounds import run, study

STAGES = 16
"""Stages of the U-Net."""
CONVOLUTIONS = 7
SCORES_OF_IMAGES = 22
"""Calls of attention in each step of the U-Net: to the image itself and to the caption, in eleven transformers."""
CANDIDATES = 8 * 179 * 101 * 256 * 4
"""Bytes of what each masked frame is compared with: its own target, and a hundred others."""


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


def test_scores_without_a_name_lie_between_products_that_copy_what_they_are_given():
    """``.softmax(dim=-1)`` is a method of a tensor."""
    latent, speech = run("latent"), run("wav2vec")
    assert len(attentions(latent)) == SCORES_OF_IMAGES * latent.steps
    assert len(attentions(speech)) == 12 * speech.steps
    assert all(len(call.scores) == 5 for call in attentions(speech)), "made, scaled, a softmax, a mask, a dropout"
    assert not attentions(run("dgcnn"))
    assert not attentions(run("ssm"))


def _line(sizes: list[int], stacks: list[int], saved: str, linear: str) -> Any:
    """A forward of requests of MiB, the numbers of their stacks, which a backward needs and which layers make."""
    flags = [np.array([one == "x" for one in text]) for text in (saved, linear)]
    return SimpleNamespace(
        size=np.array(sizes) << 20,
        stack=np.array(stacks),
        saved=flags[0],
        marked=lambda _: flags[1],
        study=SimpleNamespace(once=lambda *_: np.zeros(len(sizes), np.bool_)),
    )


@pytest.mark.parametrize(
    ("sizes", "stacks", "saved", "linear", "found"),
    [
        ([6, 2, 2, 8, 8, 2, 2, 2], [0, 1, 1, 1, 2, 3, 3, 4], ".xx.xx..", "x......x", (3, 5)),
        ([6, 2, 1, 4, 4, 1, 2, 2], [0, 1, 1, 1, 2, 3, 3, 4], ".xx.xx..", "x......x", (3, 5)),
        ([6, 2, 2, 8, 8, 2, 2, 2], [0, 1, 2, 3, 4, 5, 5, 6], ".xx.xx..", "x......x", None),
        ([6, 2, 2, 8, 8, 2, 2, 2], [0, 1, 1, 1, 2, 3, 3, 4], "....xx..", "x......x", None),
        ([6, 2, 1, 4, 4, 2, 1, 2], [0, 1, 1, 1, 2, 3, 3, 4], ".xx.xx..", "x......x", (3, 3)),
        ([6, 2, 2, 8, 8, 2, 2, 2], [0, 1, 1, 1, 2, 3, 3, 4], ".xx.xx..", "x....x.x", (3, 3)),
    ],
    ids=["to itself", "to something shorter", "of other lines", "of no copies", "no values", "a layer between"],
)
def test_the_second_product_copies_what_is_as_large_as_the_keys_and_makes_what_is_as_large_as_the_queries(
    sizes: list[int], stacks: list[int], saved: str, linear: str, found: tuple[int, int] | None
):
    made = np.arange(len(sizes))
    line = _line(sizes, stacks, saved, linear)
    places = _products_of_copies(line, made).tolist()
    assert places == ([found[0]] if found else [])
    assert [_next_product(line, made, place) for place in places] == ([found[1]] if found else [])


def test_a_bias_whose_gradient_is_summed_up_in_each_call_is_learned():
    folding = run("folding")
    scores = between_products(folding)
    large = scores & (folding.size == folding.size[scores].max())
    assert (learned(folding, scores) & large).sum() == large.sum() > 0
    for program in ("latent", "wav2vec"):
        assert not learned(run(program), between_products(run(program))).any()


def test_what_a_function_makes_on_its_way_to_a_small_loss_is_made_in_pieces():
    speech = run("wav2vec")
    found = made_for_losses(speech)
    assert np.count_nonzero(found & speech.during(FORWARD) & (speech.size == CANDIDATES)) == 4 * speech.steps
    assert np.count_nonzero(found & speech.during(BACKWARD) & (speech.size == CANDIDATES)) >= 15 * speech.steps
    assert not (found & speech.of(PARAMETER, OPTIMIZER_STATE)).any()
    assert not speech.marked(Mark.LINEAR)[found].any()


@pytest.mark.parametrize("program", ["latent", "pinn", "ddpm", "nerf"])
def test_behind_a_model_that_ends_in_its_loss_nothing_is_made_in_pieces(program: str):
    assert not made_for_losses(run(program)).any()


def test_calls_of_a_function_are_told_apart_by_where_they_were_called():
    outer = Frame("/programs/train.py", 9, "train")
    loss = Frame("/site-packages/torch/nn/functional.py", 3504, "cross_entropy")
    one, other = (Frame("/programs/train.py", line, "contrast") for line in (4, 5))
    assert _calls([loss, one, outer]) == _calls([other, outer])
    assert _calls([loss, one, outer])[0] != _calls([one, Frame("/programs/train.py", 10, "train")])[0]


def _fed(program: str) -> Counter[tuple[int, int]]:
    """By bytes of what a forward makes and how many products that goes into: how often, in one step."""
    model = run(program)
    rows = _made(model)
    fed = products_fed(
        model, rows, paths(model), np.zeros(len(model.size), np.bool_), norms(model), with_own_parameters(model)
    )
    own = [(row, count) for row, count in zip(rows.tolist(), fed, strict=True) if model.step[row] == 1]
    return Counter((int(model.size[row]), count) for row, count in own)


def test_layers_of_other_widths_that_are_given_one_norm_are_each_given_a_copy():
    """Queries of twelve heads, with keys and values of four."""
    assert _fed("rotary")[8 * 768 * 768 * 4, 2] == 2 * 12, "attention and gated layers"


def test_a_layer_of_positions_beside_queries_is_given_something_else():
    """Its weight is a third as large as that of queries, keys and values, its result much smaller."""
    normed = 4 * 600 * 768 * 4
    packed = _fed("conformer")
    assert packed[normed, 1] >= 12
    assert not packed[normed, 3]


@pytest.mark.parametrize(
    ("saved", "sizes", "module", "layers"),
    [
        ("...", [9, 6, 9], "aaa", 3),
        (".x.", [9, 6, 9], "aaa", 2),
        ("...", [9, 6, 9], "aab", 2),
        ("...", [9, 7, 9], "aaa", 1),
    ],
    ids=["all", "one is given the last one's", "of another module", "of no such width"],
)
def test_layers_that_follow_one_another_are_given_the_same(saved: str, sizes: list[int], module: str, layers: int):
    size = np.array(sizes) << 20
    weights = np.array([9, 6, 6 * 6]) << 18
    line = SimpleNamespace(
        size=size,
        stack=np.arange(3),
        saved=np.array([one == "x" for one in saved]),
        trained=weights,
        marked=lambda _: np.ones(3, np.bool_),
    )
    assert _given_the_same(cast("Any", line), np.arange(3), list(module), 0) == layers
