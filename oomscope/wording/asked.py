"""Who asked: the part of the program that made a request that failed, in words."""

from __future__ import annotations

from oomscope.analysis.verdict.records import Asked, Oom
from oomscope.wording.clean import clean
from oomscope.wording.paths import Shorten
from oomscope.wording.places import place


def asked_text(asked: Asked, shorten: Shorten) -> str:
    """``in loss.backward() called at train (train.py:88), for the gradient of head.weight``; empty where unknown."""
    if asked.phase == "backward":
        called = (
            f"in backward() called at {place(asked.backward_call, shorten)}" if asked.backward_call else "in backward"
        )
        of = f", for the gradient of {clean(asked.gradient_of, 80)}" if asked.gradient_of else ""
        return called + of
    own = asked.caller or asked.site
    if own is None:
        return ""
    if asked.phase == "optimizer":
        return f"in the optimizer's step at {place(own, shorten)}"
    if asked.caller is None or asked.site is None:
        return f"at {place(own, shorten)}"
    return f"at {place(asked.site, shorten)}, called from {place(asked.caller, shorten)}"


_WORK_OF_LIBRARY = {
    "sanity_check": "in the sanity check",
    "evaluation": "in the evaluation",
    "prediction": "in the prediction",
    "encoding": "in encode()",
    "generation": "in generate()",
}


def within_text(oom: Oom) -> str:
    """What a library was doing: ``in the evaluation, in generate()``; empty for nothing known."""
    known = () if oom.verdict.asked is None else oom.verdict.asked.within
    return ", ".join(_WORK_OF_LIBRARY[one] for one in known)
