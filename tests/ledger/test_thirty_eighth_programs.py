"""Programs of the thirty-first to the thirty-eighth round: padding, patches, norms beside adapters, tied logits."""

from __future__ import annotations

import pytest

from oomscope.analysis.ledger import WITH_VALUE, ledger_of
from oomscope.analysis.ledger.casts import is_of_unknown_width
from oomscope.analysis.ledger.dtypes.tied_logits import tied_logits
from oomscope.analysis.ledger.edits import sdpa
from oomscope.analysis.ledger.ranges import _MEASURED_DOUBT, LEAST_DOUBT
from oomscope.analysis.ledger.widths import frozen_are_of_32_bits
from tests.ledger.rounds import run, study


def test_transformers_repeats_keys_for_padded_samples_so_that_no_score_is_written_out():
    padded = sdpa.edit(run("finetune_lora"), None)
    assert padded is not None
    assert padded.beside_halves is None
    causal = sdpa.edit(run("distill_llama"), None)
    assert causal is not None
    assert causal.likely is run("distill_llama").draft
    assert causal.beside_halves is not None, "kernels in 16 bits repeat them"


def test_a_convolution_that_cuts_an_image_into_patches_makes_no_queries():
    assert sdpa.edit(run("clip_train"), None) is not None
    assert sdpa.edit(run("ddpm_unet"), None) is None


def test_weights_of_frozen_norms_tell_the_width_of_the_others():
    assert frozen_are_of_32_bits(run("finetune_lora"))
    assert not is_of_unknown_width(run("finetune_lora"))


def test_logits_that_a_line_makes_with_the_table_of_an_embedding():
    logits = tied_logits(run("sasrec_full"))
    assert logits.any()
    assert len(set(run("sasrec_full").size[logits].tolist())) == 1


@pytest.mark.parametrize("program", ["gpt_pretrain", "sft_llama", "imagenet_resnet", "unet_seg", "segformer_mm"])
def test_logits_of_layers_and_what_is_made_of_them_are_none(program: str):
    assert not tied_logits(run(program)).any()


@pytest.mark.parametrize("slug", sorted(_MEASURED_DOUBT))
def test_a_range_leaves_the_room_that_measured_rows_needed(slug: str):
    program = {"set_to_none": "stylegan_res"}.get(slug, "deit_train")
    program = "gpt_pretrain" if slug in ("offload_activations", "fused_loss") else program
    ledger = ledger_of(study(program), [(slug, WITH_VALUE.get(slug)), ("fused_optimizer", None)])
    rows, base = {row.slug: row.peak_allocated for row in ledger.rows}, ledger.peak_allocated
    assert rows[slug].high - rows[slug].low >= 2 * _MEASURED_DOUBT[slug] * base - 2
    assert rows["fused_optimizer"].high - rows["fused_optimizer"].low >= 2 * LEAST_DOUBT * base - 2
