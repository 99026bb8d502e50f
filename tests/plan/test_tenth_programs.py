"""A network over graphs whose library writes part of its code anew in every process."""

from __future__ import annotations

from tests.plan.peaks import Round


def test_code_that_is_written_anew_in_every_process_is_the_same_in_all_recordings():
    Round("tenth").check("molecules", ("b768", "n96"), 0.0002, 0.0002)


def test_one_recording_of_it_tells_other_shapes_as_well():
    Round("tenth").check("molecules", (), 0.01, 0.0002)


def test_what_a_softmax_makes_may_grow_with_the_square_of_a_length_that_was_never_varied():
    # Self-attention of two lengths and attention across them share their lines, so that no size tells which are scores.
    for name, row in Round("tenth").predicted("relative", ()).items():
        truth = Round("tenth")._peaks["relative"]["shapes"][name]
        assert row.peak_allocated.low <= truth["allocated"] <= row.peak_allocated.high, name
