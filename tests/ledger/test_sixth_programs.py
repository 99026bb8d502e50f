"""Five programs of a sixth round, written and run before anything was predicted of them, with ten to thirteen remedies.

Attention in shifted windows, torch's own layers under autocast, images to images against a discriminator, sound by
dilated convolutions, derivatives of a network by its inputs. The first figures are in docs/plan-quality.md.
"""

from __future__ import annotations

import numpy as np
import pytest

from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.ledger import EDITS
from oomscope.analysis.ledger.attention.scores import windows, written_out
from oomscope.analysis.ledger.casts import autocast_copies, is_mixed
from oomscope.analysis.ledger.structure.blocks import blocks
from tests.ledger.rounds import run


@pytest.mark.parametrize(("program", "count"), [("swin", 12), ("gpt", 8), ("pix2pix", 10), ("wavenet", 20)])
def test_blocks_are_those_of_the_model_not_its_stages(program: str, count: int):
    """The windows' stages hold blocks; five of the generator's ten blocks are one line each."""
    assert sum(int(run(program).step[block.rows[0]]) == 1 for block in blocks(run(program))) == count


def test_what_a_layer_returns_beside_its_output_goes_on_elsewhere():
    sound = run("wavenet")
    layer = next(block for block in blocks(sound) if sound.step[block.rows[0]] == 1)
    assert sound.size[layer.output] == 4 * 8192 * 256 * 4, "skips, which are summed"
    assert layer.returned == {4 * 8192 * 128 * 4}, "what the next layer is given"


@pytest.mark.parametrize(("program", "mixed"), [("gpt", True), ("pix2pix", False)])
def test_casts_are_found_in_attention_and_no_result_before_a_workspace_is_one(program: str, mixed: bool):
    assert is_mixed(run(program)) is mixed
    copies = autocast_copies(run(program))
    assert np.count_nonzero(run(program).step[copies] == 1) == (33 if mixed else 0), "four a layer, and the logits'"


def test_a_table_of_relative_places_tells_the_window_whose_scores_are_small():
    images = run("swin")
    assert windows(images) == {7 * 7}
    found = images.size[written_out(images) & images.during(FORWARD) & (images.step == 1)]
    assert set(found.tolist()) == {8 * 64 * 3 * 49 * 49 * 4 >> stage for stage in range(4)}
    assert not windows(run("vae"))


def test_what_a_variable_holds_to_the_next_step_is_there_without_gradients_too():
    """The logits of a step, until those of the next one are assigned."""
    sound = run("wavenet")
    edited = EDITS["no_grad"].edit(sound, None)
    assert edited is not None
    logits = np.flatnonzero((sound.size == 4 * 8192 * 256 * 4) & sound.saved & (sound.step == 0))[-1]
    assert edited.likely.end[logits] == sound.end[logits] > sound.step_begins(1)


def test_derivatives_that_a_later_backward_needs_are_offloaded_too():
    flow = run("pinn")
    edited = EDITS["offload_activations"].edit(flow, None)
    assert edited is not None
    lasts = [int((one.size * (one.end - one.begin))[: len(flow.size)].sum()) for one in (flow.draft, edited.likely)]
    assert lasts[1] < 0.5 * lasts[0]
