"""What language models cast to float32 when their weights are in 16 bits, as far as how they are built tells.

In a recording of float32 such a cast leaves no trace, and bare recordings have no text of lines. LLaMA and the models
after it, known by rotary places or `rms_norm`, give float32 to their loss, ``logits.float()``; copies of its own code
have their softmaxes and norms in it, too. T5 and those after it, which have norms by the mean of squares and no rotary
places, have their softmaxes in it. BERT, GPT-2 and transformers for images, with norms by mean and variance, do
neither. docs/plan.md has how often that was right.
"""

from __future__ import annotations

import re

import numpy as np

from oomscope.analysis.labels.kinds import WORKSPACE
from oomscope.analysis.labels.phases import FORWARD
from oomscope.analysis.ledger.precision import embeds
from oomscope.analysis.ledger.run import Run
from oomscope.analysis.ledger.written_norms import written_out
from oomscope.model import BoolArray

_ROTARY = re.compile(r"rotary|^(apply_)?rope(_|$)|^rotate(_half)?$")
_OF_LLAMA = {"_norm", "repeat_kv", "apply_rotary_emb", "apply_rotary_pos_emb"}
"""Functions of the code of LLaMA and of transformers' copy of it."""
_MEAN_OF_SQUARES = "rms_norm"


def logits(run: Run, *, in_scores: bool) -> bool:
    """Whether logits are probably cast to float32 for their loss.

    Args:
        run: the run.
        in_scores: whether softmaxes of scores are, see `softmaxes`.
    """
    names = _names(run)
    return embeds(run) and (_is_rotary(names) or (_MEAN_OF_SQUARES in names and not in_scores))


def softmaxes(run: Run) -> bool:
    """Whether the softmaxes of scores that a program writes out are probably computed in float32."""
    names = _names(run)
    squares = _MEAN_OF_SQUARES in names or bool(written_out(run).any())
    return embeds(run) and squares and (not names.isdisjoint(_OF_LLAMA) if _is_rotary(names) else True)


def given_to_norms(run: Run) -> BoolArray:
    """bool[requests]: what norms keep in float32, of which they make a copy first, as LLaMA's own do."""
    found = np.zeros(len(run.size), np.bool_)
    if _names(run).isdisjoint(_OF_LLAMA):
        return found
    rows = np.flatnonzero(run.during(FORWARD) & (run.stack >= 0) & ~run.of(WORKSPACE))
    lasting = rows[~run.recording.at_once[rows]]
    by_norms = written_out(run)[lasting[1:]] & ~written_out(run)[lasting[:-1]]
    found[lasting[:-1][by_norms & (run.size[lasting[:-1]] == run.size[lasting[1:]])]] = True
    return found & run.saved


def _names(run: Run) -> set[str]:
    return {frame.name for frame in run.study.snapshot.stacks.frames}


def _is_rotary(names: set[str]) -> bool:
    return any(map(_ROTARY.search, names))
