"""What keeps a graph is named in the advice, also where it only reaches the graph and does not keep it alone."""

from __future__ import annotations

from pathlib import Path

from oomscope.analysis import analyze
from oomscope.reading import load
from oomscope.wording.verdict_text import advice_text

PROGRAMS = Path(__file__).resolve().parents[1] / "captures" / "programs"


def test_the_object_that_reaches_the_graph_is_named():
    device = analyze(load(PROGRAMS / "word_language_model.pickle.xz"), whatif=False).main
    assert device is not None
    assert device.oom is not None
    first = device.oom.verdict.advice[0]
    assert first.slug == "detach_what_is_kept.reached"
    assert first.enough
    assert advice_text(first).action.startswith("Cut the graph that `hidden` (in train) reaches: `.detach()` what one")
