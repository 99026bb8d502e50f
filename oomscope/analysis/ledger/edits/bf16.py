"""The model in bf16: weights, gradients, states and activations half as large."""

from __future__ import annotations

import re

import numpy as np

from oomscope.analysis.labels.kinds import INPUT, WORKSPACE
from oomscope.analysis.labels.own_lines import own_line
from oomscope.analysis.labels.phases import BACKWARD, FORWARD
from oomscope.analysis.labels.stack_roles import Mark
from oomscope.analysis.ledger.attention.softmaxes import shares
from oomscope.analysis.ledger.attention.written_out import EAGER, scores_of_fused, written_by_torch
from oomscope.analysis.ledger.casts import is_mixed, is_of_unknown_width
from oomscope.analysis.ledger.corrected import corrected, masks_of_logits
from oomscope.analysis.ledger.draft import Draft
from oomscope.analysis.ledger.dtypes import convolutions, usual_casts
from oomscope.analysis.ledger.dtypes.mixed import casts_weights, without_autocast
from oomscope.analysis.ledger.dtypes.precision import embeds, only_full
from oomscope.analysis.ledger.dtypes.promotion import promoted
from oomscope.analysis.ledger.dtypes.softmax_dtypes import with_dtype, without_dtype
from oomscope.analysis.ledger.dtypes.tied_logits import tied_logits
from oomscope.analysis.ledger.edit import Edited
from oomscope.analysis.ledger.losses import losses
from oomscope.analysis.ledger.paths import paths
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.whole_numbers import whole_numbers
from oomscope.analysis.plan.growth.reductions import made_to_add_up
from oomscope.analysis.plan.scaling import workspaces
from oomscope.model import BoolArray, FrameKind, frame_kind, package_path
from oomscope.model.arrays import FloatArray
from oomscope.model.ordering import among, ascending
from oomscope.model.recorded_stacks import RecordedSource

SLUG = "bf16"
_CASTS = re.compile(r"\.float\(\)|float32")
_OF_TRANSFORMERS = "transformers/loss/loss_utils.py"
_CAST_FIRST = {"ForCausalLMLoss", "ForMaskedLMLoss", "ForTokenClassification"}
"""Of that file, the losses that begin with ``logits.float()``."""
_OF_DECODERS = {"apply_rotary_pos_emb", "repeat_kv"}
"""Functions of transformers' files whose attention casts its softmax to float32; that of BERT and the like does not."""
BESIDE_ITS_COPY = 1.5
"""Of what is computed in float32 and goes on in 16 bits, both together."""
LEAST = 1 << 20
"""Bytes of a loss over many classes."""
FLAG = 64
"""Bytes up to which something is a counter or a flag."""


def edit(run: Run, value: int | None) -> Edited | None:  # noqa: ARG001
    """Everything but workspaces, counters and tokens is half as large.

    A loss may still be computed in float32, as its line says where the recording has that, and attention that no fused
    kernel took may find one in 16 bits.
    """
    if is_of_unknown_width(run) or not run.parameters.any():
        return None
    if is_mixed(run):
        return _of_mixed(run)
    half = ~run.of(WORKSPACE) & (run.size > FLAG) & ~_tokens(run) & ~only_full(run)
    half &= ~whole_numbers(run) & ~promoted(run) & ~written_by_torch(run)
    half &= ~corrected(run) & ~masks_of_logits(run)
    # Sums are float32 until they are done.
    half &= ~made_to_add_up(run.recording.program)
    in_full, may_be = _softmaxes(run)
    in_scores = bool(may_be.any()) and usual_casts.softmaxes(run)
    if in_scores:
        in_full, may_be = in_full | may_be, np.zeros_like(may_be)
    in_norms = usual_casts.in_norms(run)
    half &= ~in_full & (in_norms == 0)
    kernels = convolutions.in_half(run)
    of_others = kernels < convolutions.HALF
    draft = run.draft.scaled(_beside_copies(run)[in_full], in_full).scaled(in_norms[in_norms > 0], in_norms > 0)
    draft = draft.scaled(kernels[of_others] / convolutions.HALF, of_others)
    drafts = [draft.scaled(0.5, half), draft.scaled(0.5, half & ~_in_full(run))]
    if _casts_logits(run, in_scores=in_scores):
        drafts.reverse()
    likely, other = drafts
    # Kernels for convolutions may copy what they are given into float32.
    others = [other, likely, draft.scaled(0.5, half & ~workspaces(run.recording))]
    if may_be.any():
        others.append(likely.scaled(BESIDE_ITS_COPY / 0.5, may_be))
    return Edited(
        likely.without(scores_of_fused(run)), tuple(others), doubt=0.1 if in_full.any() else 0.04, halves=True
    )


