"""Whether checkpointing covers an evaluation that keeps its graph: what is taken for true, and what is said as well."""

from __future__ import annotations

import pytest

from oomscope.analysis.ledger import ledger_of
from tests.ledger.rounds import Round, study


@pytest.mark.parametrize(
    ("name", "program", "code"),
    [
        ("thirty_seventh", "detr", "ledger.in_evaluations_too"),
        ("thirty_second", "transformer_mt", "ledger.in_training_only"),
    ],
)
def test_where_it_was_taken_the_wrong_way_the_peak_is_what_the_note_says(name: str, program: str, code: str):
    truth = Round(name).peaks[program]["on"]["checkpoint"]["allocated"]
    ledger = ledger_of(study(program), [("checkpoint", None)])
    (row,) = ledger.rows
    assert not row.peak_allocated.low <= truth <= row.peak_allocated.high
    (said,) = (note for note in ledger.notes if note.code == code)
    assert said.values["bytes"] == pytest.approx(truth, rel=0.003)


@pytest.mark.parametrize("program", ["gpt", "gpt_pretrain"])
def test_nothing_is_said_where_no_evaluation_decides(program: str):
    codes = {note.code for note in ledger_of(study(program), [("checkpoint", None)]).notes}
    assert not codes & {"ledger.in_evaluations_too", "ledger.in_training_only"}
