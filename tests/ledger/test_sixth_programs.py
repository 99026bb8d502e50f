"""Five programs of a sixth round, written and run before anything was predicted of them, with ten to thirteen remedies.

Attention in shifted windows, torch's own layers under autocast, images to images against a discriminator, sound by
dilated convolutions, derivatives of a network by its inputs. The first figures are in docs/plan.md.
"""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest

from oomscope.allocator.limits import Limit
from oomscope.allocator.replay import Replayer
from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.ledger import EDITS, ledger_of, parse_remedy
from oomscope.analysis.ledger.blocks import blocks
from oomscope.analysis.ledger.casts import autocast_copies, is_mixed
from oomscope.analysis.ledger.pairs import both
from oomscope.analysis.ledger.scores import windows, written_out
from tests.ledger.rounds import Round, run, study

ROUND = Round("sixth")
PEAKS = ROUND.peaks
EVERY = ROUND.switched_on()
FAR = {
    # A line that multiplies two results makes three things, of which a variable holds the last; all are kept for it.
    ("wavenet", "offload_activations"): 0.09,
}
PAIRS = ROUND.switched_on(pairs=True)
SETTINGS = [one for one in ROUND.switched_on(settings=True) if one[1].startswith("expandable")]


def test_every_remedy_that_a_program_can_follow_is_a_row():
    assert {one for one in EVERY if one[1] not in ROUND.rows(one[0])} == set()


def test_the_median_error_is_below_a_tenth_of_a_percent_and_all_but_one_are_within_eight():
    assert len(EVERY) == 56
    assert median(ROUND.error(*one) for one in EVERY) < 0.001
    assert {one for one in EVERY if ROUND.error(*one) > 0.08} == set(FAR)
    assert all(ROUND.error(*one) < far for one, far in FAR.items())


@pytest.mark.parametrize(("program", "name"), EVERY)
def test_the_truth_lies_in_the_range_which_is_not_wide(program: str, name: str):
    peak, truth = ROUND.rows(program)[name].peak_allocated, PEAKS[program]["on"][name]["allocated"]
    assert peak.low <= truth <= peak.high
    assert peak.high - peak.low <= 0.2 * PEAKS[program]["shapes"]["base"]["allocated"]


@pytest.mark.parametrize(("program", "name"), SETTINGS)
def test_what_a_setting_saves_is_exact(program: str, name: str):
    saved = PEAKS[program]["shapes"]["base"]["reserved"] - PEAKS[program]["on"][name]["reserved"]
    assert ledger_of(study(program), [parse_remedy(name)]).rows[0].saves_bytes == saved


@pytest.mark.parametrize(("program", "name"), PAIRS)
def test_two_remedies_at_once(program: str, name: str):
    edits = [EDITS[slug].edit(run(program), value) for slug, value in map(parse_remedy, name.split("+"))]
    assert edits[0] is not None and edits[1] is not None  # noqa: PT018
    subject = run(program).recording.subject
    limit = Limit(device_total=subject.limit.limit.device_total)
    edited = both(run(program).draft, edits[0], edits[1]).likely
    found = Replayer(edited.to_program(), subject.release).run(subject.config, limit, subject.addresses())
    truth = PEAKS[program]["on"][name]["allocated"]
    assert abs(found.peak_allocated - truth) <= 0.08 * truth


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
