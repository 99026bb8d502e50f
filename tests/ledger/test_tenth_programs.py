"""Four programs of a tenth round, written and run before anything was predicted of them.

Qwen3 by transformers with written-out attention, an encoder and decoder with relative places as T5 has, an autoencoder
against a discriminator, molecules by torch_geometric. The first figures are in docs/plan-quality.md.
"""

from __future__ import annotations

import numpy as np

from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger import EDITS
from oomscope.analysis.ledger.attention.biased import attends, learned
from oomscope.analysis.ledger.dtypes.precision import Halves, halves
from oomscope.analysis.ledger.dtypes.weight_copies import cast_copies
from oomscope.analysis.ledger.dtypes.written_norms import written_out as written_norms
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.edits.checkpoint import _inputs_of
from oomscope.analysis.ledger.pairs import both
from oomscope.analysis.ledger.paths import paths
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.structure.blocks import blocks
from oomscope.model import IntArray
from tests.ledger.rounds import run

HIDDEN = 4 * 512 * 768 * 4
SCORES = 4 * 12 * 512 * 512 * 4
VOCABULARY = 48000 * 768 * 4
"""Bytes of Qwen3's hidden state, scores and table of tokens."""
OF_ITSELF, ACROSS = 8 * 6 * 512 * 512 * 4, 8 * 6 * 512 * 256 * 4
"""Bytes of scores of the encoder, and of the decoder over it."""
NODES = 512 * 64 * 256 * 4
"""Bytes of the features of all atoms."""


def edited(program: str, remedy: str) -> Edited:
    found = EDITS[remedy].edit(run(program), None)
    assert found is not None
    return found


def saved(of: Run, size: int, step: int = 1) -> IntArray:
    """What a step's forward makes of so many bytes and its backward needs."""
    return np.flatnonzero(of.saved & of.during(FORWARD) & (of.step == step) & (of.size == size))


def test_what_goes_into_a_gate_of_one_line_is_copied_for_both_of_its_layers():
    """``self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))``: all three have one stack."""
    decoder, found = run("qwen3"), halves(run("qwen3"))
    gates = saved(decoder, 3 * HIDDEN)
    before = gates[decoder.marked(Mark.LINEAR)[gates]][::2] - 1
    assert len(before) == 12
    assert set(found.likely[before].tolist()) == {1.0}, "two halves"


def test_a_norm_that_a_program_writes_out_needs_what_it_is_given_in_full_precision():
    decoder, found = run("qwen3"), halves(run("qwen3"))
    heads = saved(decoder, HIDDEN)
    heads = heads[written_norms(decoder)[heads + 1] & decoder.marked(Mark.LINEAR)[heads]]
    assert len(heads) == 12, "a norm of the queries' heads in each layer"
    assert set(found.likely[heads].tolist()) == {1.0}
    assert set(found.originals[heads].tolist()) == {0.5}


def test_a_norm_that_is_written_out_has_a_root_and_a_result_as_large_as_its_squares():
    decoder = run("qwen3")
    made = np.flatnonzero(written_norms(decoder) & (decoder.step == 1) & decoder.saved & (decoder.size == HIDDEN))
    assert {paths(decoder)[int(one)][-1][-1][0] for one in decoder.stack[made]} == {
        "transformers/models/qwen3/modeling_qwen3.py"
    }
    assert not written_norms(run("klvae")).any(), "group norms have a function"


def test_a_softmax_that_goes_into_a_product_is_there_in_both_precisions():
    decoder, found = run("qwen3"), halves(run("qwen3"))
    assert set(found.likely[saved(decoder, SCORES)].tolist()) == {1.5}


