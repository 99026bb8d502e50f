"""What language models cast to float32 when their weights are in 16 bits, as far as how they are built tells.

In a recording of float32 such a cast leaves no trace, and bare recordings have no text of lines. LLaMA and the models
after it, known by rotary places or `rms_norm`, give float32 to their loss, ``logits.float()``; copies of its own code
have their softmaxes and norms in it, too. T5 and those after it, which have norms by the mean of squares and no rotary
places, have their softmaxes in it. Of the others, language models that a program writes itself give float32 to their
loss, too; those of transformers and of torch's own layers do not, nor do those whose loss is one of torch's modules.
docs/plan-quality.md has how often that was right.
"""

from __future__ import annotations

import re

import numpy as np

from oomscope.analysis.ledger.dtypes import norm_casts
from oomscope.analysis.ledger.dtypes.precision import embeds
from oomscope.analysis.ledger.dtypes.written_norms import written_out
from oomscope.analysis.ledger.losses import losses
from oomscope.analysis.ledger.run import Run
from oomscope.model import package_path
from oomscope.model.arrays import FloatArray

_ROTARY = re.compile(r"rotary|^(apply_)?rope(_|$)|^rotate(_half)?$")
_OF_LLAMA = {"_norm", "repeat_kv", "apply_rotary_emb", "apply_rotary_pos_emb"}
"""Functions of the code of LLaMA and of transformers' copy of it."""
_MEAN_OF_SQUARES = "rms_norm"
_OF_LIBRARIES = re.compile(r"^transformers/models/|^torch/nn/modules/(transformer|loss)\.py$")
_ATTENTION_OF_TORCH = "multi_head_attention_forward"
LEAST_VOCABULARY = 8192
"""Tokens; models of sounds, of proteins or of classes have fewer."""
NUMBER, LEAST_VECTOR = 4, 128
"""Bytes of a float32, and of a vector that is as long as a model is wide."""


def logits(run: Run, *, in_scores: bool) -> bool:
    """Whether logits are probably cast to float32 for their loss.

    Args:
        run: the run.
        in_scores: whether softmaxes of scores are, see `softmaxes`.
    """
    if not embeds(run):
        return False
    names = _names(run)
    if _is_rotary(names) or (_MEAN_OF_SQUARES in names and not in_scores):
        return True
    return not _is_of_libraries(run) and _has_vocabulary(run)


def softmaxes(run: Run) -> bool:
    """Whether the softmaxes of scores that a program writes out are probably computed in float32."""
    names = _names(run)
    squares = _MEAN_OF_SQUARES in names or bool(written_out(run).any())
    return embeds(run) and squares and (not names.isdisjoint(_OF_LLAMA) if _is_rotary(names) else True)


def in_norms(run: Run) -> FloatArray:
    """float64[requests]: what norms probably keep in float32, see `norm_casts`, in parts of its size; 0 for others."""
    return norm_casts.in_float32(run, copy_alone=_is_rotary(_names(run)))


def _is_of_libraries(run: Run) -> bool:
    """Whether the model is one of transformers, or has torch's own layers of attention or a loss that is a module."""
    return any(
        frame.name == _ATTENTION_OF_TORCH or _OF_LIBRARIES.search(package_path(frame.filename) or "")
        for frame in run.study.snapshot.stacks.frames
    )


def _has_vocabulary(run: Run) -> bool:
    """Whether the largest loss has a number for each of many tokens, as many as a matrix of the model has rows.

    The other side of that matrix is as long as a vector of the model's, as of a norm or a bias.
    """
    logits = int(run.size[losses(run)].max(initial=0))
    sizes = np.unique(run.size[run.parameters])
    sizes = sizes[sizes >= LEAST_VECTOR]
    rows = {matrix // vector for vector in sizes.tolist() for matrix in sizes.tolist() if matrix % vector == 0}
    return logits > 0 and any(one >= LEAST_VOCABULARY and logits % (NUMBER * one) == 0 for one in rows)


def _names(run: Run) -> set[str]:
    return {frame.name for frame in run.study.snapshot.stacks.frames}


def _is_rotary(names: set[str]) -> bool:
    return any(map(_ROTARY.search, names))
