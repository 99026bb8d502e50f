"""What the figures of a message prove, by simple arithmetic over what each may be."""

from __future__ import annotations

from dataclasses import replace

from oomscope.messages.families import LAST_RESORT
from oomscope.messages.proofs import allocator, elsewhere, mps, serving
from oomscope.messages.proofs.judgement import Judgement
from oomscope.messages.records import OomMessage

_BY_KIND = {
    "torch-cuda": allocator.judge,
    "torch-hip": allocator.judge,
    "torch-xpu": allocator.judge,
    "torch-npu": allocator.judge,
    "torch-async": allocator.judge,
    "torch-mps": mps.judge,
    "serving-budget": serving.judge,
}


def judged(message: OomMessage) -> OomMessage:
    """`message` with what it proves, what its advice is worth here, and what it leaves open."""
    judge = elsewhere.judge if message.reading.wording in LAST_RESORT else _BY_KIND.get(message.kind, elsewhere.judge)
    judgement: Judgement = judge(message)
    return replace(
        message,
        proves=tuple(judgement.proves),
        advice=tuple(judgement.advice),
        cannot_tell=tuple(judgement.cannot_tell),
    )
