"""Peaks at other shapes: what was really needed there, from recordings at others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

import oomscope
from oomscope.analysis.plan import plan_of
from oomscope.analysis.plan.records import Largest, Plan
from oomscope.errors import RequestError
from oomscope.units import GIB, MIB
from oomscope.wording.plan import largest_sentences, largest_text
from tests.plan.programs import Program, study

Shape = tuple[int, int]
PROGRAM = Program()


def at(shape: Shape) -> dict[str, int]:
    return {"batch": shape[0], "seq": shape[1]}


def planned(
    recorded: Sequence[Shape], wanted: Sequence[Shape], program: Program = PROGRAM, gpus: Sequence[str] = ()
) -> Plan:
    studies = [(f"{batch}x{length}", study(program.run([(batch, length)] * 3))) for batch, length in recorded]
    return plan_of(studies, at=list(map(at, recorded)), wanted=list(map(at, wanted)), gpus=gpus)


def truth(shape: Shape, program: Program = PROGRAM) -> tuple[int, int]:
    """The peaks of a run that was really made at that shape."""
    curves = study(program.run([shape] * 3)).history.curves
    return int(curves.allocated.max()), int(curves.reserved.max())


@pytest.mark.parametrize(
    ("recorded", "wanted"),
    [
        ([(4, 128), (6, 128)], [(2, 128), (16, 128), (5, 128)]),
        ([(4, 128), (4, 192)], [(4, 64), (4, 512), (4, 333)]),
        ([(4, 128), (6, 128), (4, 192)], [(16, 512), (3, 100), (1, 1024)]),
    ],
)
def test_peaks_are_those_of_a_run_at_that_shape(recorded: list[Shape], wanted: list[Shape]):
    answer = planned(recorded, wanted)
    assert answer.alignment.unmatched == 0
    for shape, row in zip(wanted, answer.predictions, strict=True):
        allocated, reserved = truth(shape)
        assert row.peak_allocated.bytes == pytest.approx(allocated, rel=0.002)
        assert row.peak_allocated.low <= allocated <= row.peak_allocated.high
        assert row.peak_reserved.bytes == pytest.approx(reserved, rel=0.015)
        assert row.peak_reserved.low <= reserved <= row.peak_reserved.high


def test_two_parameters_that_only_change_together_are_told_apart_by_what_tensors_are():
    wanted = [(8, 256), (16, 128)]
    for shape, row in zip(wanted, planned([(4, 128), (6, 192)], wanted).predictions, strict=True):
        allocated, reserved = truth(shape)
        assert row.peak_allocated.bytes == pytest.approx(allocated, rel=0.01)
        assert row.peak_allocated.low <= allocated <= row.peak_allocated.high
        assert row.peak_reserved.low <= reserved <= row.peak_reserved.high


def test_a_recorded_shape_is_answered_with_what_was_recorded():
    row = planned([(4, 128), (6, 128)], [(6, 128)]).predictions[0]
    assert (row.peak_allocated.low, row.peak_allocated.high) == (truth((6, 128))[0],) * 2
    assert (row.peak_reserved.low, row.peak_reserved.high) == (truth((6, 128))[1],) * 2


def test_steps_of_one_run_count_as_recordings_where_they_say_their_shape():
    snapshot = PROGRAM.run([(4, 128), (4, 128), (6, 128), (4, 192), (4, 128)], noted=True)
    answer = plan_of([("run", study(snapshot))], wanted=[at((12, 384))])
    # What is replayed is that run, every step at the new shape.
    assert answer.sources[0].shapes == (at((4, 128)), at((6, 128)), at((4, 192)))
    assert answer.predictions[0].peak_allocated.bytes == pytest.approx(truth((12, 384))[0], rel=0.002)


def test_one_recording_gives_a_wider_range_that_holds_the_truth_and_says_so():
    answer = planned([(4, 128)], [(16, 128), (4, 512)])
    assert "plan.one_recording" in [note.code for note in answer.alignment.notes]
    for shape, row in zip([(16, 128), (4, 512)], answer.predictions, strict=True):
        assert row.peak_allocated.low <= truth(shape)[0] <= row.peak_allocated.high
        assert row.peak_allocated.high - row.peak_allocated.low >= 0.02 * row.peak_allocated.bytes


def test_what_no_recording_varies_is_named():
    notes = planned([(4, 128), (6, 128)], [(8, 128)]).notes
    assert [note.values["parameter"] for note in notes if note.code == "plan.not_varied"] == ["seq"]


def test_a_name_that_tells_nothing_needs_a_second_recording():
    snapshot = PROGRAM.run([(4, 128)] * 3)
    with pytest.raises(RequestError, match="record one more step at another knob"):
        plan_of([("one", study(snapshot))], at=[{"knob": 4}], wanted=[{"knob": 8}])


def test_without_a_shape_nothing_is_guessed():
    with pytest.raises(RequestError, match="--at batch=8"):
        plan_of([("one", study(PROGRAM.run([(4, 128)] * 3)))], wanted=[{"batch": 8}])


def test_different_programs_are_refused_with_the_place():
    other = Program(width=192, blocks=2, scores=False)
    studies = [("one", study(PROGRAM.run([(4, 128)] * 3))), ("two", study(other.run([(6, 128)] * 3)))]
    with pytest.raises(RequestError, match="same program"):
        plan_of(studies, at=[at((4, 128)), at((6, 128))], wanted=[at((8, 128))])


WORKSPACES = Program(blocks=4, scores=False, workspace=[(4, 3 * MIB + 512), (6, 11 * MIB + 512), (8, 5 * MIB + 512)])


def test_workspaces_that_change_with_the_shape_widen_the_range():
    answer = planned([(4, 512), (6, 512)], [(8, 512), (12, 512)], WORKSPACES)
    for shape, row in zip([(8, 512), (12, 512)], answer.predictions, strict=True):
        assert "plan.workspaces" in [note.code for note in row.notes]
        allocated, reserved = truth(shape, WORKSPACES)
        assert row.peak_allocated.bytes == pytest.approx(allocated, rel=0.03)
        assert row.peak_reserved.low <= reserved <= row.peak_reserved.high


def test_workspaces_that_only_one_recording_has_are_told_and_the_rest_is_aligned():
    program = Program(workspace=[(6, 9 * MIB + 512)])
    answer = planned([(4, 128), (6, 128)], [(12, 128)], program)
    unmatched = [note for note in answer.alignment.notes if note.code == "plan.unmatched"]
    assert {note.values["file"] for note in unmatched} == {"6x128"}
    assert unmatched[0].values["site"].line == 31
    assert answer.predictions[0].peak_allocated.bytes == pytest.approx(truth((12, 128), program)[0], rel=0.03)


def test_a_few_bytes_that_only_one_recording_has_are_counted_but_not_told():
    answer = planned([(6, 128), (4, 128)], [(12, 128)], Program(workspace=[(6, 2048)]))
    assert answer.alignment.unmatched
    assert not [note for note in answer.alignment.notes if note.code == "plan.unmatched"]


def test_the_largest_is_no_smaller_than_what_is_said_to_fit_although_one_between_may_not(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("oomscope.analysis.plan.cards._search", lambda *_: (5, False))
    answer = planned([(4, 128), (6, 128)], [(4, 128), (8, 128), (8, 64)], gpus=[str(4 * GIB)])
    assert [one.cards[0].fits for one in answer.predictions] == [True] * 3
    batch, length = answer.largest
    assert (batch.value, batch.uncertain_from, largest_text(batch)) == (8, 6, "batch=8, but not surely 6")
    assert (length.value, length.uncertain_from) == (128, 69), "of 64 and 128 only the latter is at batch 4"


def test_no_batch_is_the_largest_at_a_length_at_which_nothing_is_said_to_fit():
    answer = planned([(4, 128)], [(4, 512)], gpus=[str(4 * GIB)])
    assert answer.predictions[0].cards[0].fits is None
    assert [one.parameter for one in answer.largest] == ["seq"]
    assert largest_sentences(answer.largest[0]).startswith("4294967296, at batch=4: seq=128 fits, and larger ones may")


def test_the_largest_that_fits_is_said_with_what_sets_the_limit():
    found = Largest(
        "A100-40", "batch", 40, {"seq": 512}, None, 81 * MIB, 2, {"activation": 30 * GIB, "temporary": GIB}, "backward"
    )
    assert largest_sentences(found) == (
        "A100-40, at seq=512: batch=40 is the largest that fits, with 81.0 MiB to spare and 2 retries. "
        "What sets the limit (backward): activations 30.0 GiB, temporaries 1.00 GiB."
    )
    assert largest_sentences(replace(found, value=None, headroom=None, retries=None)).startswith(
        "A100-40, at seq=512: no batch fits. What sets the limit"
    )
    assert "with 81.0 MiB to spare and 2 retries; 25 may not fit." in largest_sentences(
        replace(found, uncertain_from=25)
    )


def test_the_largest_that_fits_does_and_one_more_does_not():
    card = 4 * GIB
    answer = planned([(4, 128), (6, 128)], [(4, 128)], gpus=[str(card)])
    found = next(one for one in answer.largest if one.parameter == "batch")
    assert found.uncertain_from is None
    usable = card - 768 * MIB
    assert found.value is not None
    assert truth((found.value, 128))[1] - (found.headroom or 0) <= usable
    assert truth((found.value, 128))[0] <= usable
    # The range is 0.2 % of the peak, so a few more may fit, but not a tenth more.
    assert truth((found.value + found.value // 10, 128))[0] > usable
    assert next(iter(found.at_peak)) == "activation"


def test_a_card_that_is_too_small_is_short_by_what_is_missing():
    card = planned([(4, 128), (6, 128)], [(64, 512)], gpus=["1GiB"]).predictions[0].cards[0]
    assert card.fits is False
    assert card.headroom < 0


def test_a_parameter_of_an_image_counts_squared():
    class Side(Program):
        pass

    snapshot = Side(scores=False).run([(4, 64 * 64)] * 3)
    row = plan_of([("one", study(snapshot))], at=[{"batch": 4, "side": 64}], wanted=[{"side": 128}]).predictions[0]
    allocated = truth((4, 128 * 128), Side(scores=False))[0]
    assert row.peak_allocated.low <= allocated <= row.peak_allocated.high
    assert row.peak_allocated.bytes == pytest.approx(allocated, rel=0.01)


def test_a_setting_is_replayed():
    studies = [(str(batch), study(PROGRAM.run([(batch, 128)] * 3))) for batch in (4, 6)]
    rows = plan_of(
        studies, at=[at((4, 128)), at((6, 128))], wanted=[at((12, 128))], settings=["expandable_segments:True"]
    ).predictions
    curves = study(PROGRAM.run([(12, 128)] * 3, "expandable_segments:True")).history.curves
    assert rows[0].peak_reserved.bytes == pytest.approx(int(curves.reserved.max()), rel=0.015)


def test_the_library_answers_without_files():
    snapshots = [PROGRAM.run([(batch, 128)] * 3) for batch in (4, 6)]
    answer = oomscope.plan(snapshots, at=[at((4, 128)), at((6, 128))], wanted=at((12, 128)), gpus=["1GiB"])
    assert answer.predictions[0].peak_allocated.bytes == pytest.approx(truth((12, 128))[0], rel=0.002)
    noted = PROGRAM.run([(4, 128), (6, 128), (6, 128)], noted=True)
    assert oomscope.plan(noted, wanted=at((12, 128))).predictions[0].shape == at((12, 128))


def test_the_library_answers_for_remedies():
    rows = oomscope.remedies(PROGRAM.run([(8, 256)] * 3), ["sgd", "accumulate=4"]).rows
    assert {(row.slug, row.value) for row in rows} == {("sgd", None), ("accumulate", 4)}
