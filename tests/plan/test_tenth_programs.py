"""A network over graphs whose library writes part of its code anew in every process."""

from __future__ import annotations

from tests.plan.peaks import Round


def test_code_that_is_written_anew_in_every_process_is_the_same_in_all_recordings():
    Round("tenth").check("molecules", ("b768", "n96"), 0.0002, 0.0002)


def test_one_recording_of_it_tells_other_shapes_as_well():
    Round("tenth").check("molecules", (), 0.01, 0.0002)