def otherwise(run: Run) -> tuple[Draft, bool] | None:
    """The likely program that does otherwise with its logits, and whether it casts them to float32 for their loss.

    None where a program under autocast keeps its weights in 16 bits, or nothing can be told.
    """
    edited = None if is_mixed(run) else edit(run, None)
    if edited is None:
        return None
    in_scores = bool(_softmaxes(run)[1].any()) and usual_casts.softmaxes(run)
    return edited.others[0].without(scores_of_fused(run)), not _casts_logits(run, in_scores=in_scores)


def _casts_logits(run: Run, *, in_scores: bool) -> bool:
    """Whether logits are cast to float32 for their loss, as far as anything tells."""
    return _is_cast_for_loss(run) or usual_casts.logits(run, in_scores=in_scores)


def _beside_copies(run: Run) -> FloatArray:
    """float64[requests]: how much of a softmax in float32 there is, with its copy in 16 bits, in parts of the former.

    Where a dropout follows, that keeps its mask and what it makes, but not the copy.
    """
    found = shares(run, paths(run))
    return np.where(found > 0, found, BESIDE_ITS_COPY)


def _softmaxes(run: Run) -> tuple[BoolArray, BoolArray]:
    """bool[requests], twice: results of softmaxes that are known to be computed in float32, and of those that may be.

    A dtype or the text of a line says so; of a line of the program's own that says neither nothing tells. transformers'
    own attention tells a dtype, in decoders, or casts nothing. A backward needs such a result beside its copy in 16
    bits, which goes on.
    """
    stacks, texts = run.study.snapshot.stacks, _texts(run)
    decoders = {frame.filename for frame in stacks.frames if frame.name in _OF_DECODERS}
    named, eager, of_decoder, casts = np.zeros((4, len(stacks) + 1), np.bool_)
    for one in range(len(stacks)):
        frames = [frame for frame in stacks[one] if frame_kind(frame.filename) is not FrameKind.CPP][:2]
        if frames and frames[0].name == "softmax" and frame_kind(frames[0].filename) is FrameKind.TORCH:
            line = own_line(stacks[one])
            text = None if line is None else texts.get(line)
            casts[one], named[one] = bool(text and _CASTS.search(text)), text is None
            eager[one] = frames[-1].name == EAGER
            of_decoder[one] = eager[one] and frames[-1].filename in decoders
    made = run.during(FORWARD) & run.saved & ~losses(run)
    told_none = eager[run.stack] & without_dtype(run)
    known = casts[run.stack] | with_dtype(run) | (of_decoder[run.stack] & ~told_none)
    return known & made, named[run.stack] & made & ~known & ~told_none


def _of_mixed(run: Run) -> Edited | None:
    """A program that runs under autocast keeps its weights in 16 bits instead."""
    if not casts_weights(run):
        return None
    likely, *others = without_autocast(run)
    return Edited(likely, tuple(others), doubt=0.08)


def _is_cast_for_loss(run: Run) -> bool:
    """Whether a line that calls a loss writes that it casts what it gives to it, or a library is known to do so."""
    texts = _texts(run)
    stacks = [run.study.snapshot.stacks[one] for one in ascending(run.stack[losses(run)]).tolist() if one >= 0]
    lines = [own_line(frames) for frames in stacks]
    if (with_dtype(run) & losses(run)).any():
        return True
    return any(line is not None and _CASTS.search(texts.get(line, "")) for line in lines) or any(
        frame.name in _CAST_FIRST and package_path(frame.filename) == _OF_TRANSFORMERS
        for frames in stacks
        for frame in frames
    )


def _texts(run: Run) -> dict[tuple[str, int], str]:
    """The text of each line that the recording has."""
    sources = run.study.snapshot.recorded.sources
    return {(one.filename, one.line): one.text[one.line - one.first] for one in sources if _holds(one)}


def _holds(source: RecordedSource) -> bool:
    return 0 <= source.line - source.first < len(source.text)


def _in_full(run: Run) -> BoolArray:
    """What a loss makes and the backward of it, where a program casts logits for it; that cast is none before."""
    loss = losses(run)
    large = loss & (run.size >= LEAST)
    sizes = run.size[large & (run.size == run.size[large].max(initial=0))]
    as_large = among(run.size, sizes) & ~run.gradients & ~run.like_parameter
    made = run.during(FORWARD) & as_large & ~run.marked(Mark.LINEAR) & ~tied_logits(run)
    return np.asarray(loss | made | (run.during(BACKWARD) & as_large))


def _tokens(run: Run) -> BoolArray:
    """Inputs of a model that begins with an embedding are whole numbers."""
    return run.of(INPUT) if embeds(run) else np.zeros(len(run.size), np.bool_)