def test_a_dropout_between_a_softmax_and_the_product_is_there_in_16_bits_only():
    words, found = run("relative"), halves(run("relative"))
    softmax, dropped = saved(words, OF_ITSELF)[::2], saved(words, OF_ITSELF)[1::2]
    assert set(found.likely[softmax].tolist()) == {1.0}
    assert set(found.likely[dropped].tolist()) == {0.5}
    assert set(words.size[softmax + 1].tolist()) == {OF_ITSELF // 4}, "its mask has a byte for each"
    assert set(found.likely[softmax + 1].tolist()) == {1.0}


def copies_of(program: str, step: int) -> dict[int, int]:
    """The copies of weights that a step has, by bytes of the weight: how many."""
    of = run(program)
    draft = cast_copies(of, of.draft)
    begins = of.first_of(step, FORWARD)
    added = np.flatnonzero(draft.begin[len(of.size) :] == begins - 1) + len(of.size)
    sizes, counts = np.unique(2 * draft.size[added], return_counts=True)
    return dict(zip(sizes.tolist(), counts.tolist(), strict=True))


def test_a_table_of_tokens_that_is_tied_to_the_last_layer_is_copied_until_that_has_its_gradient():
    decoder = run("qwen3")
    assert copies_of("qwen3", 1)[VOCABULARY] == 1
    draft = cast_copies(decoder, decoder.draft)
    copy = np.flatnonzero((2 * draft.size == VOCABULARY) & (np.arange(len(draft)) >= len(decoder.size)))[0]
    behind = decoder.gradients & (decoder.step == decoder.step[draft.source[copy]])
    assert draft.end[copy] < np.sort(decoder.begin[behind])[2], "the last layer is the first to go backward"


def test_weights_are_copied_in_every_step_also_where_gradients_are_zeroed_in_place():
    assert copies_of("relative", 1) == copies_of("relative", 0) != {}


def test_tables_are_not_copied_whatever_lies_before_them():
    """Its first layers work on numbers, and go before all tables."""
    tables = max(np.unique(run("recommender").trained, return_counts=True)[0].tolist())
    assert tables not in copies_of("recommender", 1)
    assert len(copies_of("recommender", 1)) > 1


def test_linear_layers_of_libraries_are_linear_layers():
    graphs = run("molecules")
    made = saved(graphs, 2 * NODES)
    stacks = graphs.study.snapshot.stacks
    own = [any("torch_geometric/nn/dense/linear.py" in f.filename for f in stacks[one]) for one in graphs.stack[made]]
    assert sum(own) == 7
    np.testing.assert_array_equal(graphs.marked(Mark.LINEAR)[made], own)
    factors: Halves = halves(graphs)
    assert set(factors.likely[made[own]].tolist()) == {0.5}


def test_torch_geometric_makes_its_convolutions_again_and_not_the_norm_before_them():
    graphs, likely = run("molecules"), edited("molecules", "checkpoint").likely
    first = next(block for block in blocks(graphs) if graphs.step[block.rows[0]] == 1)
    norm, messages = first.inner[0], first.inner[graphs.size[first.inner] > 2 * NODES]
    assert graphs.size[norm] == NODES
    assert likely.end[norm] == graphs.end[norm]
    assert (likely.end[messages] < graphs.end[messages]).all()
    whole = edited("molecules", "checkpoint").others[0]
    assert whole.end[norm] < graphs.end[norm], "a program may make all again"


def test_what_goes_into_a_block_goes_into_the_part_of_it_that_is_made_again():
    graphs, likely = run("molecules"), edited("molecules", "checkpoint").likely
    first = next(block for block in blocks(graphs) if graphs.step[block.rows[0]] == 1)
    edges = [row for row in _inputs_of(graphs, first, None).tolist() if graphs.size[row] > 2 * NODES]
    assert len(edges) == 1
    assert likely.end[edges[0]] > graphs.end[first.inner].min()


def test_groups_of_queries_are_fused_where_another_remedy_makes_them_16_bits():
    decoder = run("qwen3")
    fused, cast = edited("qwen3", "sdpa"), edited("qwen3", "autocast")
    rows = saved(decoder, SCORES)
    assert (fused.likely.size[rows] == SCORES).all()
    assert (both(decoder.draft, cast, fused).likely.size[rows] == 0).all()
    assert (both(decoder.draft, fused, edited("qwen3", "sgd")).likely.size[rows] == SCORES).all()


def test_attention_is_told_by_its_softmax_and_a_learned_bias_by_its_gradient():
    words = run("relative")
    found = attends(words)
    biased = learned(words, found)
    assert found[saved(words, OF_ITSELF)].all()
    assert found[saved(words, ACROSS)].all()
    assert biased[saved(words, OF_ITSELF)].all()
    assert not biased[saved(words, ACROSS)].any(), "its mask is not learned"
    likely, every = edited("relative", "sdpa").likely, edited("relative", "sdpa").others[0]
    assert (likely.size[saved(words, OF_ITSELF)] == OF_ITSELF).all()
    assert (likely.size[saved(words, ACROSS)] == 0).all()
    assert (every.size[saved(words, OF_ITSELF)] == 0).all()


def test_a_softmax_over_edges_is_no_attention():
    assert not attends(run("molecules")).any()
