"""Who asked: the part of the program that made a request that failed, in words."""

from __future__ import annotations

from oomscope.analysis.verdict.records import Asked
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
